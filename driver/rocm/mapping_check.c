/* SPDX-License-Identifier: MIT */
/*
 * On some runtimes a fresh mapping loses stores of the first milliseconds (quirk C2). On these
 * runtimes every mapping is written and read back on a stream of our own until it keeps the data,
 * before it is used. The stream must be idle before the memory is unmapped, so a list remembers
 * each check for which the wait failed.
 *
 * Locks: lock, for that list. The lock is a leaf, and not held across a call.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/rocm/calls.h"
#include "driver/rocm/mapping_check.h"

#define UNIT SS_MIN_CHUNK
#define WAIT_MS 10 /* 2 ms were observed (rocm-systems#11693) */
#define TRIES 50
#define STAMP 64

struct check {
	char *va;
	size_t size;
	int dev;
	hipStream_t stream;
	/* Not on the stack, since a copy may still run when the call returns. */
	unsigned char out[STAMP], in[STAMP];
	struct check *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct check *unended;
static atomic_uint unended_count;

/* Writes a stamp into every unit and reads it back after WAIT_MS. */
static hipError_t write_and_read(struct check *t, unsigned char value, bool *kept)
{
	hipError_t err = hipSuccess;

	*kept = true;
	memset(t->out, value, STAMP);
	for (size_t at = 0; at < t->size && err == hipSuccess; at += UNIT)
		err = SS_HIP(hipMemcpyAsync, t->va + at, t->out, STAMP, hipMemcpyHostToDevice,
			     t->stream);
	if (err == hipSuccess)
		err = SS_HIP(hipStreamSynchronize, t->stream);
	usleep(WAIT_MS * 1000);
	for (size_t at = 0; at < t->size && err == hipSuccess && *kept; at += UNIT) {
		err = SS_HIP(hipMemcpyAsync, t->in, t->va + at, STAMP, hipMemcpyDeviceToHost,
			     t->stream);
		if (err == hipSuccess)
			err = SS_HIP(hipStreamSynchronize, t->stream);
		*kept = err == hipSuccess && !memcmp(t->in, t->out, STAMP);
	}
	return err;
}

/* Waits for the stream of the check and frees both. If the wait fails, the check is put into the
 * list, and false is returned. */
static bool finish(struct check *t)
{
	if (SS_HIP(hipStreamSynchronize, t->stream) == hipSuccess) {
		(void)SS_HIP(hipStreamDestroy, t->stream);
		free(t);
		return true;
	}
	pthread_mutex_lock(&lock);
	t->next = unended;
	unended = t;
	atomic_fetch_add(&unended_count, 1);
	pthread_mutex_unlock(&lock);
	return false;
}

enum ss_status ss_rocm_mapping_check(void *ctx, int dev, void *va, size_t size)
{
	hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
	bool kept = false;
	struct check *t;
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
		for (int i = 0; i < TRIES && err == hipSuccess && !kept; i++) {
			usleep(WAIT_MS * 1000);
			err = write_and_read(t, (unsigned char)(0x5a + i), &kept);
		}
		(void)finish(t);
	} else {
		free(t);
	}
	(void)SS_HIP(hipThreadExchangeStreamCaptureMode, &mode);
out:
	ss_scope_close(&s);
	return err == hipSuccess && !kept ? SS_ERR_FAILED : ss_rocm_status(err);
}

/* Removes from the list a check of the device that uses [va, va + size); `va` NULL: any. */
static struct check *take(int dev, const char *va, size_t size)
{
	struct check **at, *t;

	pthread_mutex_lock(&lock);
	for (at = &unended; (t = *at); at = &t->next)
		if (t->dev == dev && (!va || (t->va < va + size && va < t->va + t->size)))
			break;
	if (t) {
		*at = t->next;
		atomic_fetch_sub(&unended_count, 1);
	}
	pthread_mutex_unlock(&lock);
	return t;
}

bool ss_rocm_mapping_check_ended(int dev, void *va, size_t size)
{
	struct check *t;

	while (atomic_load(&unended_count) && (t = take(dev, va, size)))
		if (!finish(t))
			return false;
	return true;
}

/* The checks are not freed: a copy may write into them until the reset is over. */
void ss_rocm_mapping_check_reset(int dev)
{
	while (atomic_load(&unended_count) && take(dev, NULL, 0))
		;
}
