/* SPDX-License-Identifier: MIT */
/*
 * The threads of a program. Each owns the blocks that it holds; a block goes to another thread
 * through that thread's mailbox.
 */
#ifndef TESTS_WORKER_H
#define TESTS_WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include "concurrent.h"
#include "schedule.h"
#include "tests/random.h"

#define HELD 64  /* blocks of one thread, beside those of its loop */
#define LOOP 64  /* steps of a loop, */
#define SLOTS 20 /* and blocks of it */

struct block {
	char *p;
	size_t size;
	uint64_t id;
	int stream; /* its last use; NO_STREAM: hipMalloc, and never used */
	bool exported;
	bool event_known;      /* the core knows &event */
	char event;            /* its address is the handle of an event, */
	struct ss_fence point; /* which was recorded here; h NULL: it was not */
	struct block *next;    /* in a mailbox */
};

struct worker {
	pthread_t thread;
	uint64_t rng;
	/* Stream that no other thread uses, and that this one may destroy */
	int index, own;
	struct block *held[HELD];
	int count;
	/* What it does again and again, as programs do: */
	struct {
		int slot;
		size_t size;
	} loop[LOOP];
	int at; /* it frees the slot, or allocates there */
	struct block *slot[SLOTS];
	struct ss_pool *pool; /* of its own, or NULL */
	pthread_mutex_t lock;
	struct block *mail; /* from other threads; under the lock */
};

extern struct worker worker[MOST_THREADS];
extern int threads, shared_streams;
extern struct ss_core *core;
extern struct ss_timeline *_Atomic timeline[STREAMS];
extern uint64_t sizes;
extern bool failures; /* calls of the driver may fail */

static inline unsigned below(struct worker *w, unsigned n)
{
	return (unsigned)(next_random(&w->rng) % n);
}

/* ---- allocations.c ------------------------------------------------------ */

void take_any(struct worker *w);
/* Frees the block, in one of the ways that programs have. */
void give(struct worker *w, struct block *b);
/* Removes a block from those that the thread holds; there is one. */
struct block *pick(struct worker *w);
void pass_on(struct worker *w, struct block *b);
void read_mail(struct worker *w);
/* A loop on the thread's own stream: what most programs do most of the time. */
void draw_loop(struct worker *w);
void loop(struct worker *w);
void end_loop(struct worker *w);

/* ---- calls.c ------------------------------------------------------------ */

int any_stream(struct worker *w);
int stream_number(const void *native);
/* What uses the block from now on does so on `stream`, behind its last use. */
void move_to(struct worker *w, struct block *b, int stream);
/* A stream begins, blocking or not. */
void new_stream(struct worker *w, int stream);
void synchronize(struct worker *w);
/* Lists, lookups and figures. */
void look(struct worker *w);
/* What programs seldom do, and failures of the driver. */
void control(struct worker *w);

#endif
