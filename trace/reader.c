/* SPDX-License-Identifier: MIT */
/*
 * Merges the events of the blocks of a file by time. Each block is sorted, so a heap of the open
 * blocks is enough; only open blocks are in memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/grow.h"
#include "trace/phase_names.h"
#include "trace/reader_file.h"

/* A block that is being read. */
struct open_block {
	uint64_t order;  /* orders equal times: the order of the blocks */
	uint64_t offset; /* of the block */
	uint8_t *data;
	struct ss_trace_cursor cursor;
	const struct ss_trace_record *record; /* its next event; the cursor has the event's time */
};

struct ss_trace_reader {
	struct ss_trace_file_def file;
	size_t next;              /* block to be opened; they are sorted by their start */
	struct open_block **heap; /* the oldest first */
	size_t open;
	struct ss_phase_names phases; /* names that were seen so far */
};

static const char *const names[] = {
	[SS_TRACE_ALLOC] = "alloc",
	[SS_TRACE_FREE] = "free",
	[SS_TRACE_REUSABLE] = "reusable",
	[SS_TRACE_SEGMENT_ALLOC] = "segment_alloc",
	[SS_TRACE_SEGMENT_FREE] = "segment_free",
	[SS_TRACE_MAP] = "map",
	[SS_TRACE_UNMAP] = "unmap",
	[SS_TRACE_TRIM] = "trim",
	[SS_TRACE_OOM] = "oom",
	[SS_TRACE_LIMIT] = "limit",
	[SS_TRACE_WAIT] = "wait",
	[SS_TRACE_POOL_CREATE] = "pool_create",
	[SS_TRACE_POOL_DESTROY] = "pool_destroy",
	[SS_TRACE_IN_FLIGHT] = "in_flight",
	[SS_TRACE_PHASE] = "phase",
	[SS_TRACE_OUTSIDE] = "outside",
};

const char *ss_trace_kind_name(enum ss_trace_kind kind)
{
	return (size_t)kind < sizeof(names) / sizeof(names[0]) && names[kind] ? names[kind] : "?";
}

const char *ss_trace_end_name(enum ss_trace_end end)
{
	static const char *const name[] = {
		[SS_TRACE_END_CLOSED] = "ended",
		[SS_TRACE_END_FULL] = "file could not grow",
		[SS_TRACE_END_CUT] = "file is cut off",
		[SS_TRACE_END_NONE] = "still running",
		[SS_TRACE_END_KILLED] = "killed, or copied while it ran",
		[SS_TRACE_END_UNKNOWN] = "running or killed",
		[SS_TRACE_END_SNAPSHOT] = "memory snapshot of PyTorch",
	};

	return name[end];
}

/* ---- merging ------------------------------------------------------------ */

/* Damaged times must not wrap around, or the order would be lost. */
static uint64_t real_of(const struct ss_trace_reader *r, uint64_t time_ns)
{
	const struct ss_trace_header *h = &r->file.header;
	uint64_t real_ns;

	if (h->realtime_ns < h->boottime_ns) {
		uint64_t back = h->boottime_ns - h->realtime_ns;
		return time_ns > back ? time_ns - back : 0;
	}
	return __builtin_add_overflow(time_ns, h->realtime_ns - h->boottime_ns, &real_ns) ?
		       UINT64_MAX :
		       real_ns;
}

static bool older(const struct open_block *a, const struct open_block *b)
{
	uint64_t x = a->cursor.time_ns, y = b->cursor.time_ns;

	return x != y ? x < y : a->order < b->order;
}

static void sift_down(struct ss_trace_reader *r, size_t i)
{
	struct open_block *moved = r->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;
		if (child >= r->open)
			break;
		if (child + 1 < r->open && older(r->heap[child + 1], r->heap[child]))
			child++;
		if (!older(r->heap[child], moved))
			break;
		r->heap[i] = r->heap[child];
		i = child;
	}
	r->heap[i] = moved;
}

static void sift_up(struct ss_trace_reader *r, size_t i)
{
	struct open_block *moved = r->heap[i];

	while (i > 0 && older(moved, r->heap[(i - 1) / 2])) {
		r->heap[i] = r->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	r->heap[i] = moved;
}

/* Goes to the next event of the block that is not before the beginning. False: there is none. */
static bool advance(const struct ss_trace_reader *r, struct open_block *b)
{
	const char *damage;

	do {
		b->record = ss_trace_cursor_next(&b->cursor, &damage);
	} while (b->record &&
		 (b->record->kind < SS_TRACE_ALLOC || b->cursor.time_ns < r->file.header.begin_ns));
	return b->record != NULL;
}

static void close_block(struct open_block *b)
{
	free(b->data);
	free(b);
}

/* Opens the next waiting block, or skips it if it cannot be read any more. */
static void open_next(struct ss_trace_reader *r)
{
	const struct ss_trace_block_info *info = &r->file.blocks.at[r->next++];
	struct open_block *b = calloc(1, sizeof(*b));

	if (!b)
		return;
	b->order = r->next;
	b->offset = info->offset;
	b->data = malloc(info->length);
	struct open_block **heap = ss_grow(r->heap, r->open, sizeof(*heap));
	r->heap = heap ? heap : r->heap;
	if (!heap || !b->data ||
	    ss_trace_read_at(r->file.fd, b->data, info->length, info->offset) != info->length ||
	    !ss_trace_cursor_start(&b->cursor, b->data, info->length) || !advance(r, b)) {
		close_block(b);
		return;
	}
	r->heap[r->open++] = b;
	sift_up(r, r->open - 1);
}

static void fill(struct ss_trace_reader *reader, struct ss_trace_item *out,
		 const struct ss_trace_record *r)
{
	const struct ss_trace_event *e = (const void *)r;
	const struct ss_trace_alloc *alloc = (const void *)r;
	const struct ss_trace_segment *segment = (const void *)r;
	const struct ss_trace_trim *trim = (const void *)r;
	const struct ss_trace_oom *oom = (const void *)r;
	const struct ss_trace_pool *pool = (const void *)r;

	out->kind = r->kind;
	out->pool = r->pool;
	out->device = -1;
	switch (r->kind) {
	case SS_TRACE_REUSABLE:
		out->address = ((const struct ss_trace_reusable *)r)->base;
		out->size = ((const struct ss_trace_reusable *)r)->size;
		return;
	case SS_TRACE_POOL_CREATE:
	case SS_TRACE_POOL_DESTROY:
		out->device = pool->device == SS_TRACE_NO_DEVICE ? -1 : pool->device;
		out->address = pool->handle;
		return;
	default: break;
	}
	uint32_t device = SS_TRACE_HIGH8(e->stack_device);
	out->device = device == SS_TRACE_NO_DEVICE ? -1 : (int)device;
	out->stack = SS_TRACE_LOW24(e->stack_device);
	out->stream = SS_TRACE_LOW24(e->stream_flags);
	out->flags = SS_TRACE_HIGH8(e->stream_flags);
	switch (r->kind) {
	case SS_TRACE_ALLOC:
	case SS_TRACE_IN_FLIGHT:
		out->address = alloc->ptr;
		out->size = SS_TRACE_SIZE(alloc->size);
		out->rounded = SS_TRACE_ROUNDED(alloc->size);
		if ((out->flags & SS_TRACE_F_LIVED) &&
		    r->words * 8u >= sizeof(struct ss_trace_lived)) {
			out->since_ns = ((const struct ss_trace_lived *)r)->since_ns;
			out->rounded = ((const struct ss_trace_lived *)r)->rounded;
		}
		break;
	case SS_TRACE_FREE: out->address = ((const struct ss_trace_free *)r)->ptr; break;
	case SS_TRACE_SEGMENT_ALLOC:
	case SS_TRACE_SEGMENT_FREE:
	case SS_TRACE_MAP:
	case SS_TRACE_UNMAP:
		out->address = segment->base;
		out->size = segment->size;
		break;
	case SS_TRACE_TRIM:
		out->size = trim->released;
		out->reserved = trim->kept;
		break;
	case SS_TRACE_OOM:
	case SS_TRACE_LIMIT:
		out->size = oom->size;
		out->device_free = oom->device_free;
		out->reserved = oom->reserved;
		out->used = oom->used;
		break;
	case SS_TRACE_PHASE:
		out->range = ((const struct ss_trace_phase *)r)->id;
		out->phase = ss_phase_names_find(&reader->phases, (const void *)r);
		break;
	case SS_TRACE_OUTSIDE:
		out->address = ((const struct ss_trace_outside *)r)->ptr;
		out->size = ((const struct ss_trace_outside *)r)->size;
		break;
	case SS_TRACE_WAIT: out->duration_ns = ((const struct ss_trace_wait *)r)->ns; break;
	default: break;
	}
}

bool ss_trace_reader_next(struct ss_trace_reader *r, struct ss_trace_item *out)
{
	while (r->next < r->file.blocks.count &&
	       (r->open == 0 || r->file.blocks.at[r->next].start_ns <= r->heap[0]->cursor.time_ns))
		open_next(r);
	if (r->open == 0)
		return false;
	struct open_block *b = r->heap[0];
	*out = (struct ss_trace_item){.time_ns = b->cursor.time_ns,
				      .real_ns = real_of(r, b->cursor.time_ns),
				      .tid = b->cursor.tid,
				      .offset = b->offset +
						(uint64_t)((const uint8_t *)b->record - b->data)};
	fill(r, out, b->record);
	if (advance(r, b)) {
		sift_down(r, 0);
	} else {
		close_block(b);
		r->heap[0] = r->heap[--r->open];
		if (r->open)
			sift_down(r, 0);
	}
	return true;
}

void ss_trace_reader_rewind(struct ss_trace_reader *r)
{
	while (r->open)
		close_block(r->heap[--r->open]);
	r->next = 0;
}

static int by_start(const void *a, const void *b)
{
	const struct ss_trace_block_info *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* ---- open, close, look up ----------------------------------------------- */

static struct ss_trace_reader *open_reader(const char *path, bool held, char *err, size_t err_size)
{
	struct ss_trace_reader *r = calloc(1, sizeof(*r));

	if (!r) {
		snprintf(err, err_size, "%s: out of memory", path);
		return NULL;
	}
	if (!ss_trace_file_def_open(&r->file, path, held, err, err_size)) {
		free(r);
		return NULL;
	}
	if (r->file.blocks.count) {
		qsort(r->file.blocks.at, r->file.blocks.count, sizeof(*r->file.blocks.at),
		      by_start);
	}
	return r;
}

struct ss_trace_reader *ss_trace_reader_open(const char *path, char *err, size_t err_size)
{
	return open_reader(path, false, err, err_size);
}

struct ss_trace_reader *ss_trace_reader_open_held(const char *path, char *err, size_t err_size)
{
	return open_reader(path, true, err, err_size);
}

void ss_trace_reader_close(struct ss_trace_reader *r)
{
	if (!r)
		return;
	ss_trace_reader_rewind(r);
	ss_trace_file_def_close(&r->file);
	ss_phase_names_finish(&r->phases);
	free(r->heap);
	free(r);
}

const char *ss_trace_reader_problem(const struct ss_trace_reader *r, size_t *count)
{
	*count = r->file.problems;
	return *count ? r->file.problem : NULL;
}

uint64_t ss_trace_reader_events(const struct ss_trace_reader *r)
{
	return r->file.events;
}

uint64_t ss_trace_reader_bytes(const struct ss_trace_reader *r)
{
	return r->file.size;
}

const struct ss_trace_process_def *ss_trace_reader_process(const struct ss_trace_reader *r)
{
	return &r->file.process;
}

#define LIST(name, type, field) \
	const struct type *ss_trace_reader_##name(const struct ss_trace_reader *r, size_t *count) { \
		*count = r->file.field.count; \
		return r->file.field.at; \
	}
LIST(devices, ss_trace_device_def, devices)
LIST(pools, ss_trace_pool_def, pools)
LIST(streams, ss_trace_stream_def, streams)
LIST(stacks, ss_trace_stack_def, stacks)
LIST(threads, ss_trace_thread_def, threads)
LIST(modules, ss_trace_module_def, modules)

#define BY_NUMBER(name, type, field, ids) \
	const struct type *ss_trace_reader_##name(const struct ss_trace_reader *r, uint32_t id) { \
		uint32_t index = ss_trace_id_find(&r->file.ids, id); \
		return index ? &r->file.field.at[index - 1] : NULL; \
	}
BY_NUMBER(pool, ss_trace_pool_def, pools, pool_ids)
BY_NUMBER(stream, ss_trace_stream_def, streams, stream_ids)
BY_NUMBER(stack, ss_trace_stack_def, stacks, stack_ids)
BY_NUMBER(python, ss_trace_python_def, pythons, python_ids)

const char *ss_trace_reader_phase(const struct ss_trace_reader *r, uint32_t phase)
{
	return phase && phase <= r->phases.count ? r->phases.name[phase - 1] : NULL;
}

bool ss_trace_reader_allocates(const struct ss_trace_reader *r, uint32_t stack)
{
	return ss_trace_id_find(&r->file.allocating, stack) != 0;
}

const struct ss_trace_device_def *ss_trace_reader_device(const struct ss_trace_reader *r,
							 int device)
{
	for (size_t i = 0; i < r->file.devices.count; i++)
		if (r->file.devices.at[i].device == device)
			return &r->file.devices.at[i];
	return NULL;
}

const struct ss_trace_module_def *ss_trace_reader_module_at(const struct ss_trace_reader *r,
							    uint64_t address, uint64_t time_ns)
{
	const struct ss_trace_module_def *best = NULL;

	for (size_t i = 0; i < r->file.modules.count; i++) {
		const struct ss_trace_module_def *m = &r->file.modules.at[i];
		if (address < m->start || address >= m->end || m->gone_ns < time_ns)
			continue;
		/* A module may be noticed only after code of it has run. */
		if (!best || m->loaded_ns <= time_ns)
			best = m;
	}
	return best;
}
