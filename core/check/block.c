/* SPDX-License-Identifier: MIT */
/*
 * Blocks by address, live and freed. No two blocks overlap: a new block takes its addresses from
 * freed blocks that had them, because a pointer there means the new block from then on.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "core/check/state.h"

/* Ranges that overlap are equal, so a search for one byte finds the block around it. */
static int compare(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	return x->end <= y->start ? -1 : y->end <= x->start;
}

static struct block *overlapping_in(void *const *tree, uintptr_t base, uintptr_t end)
{
	struct block key = {.start = base, .end = end};
	void *node = tfind(&key, tree, compare);

	return node ? *(struct block **)node : NULL;
}

static struct block *overlapping(struct ss_check *c, uintptr_t base, uintptr_t end)
{
	return overlapping_in(&c->blocks, base, end);
}

/* The end of a range belongs to a block only if no other block begins there, so the search excludes
 * it. */
struct block *block_around(struct ss_check *c, const void *ptr)
{
	return overlapping(c, (uintptr_t)ptr, (uintptr_t)ptr + 1);
}

struct block *block_find(struct ss_check *c, const void *ptr)
{
	struct block *b = block_around(c, ptr);

	return b && (uintptr_t)ptr >= b->base ? b : NULL;
}

bool block_behind_is_nearer(struct ss_check *c, const struct block *b, const void *ptr)
{
	uintptr_t at = (uintptr_t)ptr;

	return at > b->base && at - b->base > b->end - at &&
	       overlapping(c, b->end, at + (at - b->base));
}

static struct block_list *list_of(struct ss_check *c, const struct block *b)
{
	return &c->list[b->freed + (b->marked ? MARKED : 0)];
}

static void list_add(struct ss_check *c, struct block *b)
{
	struct block_list *l = list_of(c, b);

	b->prev = l->newest;
	b->next = NULL;
	*(b->prev ? &b->prev->next : &l->oldest) = b;
	l->newest = b;
	l->count++;
}

static void list_remove(struct ss_check *c, struct block *b)
{
	struct block_list *l = list_of(c, b);

	*(b->prev ? &b->prev->next : &l->oldest) = b->next;
	*(b->next ? &b->next->prev : &l->newest) = b->prev;
	l->count--;
}

static void block_drop(void *p)
{
	struct block *b = p;

	free(b->uses);
	free(b->accesses);
	free(b);
}

void block_forget(struct ss_check *c, struct block *b)
{
	c->wild_frees -= b->free_wild;
	list_remove(c, b);
	tdelete(b, b->marked ? &c->marked : &c->blocks, compare);
	block_drop(b);
}

void block_move(struct ss_check *c, struct block *b, bool freed)
{
	list_remove(c, b);
	b->freed = freed;
	list_add(c, b);
	if (freed && list_of(c, b)->count > FREED_MAX)
		block_forget(c, list_of(c, b)->oldest);
}

void block_describe(const struct block *b, struct ss_finding *f)
{
	f->block = b->number;
	f->base = b->base;
	f->size = b->size;
	f->classic = b->classic;
	f->alloc = b->alloc;
	f->free = b->free;
	f->fill_slot = b->fill_slot;
	f->fill_n = b->fill_n;
	f->front = b->filled ? b->base - b->start : 0;
}

/* Makes a live block without further facts, in place of all earlier blocks at its addresses. An
 * earlier block with the same addresses passes on its place in the tree and its room. NULL: host
 * memory is out. */
static struct block *block_new(struct ss_check *c, uintptr_t start, uintptr_t end)
{
	struct block *b;

	while ((b = overlapping(c, start, end)) && (b->start != start || b->end != end))
		block_forget(c, b);
	if (b) {
		c->wild_frees -= b->free_wild;
		list_remove(c, b);
		*b = (struct block){.start = start,
				    .end = end,
				    .uses = b->uses,
				    .use_room = b->use_room,
				    .accesses = b->accesses,
				    .access_room = b->access_room};
		list_add(c, b);
		return b;
	}
	b = malloc(sizeof(*b));
	if (!b)
		return NULL;
	*b = (struct block){.start = start, .end = end};
	if (!tsearch(b, &c->blocks, compare)) {
		free(b);
		return NULL;
	}
	list_add(c, b);
	return b;
}

void ss_check_alloc(struct ss_check *c, void *base, uint64_t size, uint64_t front, uint64_t room,
		    const void *stream, const char *what, uint32_t stack)
{
	uintptr_t at = (uintptr_t)base;
	struct stream *s;
	struct block *b;

	if (room < size)
		room = size;
	pthread_mutex_lock(&c->lock);
	s = stream_get(c, stream);
	marks_drop(c, at - front, at + (room ? room : 1));
	b = block_new(c, at - front, at + (room ? room : 1));
	if (b) {
		b->base = at;
		b->size = size;
		b->number = ++c->block_number;
		b->classic = !stream;
		b->alloc = site_of(s, what, stack);
	}
	if (b && s) {
		stream_enqueue(c, s);
		b->alloc_slot = s->slot;
		b->alloc_n = s->n;
	}
	if (b && stream && !s) {
		block_forget(c, b);
		b = NULL;
	}
	c->counts.forgotten += !b;
	pthread_mutex_unlock(&c->lock);
}

static uint64_t padding_of(const struct block *b)
{
	return b->filled ? b->behind : 0;
}

void ss_check_filled(struct ss_check *c, const void *base, uint64_t behind, uint32_t fill_slot,
		     uint64_t fill_n)
{
	struct block *b;

	pthread_mutex_lock(&c->lock);
	b = block_find(c, base);
	if (b && b->base == (uintptr_t)base && !b->freed) {
		b->filled = true;
		b->behind = behind;
		b->fill_slot = fill_slot;
		b->fill_n = fill_n;
	}
	pthread_mutex_unlock(&c->lock);
}

uint64_t ss_check_block(struct ss_check *c, const void *ptr, struct ss_finding *out)
{
	uint64_t padding = 0;
	struct block *b;

	memset(out, 0, sizeof(*out));
	pthread_mutex_lock(&c->lock);
	b = block_find(c, ptr);
	if (b && !b->freed) {
		block_describe(b, out);
		padding = padding_of(b);
	}
	pthread_mutex_unlock(&c->lock);
	return padding;
}

bool ss_check_freed_block(struct ss_check *c, const void *ptr, struct ss_finding *out)
{
	struct block *b;

	memset(out, 0, sizeof(*out));
	pthread_mutex_lock(&c->lock);
	b = block_find(c, ptr);
	if (b && b->freed)
		block_describe(b, out);
	pthread_mutex_unlock(&c->lock);
	return out->block != 0;
}

void ss_check_padded(struct ss_check *c, void (*fn)(const struct ss_finding *, uint64_t, void *),
		     void *arg)
{
	pthread_mutex_lock(&c->lock);
	for (const struct block *b = c->list[0].oldest; b; b = b->next) {
		struct ss_finding about = {0};

		block_describe(b, &about);
		if (padding_of(b) || about.front)
			fn(&about, padding_of(b), arg);
	}
	pthread_mutex_unlock(&c->lock);
}

void ss_check_reset_done(struct ss_check *c, bool (*there)(const void *ptr), bool leaks,
			 const char *what, uint32_t stack)
{
	struct block *b, *next;

	pthread_mutex_lock(&c->lock);
	host_waited(c, NULL);
	for (b = c->list[0].oldest; b; b = next) {
		next = b->next;
		if (there((void *)b->base))
			continue; /* of another device */
		if (leaks)
			leak_add(c, b);
		b->free = site_of(NULL, what, stack);
		b->barrier = true;
		block_move(c, b, true);
	}
	pthread_mutex_unlock(&c->lock);
}

void ss_check_taken(struct ss_check *c, const void *base, uint64_t size)
{
	struct block *b;

	pthread_mutex_lock(&c->lock);
	while ((b = overlapping(c, (uintptr_t)base, (uintptr_t)base + (size ? size : 1))) &&
	       b->freed)
		block_forget(c, b);
	pthread_mutex_unlock(&c->lock);
}

/* ---- ranges that a program's own pool has handed out ---------------------------------- */

struct block *mark_around(struct ss_check *c, const void *ptr)
{
	return c->marked ? overlapping_in(&c->marked, (uintptr_t)ptr, (uintptr_t)ptr + 1) : NULL;
}

void marks_drop(struct ss_check *c, uintptr_t start, uintptr_t end)
{
	struct block *b;

	while (c->marked && (b = overlapping_in(&c->marked, start, end)))
		block_forget(c, b);
}

struct block *mark_new(struct ss_check *c, uintptr_t base, uint64_t size)
{
	struct block *b;

	marks_drop(c, base, base + size);
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->start = b->base = base;
	b->end = base + size;
	b->size = size;
	b->marked = true;
	b->number = ++c->block_number;
	if (!tsearch(b, &c->marked, compare)) {
		free(b);
		return NULL;
	}
	list_add(c, b);
	return b;
}

void blocks_drop(struct ss_check *c)
{
	tdestroy(c->marked, block_drop);
	c->marked = NULL;
	tdestroy(c->blocks, block_drop);
	c->blocks = NULL;
}

bool ss_check_same_stream(struct ss_check *c, const void *key, const struct ss_check_stream *stream)
{
	struct stream *s;
	bool same;

	pthread_mutex_lock(&c->lock);
	s = stream_get(c, key);
	same = s && s->is.number == stream->number;
	pthread_mutex_unlock(&c->lock);
	return same;
}
