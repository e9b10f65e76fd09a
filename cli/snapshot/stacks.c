/* SPDX-License-Identifier: MIT */
/*
 * Frames of a snapshot have a name, a file and a line, whether they are of Python or C++, so each
 * is recorded as one of Python. A pickle has a list of frames once, however often it is referred
 * to, so lists and frames are looked up by their addresses first.
 */
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "cli/readers/torch_snapshot.h"
#include "cli/snapshot/stacks.h"

#define FRAMES_MOST 224        /* of a stack: what fits into a record */
#define NUMBERS (1u << 24)     /* of codes and stacks that a reader knows */
#define TEXT_MOST 900          /* of a name, and of a file: both fit into a record */

struct ss_snapshot_code { /* a function */
	char *key;        /* name, 0, file */
	size_t length;
	uint32_t id;
	UT_hash_handle hh;
};

struct ss_snapshot_frame {
	const void *items; /* of the dictionary */
	uint64_t ip;       /* 0: it does not count */
	UT_hash_handle hh;
};

struct ss_snapshot_stack {
	uint64_t *ip;
	size_t length; /* bytes */
	uint32_t id;
	UT_hash_handle hh;
};

struct ss_snapshot_list {
	const void *items;
	uint32_t id;
	UT_hash_handle hh;
};

/* Innermost frames of PyTorch's own, in which the stack was taken. */
static bool is_own(const char *name, size_t length)
{
	static const char *const own[] = {"torch::unwind", "CapturedTraceback", "CachingAllocator"};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (memmem(name, length, own[i], strlen(own[i])))
			return true;
	return false;
}

static size_t text_of(const struct ss_pickle *v, const char **text)
{
	bool good = v && v->type == SS_PICKLE_STRING;

	*text = good ? v->s : "";
	return !good ? 0 : v->len < TEXT_MOST ? v->len : TEXT_MOST;
}

/* The number of a function; 0: there is none. */
static uint32_t code_of(struct ss_snapshot_stacks *s, const char *name, size_t name_length,
			const char *file, size_t file_length, uint32_t line)
{
	char key[2 * TEXT_MOST + 1];
	size_t length = name_length + 1 + file_length;
	struct ss_snapshot_code *c;

	memcpy(key, name, name_length);
	key[name_length] = '\0';
	memcpy(key + name_length + 1, file, file_length);
	HASH_FIND(hh, s->code, key, length, c);
	if (c || s->codes + 1 >= NUMBERS)
		return c ? c->id : 0;
	c = calloc(1, sizeof(*c));
	if (!c || !(c->key = malloc(length))) {
		free(c);
		s->failed = true;
		return 0;
	}
	memcpy(c->key, key, length);
	c->length = length;
	c->id = ++s->codes;
	HASH_ADD_KEYPTR(hh, s->code, c->key, c->length, c);
	size_t text = (name_length + file_length + 7) / 8 * 8;
	struct ss_trace_python *r = ss_builder_record(s->to, SS_TRACE_PYTHON, sizeof(*r) + text, 0);
	if (r) {
		r->id = c->id;
		r->first_line = line;
		r->name_length = (uint16_t)name_length;
		r->file_length = (uint16_t)file_length;
		memcpy(r->text, name, name_length);
		memcpy(r->text + name_length, file, file_length);
	}
	return c->id;
}

/* The frame as an address of a stack; 0: it does not count. */
static uint64_t ip_of(struct ss_snapshot_stacks *s, const struct ss_pickle *frame, bool innermost)
{
	struct ss_snapshot_frame *f = NULL;
	const char *name, *file;
	uint64_t line = 0;

	if (!frame || frame->type != SS_PICKLE_DICT || ss_snapshot_too_many_keys(frame))
		return 0;
	const void *items = frame->items;
	size_t name_length = text_of(ss_pickle_get(frame, "name"), &name);
	if (innermost && is_own(name, name_length))
		return 0;
	HASH_FIND(hh, s->frame, &items, sizeof(items), f);
	if (f)
		return f->ip;
	size_t file_length = text_of(ss_pickle_get(frame, "filename"), &file);
	ss_snapshot_number(frame, "line", &line);
	line = line < INT32_MAX ? line : 0;
	if (!name_length) {
		name = "?";
		name_length = 1;
	}
	uint32_t code = code_of(s, name, name_length, file, file_length, (uint32_t)line);
	f = calloc(1, sizeof(*f));
	if (!f) {
		s->failed = true;
		return 0;
	}
	f->items = items;
	f->ip = code ? SS_TRACE_PYTHON_FRAME | (uint64_t)code << 32 | line : 0;
	HASH_ADD(hh, s->frame, items, sizeof(f->items), f);
	return f->ip;
}

static uint32_t number_stack(struct ss_snapshot_stacks *s, const uint64_t *ip, size_t frames,
			     bool cut)
{
	size_t length = frames * sizeof(*ip);
	struct ss_snapshot_stack *k;

	HASH_FIND(hh, s->stack, ip, length, k);
	if (k || s->stack_count + 1 >= NUMBERS)
		return k ? k->id : 0;
	k = calloc(1, sizeof(*k));
	if (!k || !(k->ip = malloc(length))) {
		free(k);
		s->failed = true;
		return 0;
	}
	memcpy(k->ip, ip, length);
	k->length = length;
	k->id = ++s->stack_count;
	HASH_ADD_KEYPTR(hh, s->stack, k->ip, k->length, k);
	struct ss_trace_stack *r = ss_builder_record(s->to, SS_TRACE_STACK, sizeof(*r) + length, 0);
	if (r) {
		r->id = k->id;
		r->frames = (uint16_t)frames;
		r->flags = cut ? SS_TRACE_STACK_CUT : 0;
		memcpy(r->ip, ip, length);
	}
	return k->id;
}

uint32_t ss_snapshot_stack(struct ss_snapshot_stacks *s, const struct ss_pickle *frames)
{
	uint64_t ip[FRAMES_MOST];
	size_t all = ss_pickle_count(frames), count = 0, i = 0;
	struct ss_snapshot_list *list;

	if (!all)
		return 0;
	const void *items = frames->items;
	HASH_FIND(hh, s->list, &items, sizeof(items), list);
	if (list)
		return list->id;
	for (; i < all && count < FRAMES_MOST; i++) {
		uint64_t at = ip_of(s, ss_pickle_at(frames, i), count == 0);
		if (at)
			ip[count++] = at;
	}
	list = calloc(1, sizeof(*list));
	if (!list) {
		s->failed = true;
		return 0;
	}
	list->items = items;
	list->id = count ? number_stack(s, ip, count, i < all) : 0;
	HASH_ADD(hh, s->list, items, sizeof(list->items), list);
	return list->id;
}

#define FREE_ALL(head, type, more) \
	do { \
		struct type *at, *next; \
		HASH_ITER(hh, head, at, next) { \
			HASH_DEL(head, at); \
			more; \
			free(at); \
		} \
	} while (0)

void ss_snapshot_stacks_finish(struct ss_snapshot_stacks *s)
{
	FREE_ALL(s->code, ss_snapshot_code, free(at->key));
	FREE_ALL(s->frame, ss_snapshot_frame, (void)0);
	FREE_ALL(s->stack, ss_snapshot_stack, free(at->ip));
	FREE_ALL(s->list, ss_snapshot_list, (void)0);
}
