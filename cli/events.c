/* SPDX-License-Identifier: MIT */
/*
 * A log in memory, whatever it was written by: pointers become block numbers,
 * streams become dense, the peak is known before anything is replayed.
 */
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "cli/cli.h"
#include "cli/log.h"

#define MOST (4ull << 40)

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

struct maps {
	struct live *live;
	struct stream *streams;
	uint64_t used;
};

static void *checked(void *p) {
	if (!p) {
		exit(ss_cli_error("out of memory"));
	}
	return p;
}

static struct ss_event *append(struct ss_events *ev) {
	if (ev->count == ev->space) {
		ev->space = ev->space ? 2 * ev->space : 1024;
		ev->list = checked(realloc(ev->list, ev->space * sizeof(*ev->list)));
	}
	return &ev->list[ev->count++];
}

static uint32_t stream_index(struct ss_events *ev, uint64_t handle) {
	struct maps *m = ev->maps;
	struct stream *s;

	HASH_FIND(hh, m->streams, &handle, sizeof(handle), s);
	if (!s) {
		s = checked(calloc(1, sizeof(*s)));
		s->handle = handle;
		s->index = ev->stream_count++;
		HASH_ADD(hh, m->streams, handle, sizeof(handle), s);
		/* The array is full where the index is a power of two: it doubles. */
		if (!(s->index & (s->index - 1))) {
			ev->streams = checked(realloc(ev->streams,
				(s->index ? 2 * (size_t)s->index : 1) * sizeof(*ev->streams)));
		}
		ev->streams[s->index] = handle;
	}
	return s->index;
}

static uint64_t rounded(uint64_t size) {
	return (size + 511) / 512 * 512;
}

const char *ss_events_alloc(struct ss_events *ev, uint64_t pointer, uint64_t size,
		uint64_t stream, uint64_t time_us) {
	struct maps *m = ev->maps;
	struct live *l;

	if (size == 0) {
		return NULL; /* HIP hands out NULL, others whatever is near */
	}
	HASH_FIND(hh, m->live, &pointer, sizeof(pointer), l);
	if (l) {
		return "the pointer is allocated already";
	}
	if (size > MOST || m->used + rounded(size) > MOST || ev->blocks == UINT32_MAX) {
		return "more is live than any device has";
	}
	l = checked(calloc(1, sizeof(*l)));
	*l = (struct live){ .pointer = pointer, .size = size, .block = ev->blocks++ };
	HASH_ADD(hh, m->live, pointer, sizeof(pointer), l);
	uint32_t index = stream_index(ev, stream);
	*append(ev) = (struct ss_event){ time_us, size, l->block, index, false };
	m->used += rounded(size);
	if (m->used > ev->peak) {
		ev->peak = m->used;
		ev->peak_at = ev->count - 1;
	}
	return NULL;
}

void ss_events_free(struct ss_events *ev, uint64_t pointer, uint64_t stream, uint64_t time_us) {
	struct maps *m = ev->maps;
	struct live *l;

	HASH_FIND(hh, m->live, &pointer, sizeof(pointer), l);
	if (!l) {
		ev->unknown_frees += pointer != 0;
		return;
	}
	uint32_t index = stream_index(ev, stream);
	*append(ev) = (struct ss_event){ time_us, 0, l->block, index, true };
	m->used -= rounded(l->size);
	HASH_DEL(m->live, l);
	free(l);
}

static bool read_rmm(struct ss_events *ev, struct ss_input *in, char *err, size_t err_size) {
	struct ss_log_entry e = { 0 };
	struct ss_log *log = ss_log_open(in, err, err_size);
	int st = -1;

	while (log && (st = ss_log_next(log, &e, err, err_size)) == 1) {
		if (e.is_free) {
			ss_events_free(ev, e.pointer, e.stream, e.time_us);
			continue;
		}
		const char *wrong = ss_events_alloc(ev, e.pointer, e.size, e.stream, e.time_us);
		if (wrong) {
			snprintf(err, err_size, "line %llu: %s", e.line, wrong);
			st = -1;
			break;
		}
	}
	ss_log_close(log);
	ev->cut = st == 0 && e.cut ? e.line : 0;
	return st == 0;
}

bool ss_events_read(struct ss_events *ev, const char *path, int device, char *err,
		size_t err_size) {
	struct maps maps = { 0 };
	struct ss_input in;
	bool ok;

	memset(ev, 0, sizeof(*ev));
	if (!ss_input_open(&in, path, err, err_size)) {
		return false;
	}
	ev->maps = &maps;
	if (in.first == 0x80) { /* a pickle of protocol 2 or later */
		ok = ss_snapshot_read(ev, in.file, device, err, err_size);
		if (ok && !ss_input_complete(&in)) {
			snprintf(err, err_size, "%s -dc failed", in.tool);
			ok = false;
		}
	} else if (in.first == '(' || in.first == '}') {
		snprintf(err, err_size, "a pickle of protocol 0 or 1: write it with protocol 2 or "
			"later");
		ok = false;
	} else {
		ok = read_rmm(ev, &in, err, err_size);
	}
	ss_input_close(&in);
	if (ok && ev->count == 0) {
		snprintf(err, err_size, "no allocation in it");
		ok = false;
	}

	struct live *l, *l_next;
	HASH_ITER(hh, maps.live, l, l_next) {
		HASH_DEL(maps.live, l);
		free(l);
	}
	struct stream *s, *s_next;
	HASH_ITER(hh, maps.streams, s, s_next) {
		HASH_DEL(maps.streams, s);
		free(s);
	}
	ev->maps = NULL;
	if (!ok) {
		ss_events_finish(ev);
	}
	return ok;
}

void ss_events_finish(struct ss_events *ev) {
	free(ev->list);
	free(ev->streams);
	memset(ev, 0, sizeof(*ev));
}
