/* SPDX-License-Identifier: MIT */
/*
 * The rules of errors. Each rule says why the missing order cannot exist in an unseen way:
 *
 * - A use, or a free, on a stream that saw neither the allocation nor a host that may have seen it,
 *   is not after the allocation, unless the stream may have waited for something unknown (wild).
 * - A use that is enqueued after a free may still run before it, as intended. That needs a stream
 *   of the free that waits for a command enqueued later, so a free on a wild stream is ignored,
 *   unless the use is on the same stream. hipFree ends before any later call.
 * - A free is after a use that was enqueued before it only if its stream or the host has seen the
 *   use.
 */
#include <stdlib.h>
#include <string.h>

#include "core/check/state.h"

/* True: no finding may be made, because the order is not known. */
static bool not_certain(struct ss_check *c, const struct stream *s)
{
	if (c->is_blind)
		c->counts.blind++;
	else if (s->saw.wild)
		c->counts.unknown++;
	return c->is_blind || s->saw.wild;
}

static void note_use(struct ss_check *c, struct block *b, const struct stream *s,
		     const struct ss_check_site *site, bool guess)
{
	struct use *u = NULL, *room;

	for (uint32_t i = 0; i < b->use_count && !u; i++)
		if (b->uses[i].slot == s->slot && b->uses[i].guess == guess)
			u = &b->uses[i];
	/* A use that the host has waited for matters to no free. */
	for (uint32_t i = 0; i < b->use_count && !u; i++)
		if (b->uses[i].slot < c->waited.count &&
		    b->uses[i].n <= c->waited.n[b->uses[i].slot])
			u = &b->uses[i];
	if (!u && b->use_count == b->use_room) {
		room = realloc(b->uses, (b->use_room + 4) * sizeof(*room));
		if (!room) {
			c->counts.forgotten++;
			return;
		}
		b->uses = room;
		b->use_room += 4;
	}
	if (!u)
		u = &b->uses[b->use_count++];
	*u = (struct use){s->slot, guess, s->n, *site};
}

/* Is position n of the slot certainly not before the next command on s? If it only may be before,
 * the uncertainty is counted. */
static bool is_missing(struct ss_check *c, const struct stream *s, uint32_t slot, uint64_t n)
{
	if (may_be_ordered(c, s, slot, n)) {
		c->counts.unknown += if_host_looked(c, s, slot, n);
		return false;
	}
	return !not_certain(c, s);
}

/* False: the use was an error. */
static bool judge_live(struct ss_check *c, struct block *b, struct stream *s, struct ss_finding *f)
{
	bool early = !b->classic && c->opt.use_before_alloc &&
		     is_missing(c, s, b->alloc_slot, b->alloc_n);

	if (early) {
		f->fault = SS_FAULT_USE_BEFORE_ALLOC;
		finding_add(c, f);
	}
	note_use(c, b, s, &f->use, f->possible);
	return !early;
}

static void judge_freed(struct ss_check *c, struct block *b, struct stream *s, struct ss_finding *f)
{
	bool after = b->barrier || may_be_ordered(c, s, b->free_slot, b->free_n);
	bool held = b->free_wild && s->slot != b->free_slot;

	if (!c->opt.use_after_free)
		return;
	if (c->is_blind || held) {
		c->is_blind ? c->counts.blind++ : c->counts.unknown++;
		return;
	}
	b->blamed |= !f->possible;
	f->fault = after ? SS_FAULT_USE_AFTER_FREE : SS_FAULT_USE_FREE_RACE;
	finding_add(c, f);
}

bool judge_use(struct ss_check *c, struct block *b, struct stream *s, struct ss_finding *f)
{
	if (!b->freed)
		return judge_live(c, b, s, f);
	judge_freed(c, b, s, f);
	return true;
}

/* The same for the range that the program's own pool has handed out at the address. A command on
 * more bytes belongs to the pool. A kernel that gets the address of the whole block need not use
 * the range that begins there. */
static void judge_mark(struct ss_check *c, const struct block *b, struct stream *s,
		       const struct ss_finding *use)
{
	struct ss_finding f = *use;
	struct block *m = mark_around(c, (void *)(uintptr_t)use->address);

	if (!m || use->bytes > m->end - use->address)
		return;
	block_describe(m, &f);
	f.possible |= use->use.kernel && use->address == b->base;
	(void)judge_use(c, m, s, &f);
}

static bool is_inside(const struct block *b, const void *ptr, uint64_t bytes)
{
	uint64_t at = (uintptr_t)ptr - b->base;

	return at <= b->size && bytes <= b->size - at;
}

bool ss_check_use(struct ss_check *c, const void *stream, const struct ss_check_operand *o,
		  const char *what, uint32_t stack)
{
	const void *ptr = o->ptr;
	uint64_t bytes = o->bytes;
	struct ss_finding f = {.address = (uintptr_t)ptr, .bytes = bytes};
	struct stream *s;
	struct block *b;
	bool fits = true, early = false;
	uint64_t unknown;

	pthread_mutex_lock(&c->lock);
	unknown = c->counts.unknown;
	s = stream_get(c, stream);
	b = s ? block_around(c, ptr) : NULL;
	/* An end pointer is no access, and neither is a pointer before a block. */
	if (b && !bytes && (uintptr_t)ptr - b->base >= b->size)
		b = NULL;
	if (b && b->freed && (uintptr_t)ptr < b->base)
		b = NULL;
	if (b) {
		c->counts.checked++;
		stream_enqueue(c, s);
		block_describe(b, &f);
		f.use = site_of(s, what, stack);
		f.use.kernel = o->kernel;
		f.use.argument = o->argument;
		f.use.at = o->at;
		/* A base that lies before its block is used only with an offset. */
		f.possible = o->guess || (!bytes && block_behind_is_nearer(c, b, ptr));
		early = !judge_use(c, b, s, &f);
		if (!b->freed && !early)
			judge_mark(c, b, s, &f);
		fits = b->freed || !bytes || is_inside(b, ptr, bytes);
		if (!fits) {
			f.fault = SS_FAULT_OUT_OF_BOUNDS;
			finding_add(c, &f);
		} else if (c->opt.races && !b->freed && !early && !f.possible) {
			race_judge(c, b, s, o, &f);
		}
		if (c->counts.unknown > unknown) /* one use counts once */
			c->counts.unknown = unknown + 1;
	}
	pthread_mutex_unlock(&c->lock);
	return fits;
}

bool ss_check_fits(struct ss_check *c, const void *ptr, uint64_t bytes, const char *what,
		   uint32_t stack)
{
	struct ss_finding f = {.address = (uintptr_t)ptr,
			       .bytes = bytes,
			       .fault = SS_FAULT_OUT_OF_BOUNDS,
			       .use = {.what = what, .stack = stack}};
	struct block *b;
	bool fits;

	pthread_mutex_lock(&c->lock);
	b = bytes ? block_around(c, ptr) : NULL;
	fits = !b || b->freed || is_inside(b, ptr, bytes);
	if (!fits) {
		block_describe(b, &f);
		finding_add(c, &f);
	}
	pthread_mutex_unlock(&c->lock);
	return fits;
}

/* If the free waits for none of several uses, the finding names the last use that is certain. */
static void judge_free(struct ss_check *c, struct block *b, struct stream *s,
		       const struct ss_check_unbegun *unbegun, struct ss_finding *f)
{
	const struct use *worst = NULL;
	bool looked = false;

	if (c->opt.use_before_alloc && is_missing(c, s, b->alloc_slot, b->alloc_n)) {
		f->fault = SS_FAULT_FREE_BEFORE_ALLOC;
		finding_add(c, f);
	}
	for (uint32_t i = 0; i < b->use_count; i++)
		if (!may_be_ordered(c, s, b->uses[i].slot, b->uses[i].n) ||
		    is_unbegun(c, s, unbegun, b->uses[i].slot, b->uses[i].n))
			worst = worst && b->uses[i].guess ? worst : &b->uses[i];
		else
			looked |= if_host_looked(c, s, b->uses[i].slot, b->uses[i].n);
	if (!worst)
		c->counts.unknown += looked;
	if (!worst || !c->opt.use_after_free || not_certain(c, s))
		return;
	b->blamed |= !worst->guess;
	f->possible = worst->guess;
	f->fault = SS_FAULT_FREE_USE_RACE;
	f->use = worst->site;
	finding_add(c, f);
}

void free_on(struct ss_check *c, struct block *b, struct stream *s,
	     const struct ss_check_unbegun *unbegun, const char *what, uint32_t stack)
{
	struct ss_finding f = {.address = b->base};

	b->free = site_of(s, what, stack);
	b->barrier = false;
	stream_enqueue(c, s);
	block_describe(b, &f);
	if (!b->classic)
		judge_free(c, b, s, unbegun, &f);
	b->free_slot = s->slot;
	b->free_n = s->n;
	b->free_wild = s->saw.wild;
	b->freed_at = ++c->now;
	c->wild_frees += b->free_wild;
}

bool ss_check_free(struct ss_check *c, void *ptr, const void *stream,
		   const struct ss_check_unbegun *unbegun, const char *what, uint32_t stack)
{
	struct ss_finding f = {.address = (uintptr_t)ptr};
	struct stream *s;
	struct block *b;
	bool found;

	pthread_mutex_lock(&c->lock);
	s = stream_get(c, stream);
	b = block_find(c, ptr);
	found = b && !b->freed;
	/* HIP frees the block around ptr */
	if (found && b->base != (uintptr_t)ptr && c->opt.frees) {
		block_describe(b, &f);
		f.use = site_of(s, what, stack);
		f.fault = SS_FAULT_INTERIOR_FREE;
		finding_add(c, &f);
		f = (struct ss_finding){.address = (uintptr_t)ptr};
	}
	if (found) {
		c->counts.checked++;
		marks_drop(c, b->start, b->end);
		if (s) {
			free_on(c, b, s, unbegun, what, stack);
		} else {
			b->free = site_of(NULL, what, stack);
			b->barrier = true;
			host_waited(c, NULL);
		}
		block_move(c, b, true);
	}
	pthread_mutex_unlock(&c->lock);
	return found;
}

void ss_check_free_failed(struct ss_check *c, void *ptr)
{
	struct block *b;

	pthread_mutex_lock(&c->lock);
	b = block_find(c, ptr);
	if (b && b->freed) {
		c->wild_frees -= b->free_wild;
		b->free_wild = false;
		b->free = (struct ss_check_site){0};
		block_move(c, b, false);
	}
	pthread_mutex_unlock(&c->lock);
}

void ss_check_bad_free(struct ss_check *c, void *ptr, const void *stream, const char *what,
		       uint32_t stack)
{
	struct ss_finding f = {.address = (uintptr_t)ptr, .fault = SS_FAULT_FOREIGN_FREE};
	struct block *b;

	pthread_mutex_lock(&c->lock);
	b = block_find(c, ptr);
	/* Memory that the pools released may have another owner, but then this free would be that
	 * owner's. */
	if (b && b->freed && b->base != (uintptr_t)ptr && c->opt.ours &&
	    !c->opt.ours(ptr, c->opt.arg)) {
		block_forget(c, b);
		b = NULL;
	}
	if (b) {
		block_describe(b, &f);
		f.fault = b->base != (uintptr_t)ptr ? SS_FAULT_INTERIOR_FREE : SS_FAULT_DOUBLE_FREE;
	}
	f.use = site_of(stream_get(c, stream), what, stack);
	if (c->opt.frees && (!b || b->freed || f.fault == SS_FAULT_INTERIOR_FREE))
		finding_add(c, &f);
	pthread_mutex_unlock(&c->lock);
}

void ss_check_freed_twice(struct ss_check *c, void *ptr, const struct ss_check_site *first,
			  const char *what, uint32_t stack)
{
	struct ss_finding f = {.address = (uintptr_t)ptr,
			       .fault = SS_FAULT_DOUBLE_FREE,
			       .use = site_of(NULL, what, stack),
			       .free = *first};

	pthread_mutex_lock(&c->lock);
	if (c->opt.frees)
		finding_add(c, &f);
	pthread_mutex_unlock(&c->lock);
}

void ss_check_wrong_free(struct ss_check *c, void *ptr, const char *what, uint32_t stack)
{
	struct ss_finding f = {.address = (uintptr_t)ptr, .fault = SS_FAULT_WRONG_FREE};
	struct block *b;

	pthread_mutex_lock(&c->lock);
	b = block_find(c, ptr);
	if (b)
		block_describe(b, &f);
	f.use = site_of(NULL, what, stack);
	if (c->opt.frees)
		finding_add(c, &f);
	pthread_mutex_unlock(&c->lock);
}

void ss_check_api_error(struct ss_check *c, const char *error, const char *error_text, int number,
			const char *what, uint32_t stack)
{
	struct ss_finding f = {.fault = SS_FAULT_API_ERROR,
			       .error = error,
			       .error_text = error_text,
			       .error_number = number,
			       .use = site_of(NULL, what, stack)};

	pthread_mutex_lock(&c->lock);
	finding_add(c, &f);
	pthread_mutex_unlock(&c->lock);
}

void ss_check_changed(struct ss_check *c, const struct ss_finding *about, uint64_t offset,
		      uint64_t bytes)
{
	struct ss_finding f = *about;
	struct block *b;

	f.address = f.base + offset;
	f.bytes = bytes;
	pthread_mutex_lock(&c->lock);
	b = f.fault == SS_FAULT_WRITE_AFTER_FREE ? block_find(c, (void *)(uintptr_t)f.base) : NULL;
	if (!b || b->number != f.block || !b->blamed)
		finding_add(c, &f);
	pthread_mutex_unlock(&c->lock);
}
