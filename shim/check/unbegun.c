/* SPDX-License-Identifier: MIT */
/*
 * Records a fence in front of each copy to pinned memory, to know later whether the copy has begun.
 * The oldest fence of a stream that the device has not reached answers for all copies after it, so
 * a few fences per stream are enough.
 *
 * Locks: `lock`, a leaf; not held across a call into HIP.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "driver/rocm/fence.h"
#include "shim/check/unbegun.h"

#define FENCES 8 /* per stream */

struct fence {
	struct ss_fence is;
	uint64_t n; /* the commands of the stream behind this position are behind the fence */
};

/* The fences of a stream, the oldest first. A thread that asks the device takes them meanwhile. */
struct fenced {
	const struct ss_timeline *tl; /* NULL: unused */
	bool taken, ended;
	unsigned count;
	struct fence fence[FENCES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fenced all[SS_UNBEGUN_ROOM - 1];
static atomic_uint used; /* streams in `all` */

/* The lock is held. NULL: there is none, or another thread has it. */
static struct fenced *take(const struct ss_timeline *tl)
{
	struct fenced *unused = NULL;

	for (unsigned i = 0; i < SS_UNBEGUN_ROOM - 1; i++) {
		if (all[i].tl == tl)
			return all[i].taken ? NULL : &all[i];
		if (!all[i].tl && !unused)
			unused = &all[i];
	}
	if (unused) {
		*unused = (struct fenced){.tl = tl};
		atomic_fetch_add(&used, 1);
	}
	return unused;
}

/* Takes the fences at the index. NULL: there are none, or another thread has them. */
static struct fenced *take_at(unsigned i)
{
	struct fenced *of = NULL;

	pthread_mutex_lock(&lock);
	if (all[i].tl && !all[i].taken) {
		of = &all[i];
		of->taken = true;
	}
	pthread_mutex_unlock(&lock);
	return of;
}

static void release_oldest(struct fenced *of)
{
	ss_rocm_fence_release(NULL, &of->fence[0].is);
	memmove(&of->fence[0], &of->fence[1], --of->count * sizeof(of->fence[0]));
}

/* Of a fence about which the device does not answer nothing is known either. */
static void release_reached(struct fenced *of)
{
	while (of->count && ss_rocm_fence_query(NULL, &of->fence[0].is) != SS_ERR_NOT_READY)
		release_oldest(of);
}

/* False: the stream has ended. */
static bool put_back(struct fenced *of)
{
	bool ended;

	pthread_mutex_lock(&lock);
	ended = of->ended;
	if (!ended)
		of->taken = false;
	if (!ended && !of->count) {
		of->tl = NULL;
		atomic_fetch_sub(&used, 1);
	}
	pthread_mutex_unlock(&lock);
	if (!ended)
		return true;
	while (of->count)
		release_oldest(of);
	pthread_mutex_lock(&lock);
	of->tl = NULL;
	of->taken = false;
	atomic_fetch_sub(&used, 1);
	pthread_mutex_unlock(&lock);
	return false;
}

void ss_unbegun_copy(struct ss_timeline *tl)
{
	struct fenced *of;
	struct fence f;

	/* A record would wait for the thread that waits for the stream, or disturb the capture. */
	if (ss_waited(ss_core, tl) || ss_capture_live() || ss_exiting())
		return;
	pthread_mutex_lock(&lock);
	of = take(tl);
	if (of)
		of->taken = true;
	pthread_mutex_unlock(&lock);
	if (!of)
		return;
	if (of->count == FENCES)
		release_reached(of);
	if (of->count < FENCES && ss_rocm_fence_record(NULL, ss_timeline_device(tl),
						       ss_timeline_native(tl), &f.is) == SS_OK) {
		f.n = ss_check_position(ss_check_state, tl);
		of->fence[of->count++] = f;
	}
	(void)put_back(of);
}

void ss_unbegun(struct ss_check_unbegun list[SS_UNBEGUN_ROOM])
{
	/* The stream of a fence may capture by now, so a query would end the capture. */
	bool may = atomic_load(&used) && !ss_capture_live() && !ss_exiting();
	unsigned count = 0;

	for (unsigned i = 0; may && i < SS_UNBEGUN_ROOM - 1; i++) {
		struct fenced *of = take_at(i);
		bool waits;

		if (!of)
			continue;
		release_reached(of);
		waits = of->count != 0;
		list[count] = (struct ss_check_unbegun){of->tl, waits ? of->fence[0].n : 0};
		count += put_back(of) && waits;
	}
	list[count] = (struct ss_check_unbegun){0};
}

void ss_unbegun_stream_ends(const struct ss_timeline *tl)
{
	struct fenced *of = NULL;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < SS_UNBEGUN_ROOM - 1; i++)
		if (all[i].tl == tl) {
			of = all[i].taken ? NULL : &all[i];
			all[i].ended = all[i].taken = true;
		}
	pthread_mutex_unlock(&lock);
	if (of)
		(void)put_back(of);
}
