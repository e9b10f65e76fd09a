/* SPDX-License-Identifier: MIT */
/*
 * The record that the core keeps for each thread. A record is never unmapped, so other threads may
 * read it at any time. When its thread has ended, a later thread may get it. The record holds
 * everything that the hot path remembers, because a hit then finds all of it behind one pointer.
 */
#ifndef SS_BASE_THREAD_H
#define SS_BASE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/compiler.h"

struct ss_bias;
struct ss_count;
struct ss_pool;
struct ss_shelf;
struct ss_timeline;

/* The shelf that the thread used last, so that a hit need not look it up. It is valid while
 * `gen` equals the core's recent_gen; no two cores ever have the same generation. Only
 * shelf/fast_path.c uses it. */
struct ss_recent {
	uint64_t gen;
	void *native; /* the stream's handle */
	struct ss_timeline *tl;
	struct ss_shelf *shelf;
	struct ss_count *count; /* counts the bytes in use */
	struct ss_pool *pool;
	uint64_t live;     /* state word of a live block of this shelf (shelf/hit.h) */
	uint64_t free_gen; /* as `gen`, but 0 while a free has more to do than a push */
	int dev;
};

struct ss_thread {
	/* The biased lock that the thread holds or is about to take (base/lock.h). Only the
	 * thread itself writes it. */
	_Atomic(struct ss_bias *) inside;
	struct ss_recent stream;  /* of hipMallocAsync and hipFreeAsync */
	struct ss_recent classic; /* of hipMalloc and hipFree under one timeline */
	atomic_bool over;         /* the thread has ended */
	struct ss_thread *spare;  /* the next spare record */
};

/* The calling thread's record. Initial-exec, so that reading it is one load. Never NULL: a thread
 * without a record has &ss_nobody, in which nothing is valid. */
extern _Thread_local struct ss_thread *ss_thread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
extern struct ss_thread ss_nobody __attribute__((visibility("hidden")));

/* Makes a record if the thread has none. &ss_nobody: host memory is out. */
struct ss_thread *ss_thread_record(void);

#endif
