/* SPDX-License-Identifier: MIT */
/*
 * Execution contexts (from 7.14 on). A stream of one is made by a call of its own. When its
 * context is destroyed it detaches: what runs, runs on, but the handle is good for nothing
 * except hipStreamDestroy, and every other call answers 916. So a stream ends for the
 * core before its context does.
 *
 * The program's own calls say which streams a context has; the runtime has no call that does.
 *
 * Locks: lock (the table of streams). Leaf.
 */
#include <pthread.h>
#include <stdlib.h>

#include "core/hash.h"
#include "shim/share/import.h"

#define DETACHED ((hipError_t)916) /* hipErrorStreamDetached */
#define AT_ONCE 32 /* streams of one context that a synchronization looks at */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct member {
	hipStream_t stream;
	void *context; /* NULL: it has been destroyed, or is about to be */
	UT_hash_handle hh;
} *members;
static _Atomic unsigned count; /* of members: most programs have none */

static struct member *find(hipStream_t stream)
{
	struct member *m;

	HASH_FIND(hh, members, &stream, sizeof(stream), m);
	return m;
}

static void join(hipStream_t stream, void *context)
{
	struct member *m;

	pthread_mutex_lock(&lock);
	m = find(stream);
	if (!m && (m = calloc(1, sizeof(*m)))) {
		m->stream = stream;
		HASH_ADD(hh, members, stream, sizeof(m->stream), m);
		if (SS_HASH_HAS(m)) {
			atomic_fetch_add(&count, 1);
		} else {
			free(m);
			m = NULL;
		}
	}
	if (m)
		m->context = context;
	pthread_mutex_unlock(&lock);
}

void ss_context_forget(hipStream_t stream)
{
	struct member *m;

	if (!atomic_load(&count))
		return;
	pthread_mutex_lock(&lock);
	m = find(stream);
	if (m) {
		HASH_DEL(members, m);
		free(m);
		atomic_fetch_sub(&count, 1);
	}
	pthread_mutex_unlock(&lock);
}

hipError_t ss_context_detached(hipStream_t stream)
{
	struct member *m;
	bool gone;

	if (!atomic_load(&count))
		return hipSuccess;
	pthread_mutex_lock(&lock);
	m = find(stream);
	gone = m && !m->context;
	pthread_mutex_unlock(&lock);
	return gone ? DETACHED : hipSuccess;
}

/* Up to `max` streams of a context into `list`; `leave`: they are detached from now on. */
static unsigned streams_of(void *context, hipStream_t *list, unsigned max, bool leave)
{
	struct member *m, *next;
	unsigned n = 0;

	pthread_mutex_lock(&lock);
	HASH_ITER(hh, members, m, next)
		if (context && m->context == context && n < max) {
			list[n++] = m->stream;
			if (leave)
				m->context = NULL;
		}
	pthread_mutex_unlock(&lock);
	return n;
}

/* The device of a context, or -1. */
static int device_of(void *context)
{
	int dev = -1;

	if (!context || REAL(hipExecutionCtxGetDevice, &dev, context) != hipSuccess)
		return -1;
	return dev;
}

hipError_t do_hipExecutionCtxStreamCreate(hipStream_t *stream, void *context, unsigned int flags,
					  int priority)
{
	int dev = device_of(context);
	hipError_t err;

	/* Before the stream can be used, as in watch.c. */
	if (dev >= 0)
		ss_observer_add(dev, SS_OBSERVER_STREAM);
	err = REAL(hipExecutionCtxStreamCreate, stream, context, flags, priority);
	if (err == hipSuccess && dev >= 0) {
		ss_stream_register(*stream, flags, dev);
		join(*stream, context);
	}
	return ss_result(err);
}

hipError_t do_hipExecutionCtxDestroy(void *context)
{
	unsigned n, max = atomic_load(&count);
	struct { struct ss_timeline *tl; enum ss_timeline_kind kind; } *was;
	int dev = device_of(context);
	hipStream_t *list;
	hipError_t err;

	if (!max)
		return ss_result(REAL(hipExecutionCtxDestroy, context));
	list = malloc(max * sizeof(*list));
	was = calloc(max, sizeof(*was));
	if (!list || !was) {
		free(list);
		free(was);
		return ss_fail(hipErrorOutOfMemory);
	}
	n = streams_of(context, list, max, true);
	for (unsigned i = 0; i < n; i++) {
		was[i].tl = ss_timeline_find(ss_core, list[i]);
		if (was[i].tl) {
			was[i].kind = ss_timeline_kind(was[i].tl);
			ss_stream_retire(list[i], was[i].tl);
		}
	}
	err = REAL(hipExecutionCtxDestroy, context);
	/* The primary context of a device cannot be destroyed. */
	for (unsigned i = 0; err != hipSuccess && i < n; i++)
		if (was[i].tl) {
			join(list[i], context);
			ss_timeline_add(ss_core, dev, list[i], was[i].kind, true);
		}
	free(list);
	free(was);
	return ss_result(err);
}

hipError_t do_hipExecutionCtxSynchronize(void *context)
{
	hipStream_t list[AT_ONCE];
	struct ss_token t[AT_ONCE];
	unsigned n = streams_of(context, list, AT_ONCE, false);
	hipError_t err;

	for (unsigned i = 0; i < n; i++)
		t[i] = ss_stream_sync_begin(ss_core, ss_timeline_find(ss_core, list[i]));
	err = REAL(hipExecutionCtxSynchronize, context);
	for (unsigned i = 0; i < n; i++)
		ss_sync_end(ss_core, &t[i], err == hipSuccess, i == n - 1);
	ss_import_settle(false);
	return ss_result(err);
}

/* On all streams of the context at once: no clock says that. */
hipError_t do_hipExecutionCtxRecordEvent(void *context, hipEvent_t event)
{
	struct ss_token t = ss_record_begin(ss_core, event, NULL);
	hipError_t err = REAL(hipExecutionCtxRecordEvent, context, event);

	ss_record_end(ss_core, &t, false);
	return ss_result(err);
}
