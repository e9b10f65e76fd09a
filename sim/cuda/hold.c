/* SPDX-License-Identifier: MIT */
/*
 * A held stream waits for a word of pinned memory. The words are taken when the context is made,
 * because the driver waits for streams when it takes pinned memory. A word only grows: a stream
 * that was let go and has not noticed yet must not be held by the next one that takes its word.
 *
 * Locks: holds_lock guards the table. The driver is called outside it.
 */
#include <pthread.h>

#include "cuda/context.h"

#define HOLDS 64 /* at once, per device */

static struct holds {
	_Atomic uint64_t *words; /* pinned, read by the device; NULL: there are none */
	struct {
		hipStream_t stream; /* who is held */
		bool on;
		uint64_t until; /* it goes on when the word has come so far */
	} hold[HOLDS];
} devices[SIM_MAX_DEVICES];
static pthread_mutex_t holds_lock = PTHREAD_MUTEX_INITIALIZER;

/* A context is being made and is current. */
static void prepare(int device)
{
	void *words = NULL;

	if (CU(cuMemHostAlloc, &words, HOLDS * sizeof(uint64_t),
	       CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP))
		words = NULL;
	pthread_mutex_lock(&holds_lock);
	devices[device] = (struct holds){.words = words};
	for (int i = 0; words && i < HOLDS; i++)
		atomic_init(&devices[device].words[i], 0);
	pthread_mutex_unlock(&holds_lock);
}

__attribute__((constructor)) static void holds_init(void)
{
	context_when_made(prepare);
}

/* With `on`, finds the place that holds s; otherwise a free place. -1: there is none. Caller holds
 * holds_lock. */
static int find(const struct holds *h, bool on, hipStream_t s)
{
	for (int i = 0; h->words && i < HOLDS; i++)
		if (h->hold[i].on == on && (!on || h->hold[i].stream == s))
			return i;
	return -1;
}

static int device_of(hipStream_t s)
{
	return (uintptr_t)s <= 2 ? current_device() : handle_device(HANDLE_STREAM, s);
}

/* ---- test control, found by dlsym ---- */

#pragma GCC visibility push(default)
int somasim_stall_stream(hipStream_t s);
int somasim_release_stream(hipStream_t s);
#pragma GCC visibility pop

int somasim_stall_stream(hipStream_t s)
{
	_Atomic uint64_t *word = NULL;
	uint64_t until = 0;
	struct holds *h;
	bool held;
	int i;

	if (context_enter() || !stream_known(s))
		return -1;
	h = &devices[device_of(s)];
	pthread_mutex_lock(&holds_lock);
	held = find(h, true, s) >= 0;
	i = held ? -1 : find(h, false, s);
	if (i >= 0) {
		until = ++h->hold[i].until;
		h->hold[i].stream = s;
		h->hold[i].on = true;
		word = &h->words[i];
	}
	pthread_mutex_unlock(&holds_lock);
	if (!word)
		return held ? 0 : -1;
	return CU(cuStreamWaitValue64, (CUstream)s, (CUdeviceptr)(uintptr_t)word, until,
		  CU_STREAM_WAIT_VALUE_GEQ) ?
		       -1 :
		       0;
}

int somasim_release_stream(hipStream_t s)
{
	struct holds *h;
	int i;

	if (!stream_known(s))
		return -1;
	h = &devices[device_of(s)];
	pthread_mutex_lock(&holds_lock);
	i = find(h, true, s);
	if (i >= 0) {
		atomic_store(&h->words[i], h->hold[i].until);
		h->hold[i].on = false;
	}
	pthread_mutex_unlock(&holds_lock);
	return 0;
}
