/* SPDX-License-Identifier: MIT */
/*
 * Where a fresh mapping loses what is stored at first (C2), it is waited for and tried, by
 * a stream of our own, before anybody gets it. What then runs on that stream is over before
 * the memory is unmapped: a trial that the runtime would not wait for is remembered.
 *
 * Locks: lock (the list of those). Leaf; not held across a call.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/rocm/rocm.h"

#define UNIT SS_LEAST_CHUNK
#define SETTLE_MS 10 /* 2 were observed (rocm-systems#11693) */
#define SETTLE_TRIES 50
#define STAMP 64

struct trial {
	char *va;
	size_t size;
	int dev;
	hipStream_t stream;
	/* Not on the stack: copies may outlive the call. */
	unsigned char out[STAMP], in[STAMP];
	struct trial *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct trial *running;
static atomic_uint count;

/* Writes a stamp into every unit, and reads it back after a while. */
static hipError_t stamp(struct trial *t, unsigned char value, bool *kept)
{
	hipError_t err = hipSuccess;

	*kept = true;
	memset(t->out, value, STAMP);
	for (size_t at = 0; at < t->size && err == hipSuccess; at += UNIT)
		err = SS_HIP(hipMemcpyAsync, t->va + at, t->out, STAMP, hipMemcpyHostToDevice,
			     t->stream);
	if (err == hipSuccess)
		err = SS_HIP(hipStreamSynchronize, t->stream);
	usleep(SETTLE_MS * 1000);
	for (size_t at = 0; at < t->size && err == hipSuccess && *kept; at += UNIT) {
		err = SS_HIP(hipMemcpyAsync, t->in, t->va + at, STAMP, hipMemcpyDeviceToHost,
			     t->stream);
		if (err == hipSuccess)
			err = SS_HIP(hipStreamSynchronize, t->stream);
		*kept = err == hipSuccess && !memcmp(t->in, t->out, STAMP);
	}
	return err;
}

/* Nothing of it runs any more, or it goes (back) into the list. */
static bool ended(struct trial *t)
{
	if (SS_HIP(hipStreamSynchronize, t->stream) == hipSuccess) {
		(void)SS_HIP(hipStreamDestroy, t->stream);
		free(t);
		return true;
	}
	pthread_mutex_lock(&lock);
	t->next = running;
	running = t;
	atomic_fetch_add(&count, 1);
	pthread_mutex_unlock(&lock);
	return false;
}

enum ss_status ss_rocm_vmm_settle(void *ctx, int dev, void *va, size_t size)
{
	hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
	bool kept = false;
	struct trial *t;
	hipError_t err;
	struct ss_scope s;

	(void)ctx;
	if (!(ss_rocm.quirks[dev] & SS_Q_SETTLE))
		return SS_OK;
	t = calloc(1, sizeof(*t));
	if (!t)
		return SS_ERR_FAILED;
	t->va = va;
	t->size = size;
	t->dev = dev;
	if (!ss_scope_open(&s, dev)) {
		free(t);
		return SS_ERR_NO_DEVICE;
	}
	err = SS_HIP(hipThreadExchangeStreamCaptureMode, &mode);
	if (err != hipSuccess) {
		free(t);
		goto out;
	}
	err = SS_HIP(hipStreamCreateWithFlags, &t->stream, hipStreamNonBlocking);
	if (err == hipSuccess) {
		for (int i = 0; i < SETTLE_TRIES && err == hipSuccess && !kept; i++) {
			usleep(SETTLE_MS * 1000);
			err = stamp(t, (unsigned char)(0x5a + i), &kept);
		}
		(void)ended(t);
	} else {
		free(t);
	}
	(void)SS_HIP(hipThreadExchangeStreamCaptureMode, &mode);
out:
	ss_scope_close(&s);
	return err == hipSuccess && !kept ? SS_ERR_FAILED : ss_rocm_status(err);
}

/* One out of the list that works on [va, va + size), or one of `dev`'s; NULL: none. */
static struct trial *take(int dev, const char *va, size_t size)
{
	struct trial **at, *t;

	pthread_mutex_lock(&lock);
	for (at = &running; (t = *at); at = &t->next)
		if (t->dev == dev && (!va || (t->va < va + size && va < t->va + t->size)))
			break;
	if (t) {
		*at = t->next;
		atomic_fetch_sub(&count, 1);
	}
	pthread_mutex_unlock(&lock);
	return t;
}

bool ss_rocm_settle_ended(int dev, void *va, size_t size)
{
	struct trial *t;

	while (atomic_load(&count) && (t = take(dev, va, size)))
		if (!ended(t))
			return false;
	return true;
}

/* The streams go with the device. (Small, and perhaps a copy's target until then.) */
void ss_rocm_settle_reset(int dev)
{
	while (atomic_load(&count) && take(dev, NULL, 0))
		;
}
