/* SPDX-License-Identifier: MIT */
/* Allocations and frees as programs make them, each seen by the shadow. */
#include <stdlib.h>

#include "worker.h"

static _Atomic uint64_t next_id;

/* Each program has its own sizes: `sizes` has a bit for each power of two that may occur, and says
 * whether there are a few of each or any. */
static size_t size_of(struct worker *w)
{
	unsigned bits;

	do
		bits = 8 + below(w, below(w, 8) ? 10 : 14);
	while (!(sizes >> bits & 1));
	return ((size_t)1 << bits) +
	       (sizes & 1 ? below(w, 3) * ((size_t)1 << bits >> 2) : below(w, 1u << bits));
}

/* ---- allocations ------------------------------------------------------------ */

static int miss_alloc(void **out, size_t size, void *native)
{
	return ss_alloc_current(core, timeline[stream_number(native)], size, out);
}

static int miss_free(void *ptr, void *native)
{
	return ss_free_async(core, ptr, timeline[stream_number(native)]);
}

/* NULL: out of memory. */
static struct block *take(struct worker *w, int stream, struct ss_pool *pool, size_t size)
{
	struct block *b;
	int status;
	void *p;

	if (stream == NO_STREAM)
		status = (int)ss_alloc_classic(core, 0, size, &p);
	else if (pool)
		status = (int)ss_alloc_async(core, pool, timeline[stream], size, &p);
	else
		status = ss_hit_alloc(&p, size, native_of(stream), core, miss_alloc);
	if (status == SS_ERR_NOMEM || (status == SS_ERR_FAILED && failures))
		return NULL;
	if (status != SS_OK)
		wrong("an allocation of %zu bytes failed with %d", size, status);
	b = calloc(1, sizeof(*b));
	*b = (struct block){
		.p = p, .size = size, .id = atomic_fetch_add(&next_id, 1), .stream = stream};
	shadow_take(p, size, b->id, stream);
	if (stream != NO_STREAM)
		enqueue(stream);
	return b;
}

void take_any(struct worker *w)
{
	int stream = below(w, 5) ? any_stream(w) : NO_STREAM;
	struct block *b = NULL;

	if (w->count < HELD)
		b = take(w, stream, below(w, 2) ? w->pool : NULL, size_of(w));
	if (b)
		w->held[w->count++] = b;
}

/* ---- frees ------------------------------------------------------------------ */

static void end_block(struct block *b)
{
	if (b->event_known)
		ss_event_forget(core, &b->event);
	if (b->point.h)
		device_forget(&b->point);
	free(b);
}

static void free_classic(struct worker *w, struct block *b)
{
	struct ss_token t;
	enum ss_status st;

	if (below(w, 3)) {
		shadow_free_unknown(b->p, b->size, b->id, b->exported);
		st = ss_free_classic(core, b->p, NULL);
	} else {
		t = ss_streams_sync_begin(core, 0);
		device_drain_all();
		shadow_free_done(b->p, b->size, b->id, b->exported);
		st = ss_free_classic(core, b->p, &t);
	}
	if (st != SS_OK)
		wrong("hipFree of a live block failed with %d", st);
}

/* The block was last used on b->stream, whose work comes before that of `stream`. */
static void free_on(struct block *b, int stream)
{
	int status;

	shadow_free(b->p, b->size, b->id, b->stream, enqueue(b->stream), b->exported);
	status = ss_hit_free(b->p, native_of(stream), core, miss_free);
	if (status == SS_ERR_CLASSIC)
		status = (int)ss_free_classic(core, b->p, NULL);
	if (status != SS_OK)
		wrong("the free of a live block failed with %d", status);
}

void give(struct worker *w, struct block *b)
{
	if (b->stream == NO_STREAM || below(w, 8) == 0) {
		free_classic(w, b);
	} else {
		int stream = any_stream(w);

		/* The null stream is ordered after blocking streams, and they after it, without an
		 * event. */
		if (!device_joins(b->stream, stream)) {
			if (below(w, 4) == 0)
				move_to(w, b, stream);
			stream = b->stream;
		}
		free_on(b, stream);
	}
	end_block(b);
}

struct block *pick(struct worker *w)
{
	int k = (int)below(w, (unsigned)w->count);
	struct block *b = w->held[k];

	w->held[k] = w->held[--w->count];
	return b;
}

/* ---- between threads -------------------------------------------------------- */

/* Blocks whose last use is on a shared stream go to another thread. */
void pass_on(struct worker *w, struct block *b)
{
	struct worker *to = &worker[below(w, (unsigned)threads)];

	if (b->stream == w->own)
		move_to(w, b, (int)below(w, (unsigned)shared_streams));
	pthread_mutex_lock(&to->lock);
	b->next = to->mail;
	to->mail = b;
	pthread_mutex_unlock(&to->lock);
}

void read_mail(struct worker *w)
{
	struct block *b, *next;

	pthread_mutex_lock(&w->lock);
	b = w->mail;
	w->mail = NULL;
	pthread_mutex_unlock(&w->lock);
	for (; b; b = next) {
		next = b->next;
		if (w->count < HELD && below(w, 2))
			w->held[w->count++] = b;
		else
			give(w, b);
	}
}

/* ---- loops ------------------------------------------------------------------ */

void draw_loop(struct worker *w)
{
	for (int i = 0; i < LOOP; i++) {
		w->loop[i].slot = (int)below(w, SLOTS);
		w->loop[i].size = size_of(w);
	}
}

void loop(struct worker *w)
{
	int k = w->at++ % LOOP;
	struct block **b = &w->slot[w->loop[k].slot];

	if (*b) {
		free_on(*b, w->own);
		end_block(*b);
		*b = NULL;
	} else {
		*b = take(w, w->own, NULL, w->loop[k].size);
	}
}

void end_loop(struct worker *w)
{
	for (int i = 0; i < SLOTS; i++) {
		if (!w->slot[i])
			continue;
		free_on(w->slot[i], w->own);
		end_block(w->slot[i]);
		w->slot[i] = NULL;
	}
}
