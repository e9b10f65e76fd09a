/* SPDX-License-Identifier: MIT */
/* Writes the base of a ring. See base.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ring/base.h"
#include "trace/grow.h"
#include "trace/reader_file.h"

/* A record that other records name, or that describes the program. */
struct ss_ring_definition {
	uint64_t time_ns, order;
	struct ss_trace_record *record;
};

static void fail(struct ss_ring_base *b)
{
	if (!b->failed) {
		b->failed = true;
		errno = errno ? errno : ENOMEM;
	}
}

/* ---- blocks ------------------------------------------------------------- */

static void flush(struct ss_ring_base *b)
{
	if (!b->data || b->failed)
		return;
	uint64_t *tail = (void *)(b->data + SS_TRACE_BLOCK_SIZE - sizeof(*tail));
	uint32_t *numbers = ss_grow(b->number, b->numbers, sizeof(*numbers));
	*tail = b->begin_ns;
	b->number = numbers ? numbers : b->number;
	uint32_t number = numbers ? ss_ring_add(b->file, b->data) : UINT32_MAX;
	if (number == UINT32_MAX) {
		fail(b);
		return;
	}
	b->number[b->numbers++] = number;
	b->used = 0;
}

/* Room for a record of a time that is not before that of the last one. NULL: it failed. */
static void *begin(struct ss_ring_base *b, uint32_t size, uint64_t time_ns)
{
	if (b->used && b->used + size + sizeof(struct ss_trace_time) + 16 > SS_TRACE_BLOCK_SIZE)
		flush(b);
	if (!b->data)
		b->data = malloc(SS_TRACE_BLOCK_SIZE);
	if (!b->data || b->failed) {
		fail(b);
		return NULL;
	}
	if (b->used == 0) {
		memset(b->data, 0, SS_TRACE_BLOCK_SIZE);
		*(struct ss_trace_block *)b->data = (struct ss_trace_block){
			.magic = SS_TRACE_BLOCK_BASE, .base_ns = time_ns};
		b->used = sizeof(struct ss_trace_block);
		b->base_ns = time_ns;
	}
	if (time_ns != b->base_ns) {
		*(struct ss_trace_time *)(b->data + b->used) = (struct ss_trace_time){
			.r = {.kind = SS_TRACE_TIME, .words = sizeof(struct ss_trace_time) / 8},
			.base_ns = time_ns};
		b->used += sizeof(struct ss_trace_time);
		b->base_ns = time_ns;
	}
	void *r = b->data + b->used;
	b->used += size;
	return r;
}

/* ---- definitions --------------------------------------------------------- */

void ss_ring_base_collect(struct ss_ring_base *b, uint32_t number)
{
	uint8_t *data = malloc(SS_TRACE_BLOCK_SIZE);
	struct ss_trace_cursor c;
	const struct ss_trace_record *r;
	const char *damage;

	if (!data) {
		fail(b);
		return;
	}
	ss_ring_read(b->file, number, data);
	for (bool good = ss_trace_cursor_start(&c, data, SS_TRACE_BLOCK_SIZE);
	     good && !b->failed && (r = ss_trace_cursor_next(&c, &damage));) {
		if (r->kind >= SS_TRACE_ALLOC && r->kind != SS_TRACE_POOL_CREATE)
			continue;
		struct ss_ring_definition *more = ss_grow(b->definition, b->definitions,
							  sizeof(*more));
		struct ss_trace_record *copy = malloc(r->words * 8u);
		b->definition = more ? more : b->definition;
		if (!more || !copy) {
			free(copy);
			fail(b);
			break;
		}
		memcpy(copy, r, r->words * 8u);
		copy->dt = 0;
		copy->kind = r->kind == SS_TRACE_POOL_CREATE ? SS_TRACE_POOL : r->kind;
		b->definition[b->definitions] = (struct ss_ring_definition){c.time_ns,
									    b->definitions, copy};
		b->definitions++;
	}
	free(data);
}

static int by_time(const void *a, const void *b)
{
	const struct ss_ring_definition *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Names of threads that had the same number: the last one counts. */
static bool is_old_name(const struct ss_ring_base *b, size_t i, const uint32_t *last,
			size_t threads)
{
	const struct ss_trace_thread *r = (const void *)b->definition[i].record;

	return r->r.kind == SS_TRACE_THREAD && last[r->tid % threads] != (uint32_t)i;
}

void ss_ring_base_definitions(struct ss_ring_base *b)
{
	enum { THREADS = 1 << 15 }; /* names that are kept at most */
	uint32_t *last = calloc(THREADS, sizeof(*last));

	if (!last) {
		fail(b);
		return;
	}
	if (b->definitions)
		qsort(b->definition, b->definitions, sizeof(*b->definition), by_time);
	for (size_t i = 0; i < b->definitions; i++) {
		const struct ss_trace_thread *r = (const void *)b->definition[i].record;
		if (r->r.kind == SS_TRACE_THREAD)
			last[r->tid % THREADS] = (uint32_t)i;
	}
	for (size_t i = 0; i < b->definitions && !b->failed; i++) {
		const struct ss_trace_record *r = b->definition[i].record;
		void *to = is_old_name(b, i, last, THREADS) ?
				   NULL :
				   begin(b, r->words * 8u, b->definition[i].time_ns);
		if (to)
			memcpy(to, r, r->words * 8u);
	}
	free(last);
}

/* ---- memory --------------------------------------------------------------- */

static void fill_event(struct ss_trace_event *e, enum ss_trace_kind kind, size_t size,
		       const struct ss_range *range, uint32_t stack, uint32_t flags)
{
	e->r = (struct ss_trace_record){
		.kind = (uint8_t)kind, .words = (uint8_t)(size / 8), .pool = range->pool};
	e->stream_flags = SS_TRACE_PACK(range->stream, flags);
	e->stack_device = SS_TRACE_PACK(stack, range->device);
}

void ss_ring_base_mapped(struct ss_ring_base *b, const struct ss_range *range)
{
	struct ss_trace_segment *r = begin(b, sizeof(*r), b->begin_ns);

	if (r) {
		fill_event(&r->e, range->chunk ? SS_TRACE_MAP : SS_TRACE_SEGMENT_ALLOC, sizeof(*r),
			   range, 0, SS_TRACE_F_LIVED);
		r->base = range->base;
		r->size = range->size;
	}
}

void ss_ring_base_block(struct ss_ring_base *b, const struct ss_range *range)
{
	struct ss_trace_lived *r = begin(b, sizeof(*r), b->begin_ns);

	if (r) {
		fill_event(&r->a.e, range->freed ? SS_TRACE_IN_FLIGHT : SS_TRACE_ALLOC, sizeof(*r),
			   range, range->site, SS_TRACE_F_LIVED);
		r->a.ptr = range->base;
		r->a.size = SS_TRACE_SIZE(range->asked);
		r->since_ns = range->begin_ns;
		r->rounded = range->size;
	}
}

void ss_ring_base_outside(struct ss_ring_base *b, int device, const struct ss_outside *o)
{
	const struct ss_range none = {.device = (uint8_t)device};

	for (uint32_t kind = 0; kind < SS_TRACE_OUTSIDE_KINDS; kind++) {
		struct ss_trace_outside *r = o->bytes[kind] ? begin(b, sizeof(*r), b->begin_ns) :
							      NULL;
		if (r) {
			fill_event(&r->e, SS_TRACE_OUTSIDE, sizeof(*r), &none, 0,
				   kind | SS_TRACE_OUTSIDE_LIVED);
			r->size = o->bytes[kind];
		}
	}
}

bool ss_ring_base_end(struct ss_ring_base *b)
{
	/* A beginning without a base would look like one whose base was lost. */
	if (b->used || (b->numbers == 0 && begin(b, 0, b->begin_ns)))
		flush(b);
	int err = errno;
	for (size_t i = 0; b->failed && i < b->numbers; i++)
		ss_ring_free(b->file, b->number[i], false);
	for (size_t i = 0; i < b->definitions; i++)
		free(b->definition[i].record);
	free(b->definition);
	free(b->data);
	free(b->number);
	errno = err;
	return !b->failed;
}
