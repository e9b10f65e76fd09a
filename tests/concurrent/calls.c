/* SPDX-License-Identifier: MIT */
/* Events, synchronization, pools and what else programs call, and failures of the driver. */
#include <stdlib.h>

#include "core/order/watched.h"
#include "core/statistics.h"
#include "worker.h"

int any_stream(struct worker *w)
{
	if (below(w, 3))
		return w->own;
	return below(w, 4) ? (int)below(w, (unsigned)shared_streams) : NULL_STREAM;
}

int stream_number(const void *native)
{
	return native ? (int)(((uintptr_t)native - (uintptr_t)native_of(0)) / 16) : NULL_STREAM;
}

/* ---- events ----------------------------------------------------------------- */

static bool record(struct block *b)
{
	struct ss_token t = ss_record_begin(core, &b->event, timeline[b->stream]);
	struct ss_fence old = b->point;
	bool ok = device_record(b->stream, &b->point);

	if (ok && old.h)
		device_forget(&old);
	ss_record_end(core, &t, ok);
	return ok;
}

static bool wait_for(const struct block *b, int stream)
{
	struct ss_token t = ss_wait_begin(core, (void *)&b->event, timeline[stream]);
	bool ok = device_wait(stream, &b->point);

	ss_wait_end(core, &t, ok);
	return ok;
}

/* ---- synchronization -------------------------------------------------------- */

static void synchronize_stream(int stream)
{
	struct ss_token t = ss_stream_sync_begin(core, timeline[stream]);

	device_drain(stream);
	ss_sync_end(core, &t, true, true);
}

void move_to(struct worker *w, struct block *b, int stream)
{
	if (b->stream != NO_STREAM && b->stream != stream) {
		if (!b->event_known && below(w, 2))
			ss_event_add(core, &b->event);
		b->event_known = true;
		/* A device without room for events: the program waits itself. */
		if (!record(b) || !wait_for(b, stream))
			synchronize_stream(b->stream);
	}
	b->stream = stream;
	enqueue(stream);
}

void synchronize(struct worker *w)
{
	int stream = any_stream(w);
	struct ss_token t;
	bool done;

	switch (below(w, 4)) {
	case 0:
		t = ss_device_sync_begin(core, 0);
		device_drain_all();
		ss_sync_end(core, &t, true, true);
		return;
	case 1:
		t = ss_stream_query_begin(core, timeline[stream]);
		done = ss_fake_done(fake, 0, native_of(stream)) ==
		       ss_fake_enqueued(fake, 0, native_of(stream));
		ss_sync_end(core, &t, done, false);
		return;
	default: synchronize_stream(stream);
	}
}

/* ---- what programs seldom do ------------------------------------------------ */

void new_stream(struct worker *w, int stream)
{
	bool blocking = below(w, 2);

	device_stream(stream, blocking);
	timeline[stream] = ss_timeline_add(core, 0, native_of(stream),
					   blocking ? SS_TL_BLOCKING : SS_TL_NONBLOCKING, true);
}

static void renew_stream(struct worker *w)
{
	/* The program may not use its handle any more. */
	end_loop(w);
	for (int i = 0; i < w->count; i++)
		if (w->held[i]->stream == w->own)
			move_to(w, w->held[i], (int)below(w, (unsigned)shared_streams));
	if (ss_timeline_retire(core, timeline[w->own]))
		device_drain(w->own);
	new_stream(w, w->own);
}

static void renew_pool(struct worker *w)
{
	if (w->pool) {
		if (ss_pool_destroy(core, w->pool) != SS_OK)
			wrong("a pool could not be destroyed");
		w->pool = NULL;
	} else if (ss_pool_create(core, 0, 0, &w->pool) != SS_OK) {
		wrong("a pool could not be created");
	}
}

static void export_block(struct worker *w)
{
	struct block *b = w->count ? w->held[0] : NULL;
	struct ss_ipc_place place;

	if (!b || b->size < 4096 || ss_ipc_find(core, b->p, &place) != SS_OK)
		return;
	ss_ipc_export(core, &place);
	b->exported = true;
}

/* One of the next calls of the driver fails. */
static void fail(struct worker *w)
{
	static const struct {
		const char *operation;
		enum ss_status status;
	} calls[] = {
		{"segment_alloc", SS_ERR_NOMEM},  {"segment_alloc", SS_ERR_FAILED},
		{"segment_free", SS_ERR_FAILED},  {"segment_access", SS_ERR_FAILED},
		{"vmm_reserve", SS_ERR_NOMEM},    {"chunk_create", SS_ERR_NOMEM},
		{"chunk_release", SS_ERR_FAILED}, {"map", SS_ERR_FAILED},
		{"unmap", SS_ERR_FAILED},         {"set_access", SS_ERR_FAILED},
		{"fence_record", SS_ERR_CAPTURE}, {"fence_record", SS_ERR_NOMEM},
		{"fence_wait", SS_ERR_FAILED},    {"fence_query", SS_ERR_FAILED},
		{"mem_info", SS_ERR_FAILED},
	};
	unsigned i = below(w, sizeof(calls) / sizeof(*calls));

	ss_fake_fail(fake, calls[i].operation, 1 + below(w, 3), calls[i].status);
}

static void count_pool(const struct ss_pool_stats *s, void *arg)
{
	*(uint64_t *)arg += s->used;
}

static void count_device(const struct ss_device_stats *s, void *arg)
{
	*(uint64_t *)arg += s->ended_count;
}

void look(struct worker *w)
{
	static const struct ss_stats_visitor visitor = {count_device, count_pool};
	struct ss_block_entry *list;
	struct ss_block_info info;
	const struct block *b;
	uint64_t x = 0;

	switch (below(w, 6)) {
	case 0: ss_stats_try(core, &visitor, &x); return;
	case 1:
		if (ss_blocks_list(core, &list) != SIZE_MAX)
			free(list);
		return;
	case 2: ss_idle_bytes(core, 0); return;
	case 3: ss_device_record_and_ask(core, 0, false); return;
	default:
		if (!w->count)
			return;
		b = w->held[below(w, (unsigned)w->count)];
		if (!ss_lookup(core, b->p + below(w, (unsigned)b->size), &info) || !info.live ||
		    info.base != b->p || info.size != b->size)
			wrong("a lookup did not find the live block of %zu bytes at %p", b->size,
			      (void *)b->p);
		if (!ss_bytes_left(core, b->p, &x) || x < b->size)
			wrong("a live block of %zu bytes has only %llu left", b->size,
			      (unsigned long long)x);
	}
}

void control(struct worker *w)
{
	struct ss_pool *pool = w->pool && below(w, 2) ? w->pool : ss_pool_default(core, 0);
	uint64_t end = 0;

	switch (below(w, 12)) {
	case 0: ss_pool_trim(core, pool, (uint64_t)below(w, 4) << 20); return;
	case 1:
		ss_pool_set_attr(core, pool, SS_ATTR_RELEASE_THRESHOLD,
				 below(w, 2) ? UINT64_MAX : (uint64_t)below(w, 8) << 20);
		return;
	case 2:
		ss_pool_set_attr(core, pool, SS_ATTR_REUSE_FOLLOW_EVENTS + below(w, 3),
				 below(w, 3) != 0);
		return;
	case 3: ss_release_idle(core, 0, false, &end); return;
	case 4:
		ss_fake_advance_ms(fake, 1 + below(w, 30));
		ss_decay_run(core, 0, false);
		return;
	case 5: renew_pool(w); return;
	case 6: renew_stream(w); return;
	case 7: ss_pool_set_access(pool, below(w, 2) << 1, 2); return;
	case 8: ss_device_add_peers(core, 0, 2); return;
	case 9:
		if (below(w, 4) == 0)
			export_block(w);
		return;
	case 10:
		if (failures)
			fail(w);
		return;
	default: look(w);
	}
}
