/* SPDX-License-Identifier: MIT */
/*
 * Builds an allocation log in memory. Pointers become block numbers, stream handles become
 * small indices, and the peak is known before anything is replayed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/events.h"
#include "core/base/hash_or_end.h"
#include "trace/grow.h"

#define MAX_LIVE_BYTES (4ull << 40) /* more than any device has */

static const char no_memory[] = "out of memory", too_big[] = "more is live than any device has";

/* A block by its pointer, or the last one that the pointer had. */
struct block {
	uint64_t pointer, size;
	uint32_t number;
	bool is_live;
	UT_hash_handle hh;
};

struct stream {
	uint64_t handle;
	uint32_t index;
	UT_hash_handle hh;
};

/* A block that lived before the log began. */
struct before {
	uint64_t pointer, size;
	uint32_t block, stream;
};

struct ss_events_index {
	struct block *blocks;
	struct stream *streams;
	struct before *before;
	size_t before_count;
	uint64_t *sizes;       /* by number of the block */
	uint64_t used;         /* bytes of live blocks that the log allocated, each rounded up */
	uint64_t before_bytes; /* the same of all blocks that lived before, live or not */
};

static bool append(struct ss_events *ev, struct ss_event event)
{
	void *list = ss_grow(ev->list, ev->count, sizeof(*ev->list));

	if (!list)
		return false;
	ev->list = list;
	ev->list[ev->count++] = event;
	return true;
}

static struct stream *stream_get(struct ss_events *ev, uint64_t handle)
{
	struct stream *s;

	HASH_FIND(hh, ev->index->streams, &handle, sizeof(handle), s);
	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	void *streams = ss_grow(ev->streams, ev->stream_count, sizeof(*ev->streams));
	if (streams)
		ev->streams = streams;
	if (!s || !streams) {
		free(s);
		return NULL;
	}
	s->handle = handle;
	s->index = ev->stream_count++;
	ev->streams[s->index] = handle;
	HASH_ADD(hh, ev->index->streams, handle, sizeof(handle), s);
	return s;
}

static uint64_t rounded(uint64_t size)
{
	return (size + 511) / 512 * 512;
}

/* Gives the block the next number, and its size. The pointer stands for this block from now on. */
static bool number_block(struct ss_events *ev, struct block *b, uint64_t size)
{
	uint64_t *sizes = ss_grow(ev->index->sizes, ev->blocks, sizeof(*sizes));

	if (!sizes)
		return false;
	ev->index->sizes = sizes;
	sizes[ev->blocks] = b->size = size;
	b->number = ev->blocks++;
	return true;
}

/* The block that the pointer has or had, or a new one without a number. NULL: out of memory. */
static struct block *block_get(struct ss_events *ev, uint64_t pointer, bool *is_new)
{
	struct block *b;

	HASH_FIND(hh, ev->index->blocks, &pointer, sizeof(pointer), b);
	*is_new = !b;
	if (!b && (b = calloc(1, sizeof(*b)))) {
		b->pointer = pointer;
		HASH_ADD(hh, ev->index->blocks, pointer, sizeof(pointer), b);
	}
	return b;
}

static bool too_much(const struct ss_events *ev, uint64_t size)
{
	const struct ss_events_index *index = ev->index;

	return size > MAX_LIVE_BYTES ||
	       index->before_bytes + index->used + rounded(size) > MAX_LIVE_BYTES ||
	       ev->blocks == UINT32_MAX;
}

const char *ss_events_alloc(struct ss_events *ev, uint64_t pointer, uint64_t size, uint64_t stream,
			    uint64_t time_us)
{
	bool is_new;

	if (size == 0)
		return NULL; /* HIP returns NULL for it, other allocators any pointer */
	struct block *b = block_get(ev, pointer, &is_new);
	if (b && b->is_live)
		return "the pointer is allocated already";
	if (too_much(ev, size))
		return too_big;
	struct stream *s = stream_get(ev, stream);
	if (!b || !s || !number_block(ev, b, size) ||
	    !append(ev, (struct ss_event){time_us, size, b->number, s->index, ev->at, false}))
		return no_memory;
	b->is_live = true;
	ev->index->used += rounded(size);
	return NULL;
}

/* The block, which has no number yet, lived before the log began. */
static const char *add_before(struct ss_events *ev, struct block *b, uint64_t size, uint64_t stream)
{
	struct ss_events_index *index = ev->index;

	if (too_much(ev, size))
		return too_big;
	struct before *before = ss_grow(index->before, index->before_count, sizeof(*before));
	if (before)
		index->before = before;
	struct stream *s = stream_get(ev, stream);
	if (!before || !s || !number_block(ev, b, size))
		return no_memory;
	before[index->before_count++] = (struct before){b->pointer, size, b->number, s->index};
	index->before_bytes += rounded(size);
	return NULL;
}

const char *ss_events_free(struct ss_events *ev, uint64_t pointer, uint64_t size, uint64_t stream,
			   uint64_t time_us)
{
	bool is_new;

	if (!pointer)
		return NULL;
	struct block *b = block_get(ev, pointer, &is_new);
	if (!b)
		return no_memory;
	if (is_new && size) {
		const char *wrong = add_before(ev, b, size, stream);
		if (wrong)
			return wrong;
	} else if (!b->is_live) {
		ev->unknown_frees++;
		return NULL;
	} else {
		ev->index->used -= rounded(b->size);
	}
	struct stream *s = stream_get(ev, stream);
	if (!s || !append(ev, (struct ss_event){time_us, 0, b->number, s->index, ev->at, true}))
		return no_memory;
	b->is_live = false;
	return NULL;
}

const char *ss_events_live(struct ss_events *ev, uint64_t pointer, uint64_t size, uint64_t stream)
{
	bool is_new;
	struct block *b = block_get(ev, pointer, &is_new);

	if (!b)
		return no_memory;
	if (!is_new || !size)
		return NULL;
	b->is_live = true;
	return add_before(ev, b, size, stream);
}

bool ss_events_begin(struct ss_events *ev)
{
	memset(ev, 0, sizeof(*ev));
	ev->device = -1;
	ev->index = calloc(1, sizeof(*ev->index));
	return ev->index != NULL;
}

static int compare_before(const void *pa, const void *pb)
{
	const struct before *a = pa, *b = pb;

	return a->pointer < b->pointer ? -1 : a->pointer > b->pointer;
}

/* Puts the allocations of the blocks that lived before in front. The order in which they were made
 * is not known, so the order of their addresses stands for it. */
static bool put_in_front(struct ss_events *ev)
{
	struct ss_events_index *index = ev->index;
	size_t count = index->before_count;

	if (!count)
		return true;
	struct ss_event *list = calloc(count + ev->count, sizeof(*list));
	if (!list)
		return false;
	qsort(index->before, count, sizeof(*index->before), compare_before);
	for (size_t i = 0; i < count; i++) {
		const struct before *b = &index->before[i];

		list[i] = (struct ss_event){ev->count ? ev->list[0].time_us : 0,
					    b->size,
					    b->block,
					    b->stream,
					    SS_EVENT_BEFORE,
					    false};
		ev->before_bytes += b->size;
	}
	if (ev->count)
		memcpy(list + count, ev->list, ev->count * sizeof(*list));
	free(ev->list);
	ev->list = list;
	ev->count += count;
	ev->before_blocks = count;
	return true;
}

static void find_peak(struct ss_events *ev)
{
	uint64_t used = 0;

	for (size_t i = 0; i < ev->count; i++) {
		const struct ss_event *e = &ev->list[i];

		used += e->is_free ? -rounded(ev->index->sizes[e->block]) : rounded(e->size);
		if (used > ev->peak) {
			ev->peak = used;
			ev->peak_at = i;
		}
	}
}

bool ss_events_end(struct ss_events *ev)
{
	struct ss_events_index *index = ev->index;
	struct block *b, *b_next;
	struct stream *s, *s_next;
	bool ok = put_in_front(ev);

	find_peak(ev);
	HASH_ITER(hh, index->blocks, b, b_next) {
		HASH_DEL(index->blocks, b);
		free(b);
	}
	HASH_ITER(hh, index->streams, s, s_next) {
		HASH_DEL(index->streams, s);
		free(s);
	}
	free(index->before);
	free(index->sizes);
	free(index);
	ev->index = NULL;
	return ok;
}

void ss_events_finish(struct ss_events *ev)
{
	free(ev->list);
	free(ev->streams);
	memset(ev, 0, sizeof(*ev));
}
