/* SPDX-License-Identifier: MIT */
/*
 * The table of streams of execution contexts. The table is filled from the program's own calls,
 * because no call of the runtime lists the streams of a context.
 *
 * Locks: lock (the table). Leaf.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/hash.h"
#include "shim/stream/context_streams.h"

#define DETACHED ((hipError_t)916) /* hipErrorStreamDetached */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct member {
	hipStream_t stream;
	void *context; /* NULL: the context has been destroyed, or is about to be */
	UT_hash_handle hh;
} * members;
static _Atomic unsigned count; /* number of members; 0 in most programs, which then take no lock */

static struct member *find(hipStream_t stream)
{
	struct member *m;

	HASH_FIND(hh, members, &stream, sizeof(stream), m);
	return m;
}

void ss_context_join(hipStream_t stream, void *context)
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

unsigned ss_context_streams(void *context, hipStream_t *list, unsigned max, bool leave)
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

unsigned ss_context_stream_count(void)
{
	return atomic_load(&count);
}
