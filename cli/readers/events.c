/* SPDX-License-Identifier: MIT */
/*
 * Builds an allocation log in memory. Pointers become block numbers, stream handles become
 * small indices, and the peak is known before anything is replayed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "cli/readers/events.h"
#include "trace/grow.h"

#define MAX_LIVE_BYTES (4ull << 40) /* more than any device has */

static const char no_memory[] = "out of memory";

struct live {
	uint64_t pointer, size;
	uint32_t block;
	UT_hash_handle hh;
};

struct stream {
	uint64_t handle;
	uint32_t index;
	UT_hash_handle hh;
};

struct ss_events_index {
	struct live *live;
	struct stream *streams;
	uint64_t used; /* live bytes, each block rounded up */
};

static bool append(struct ss_events *ev, struct ss_event event) {
	void *list = ss_grow(ev->list, ev->count, sizeof(*ev->list));

	if (!list) {
		return false;
	}
	ev->list = list;
	ev->list[ev->count++] = event;
	return true;
}

static struct stream *stream_get(struct ss_events *ev, uint64_t handle) {
	struct stream *s;

	HASH_FIND(hh, ev->index->streams, &handle, sizeof(handle), s);
	if (s) {
		return s;
	}
	s = calloc(1, sizeof(*s));
	void *streams = ss_grow(ev->streams, ev->stream_count, sizeof(*ev->streams));
	if (streams) {
		ev->streams = streams;
	}
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

static uint64_t rounded(uint64_t size) {
	return (size + 511) / 512 * 512;
}

const char *ss_events_alloc(struct ss_events *ev, uint64_t pointer, uint64_t size,
		uint64_t stream, uint64_t time_us) {
	struct ss_events_index *index = ev->index;
	struct live *l;

	if (size == 0) {
		return NULL; /* HIP returns NULL for it, other allocators any pointer */
	}
	HASH_FIND(hh, index->live, &pointer, sizeof(pointer), l);
	if (l) {
		return "the pointer is allocated already";
	}
	if (size > MAX_LIVE_BYTES || index->used + rounded(size) > MAX_LIVE_BYTES ||
			ev->blocks == UINT32_MAX) {
		return "more is live than any device has";
	}
	struct stream *s = stream_get(ev, stream);
	l = calloc(1, sizeof(*l));
	if (!s || !l || !append(ev, (struct ss_event){ time_us, size, ev->blocks, s->index,
			false })) {
		free(l);
		return no_memory;
	}
	*l = (struct live){ .pointer = pointer, .size = size, .block = ev->blocks++ };
	HASH_ADD(hh, index->live, pointer, sizeof(pointer), l);
	index->used += rounded(size);
	if (index->used > ev->peak) {
		ev->peak = index->used;
		ev->peak_at = ev->count - 1;
	}
	return NULL;
}

const char *ss_events_free(struct ss_events *ev, uint64_t pointer, uint64_t stream,
		uint64_t time_us) {
	struct ss_events_index *index = ev->index;
	struct live *l;

	HASH_FIND(hh, index->live, &pointer, sizeof(pointer), l);
	if (!l) {
		ev->unknown_frees += pointer != 0;
		return NULL;
	}
	struct stream *s = stream_get(ev, stream);
	if (!s || !append(ev, (struct ss_event){ time_us, 0, l->block, s->index, true })) {
		return no_memory;
	}
	index->used -= rounded(l->size);
	HASH_DEL(index->live, l);
	free(l);
	return NULL;
}

bool ss_events_begin(struct ss_events *ev) {
	memset(ev, 0, sizeof(*ev));
	ev->index = calloc(1, sizeof(*ev->index));
	return ev->index != NULL;
}

void ss_events_end(struct ss_events *ev) {
	struct live *l, *l_next;
	struct stream *s, *s_next;

	HASH_ITER(hh, ev->index->live, l, l_next) {
		HASH_DEL(ev->index->live, l);
		free(l);
	}
	HASH_ITER(hh, ev->index->streams, s, s_next) {
		HASH_DEL(ev->index->streams, s);
		free(s);
	}
	free(ev->index);
	ev->index = NULL;
}

void ss_events_finish(struct ss_events *ev) {
	free(ev->list);
	free(ev->streams);
	memset(ev, 0, sizeof(*ev));
}
