/* SPDX-License-Identifier: MIT */
/*
 * Support for the driver's calls of the runtime: the last error, the current device, and the core's
 * status for an error. No locks.
 */
#include "driver/rocm/calls.h"

struct ss_rocm ss_rocm;
int ss_rocm_devices;

/* ---- errors ------------------------------------------------------------- */

int ss_rocm_error_earlier(void)
{
	if (likely(ss_runtime()->major < 7) || !ss_rocm.f.hipPeekAtLastError)
		return hipSuccess;
	return ss_rocm.f.hipPeekAtLastError();
}

hipError_t ss_rocm_error_restore(int earlier, hipError_t err)
{
	bool error_stays = ss_runtime()->major >= 7;
	int dev;

	/* From 7.0 on, hipErrorNotReady is not stored as the last error. */
	if (!error_stays || err != hipErrorNotReady) {
		if (ss_rocm.f.hipGetLastError)
			(void)ss_rocm.f.hipGetLastError();
		if (earlier != hipSuccess)
			ss_tls.error = earlier;
	}
	/* The failed call is also the last command (hipExtGetLastError) until another call
	 * succeeds, so make a cheap call. */
	if (error_stays)
		(void)ss_rocm.f.hipGetDevice(&dev);
	return err;
}

enum ss_status ss_rocm_status(hipError_t err)
{
	static const struct {
		hipError_t err;
		enum ss_status status;
	} table[] = {
		{hipSuccess, SS_OK},
		{hipErrorOutOfMemory, SS_ERR_NOMEM},
		{hipErrorInvalidValue, SS_ERR_INVALID},
		{hipErrorNotReady, SS_ERR_NOT_READY},
		{hipErrorNotSupported, SS_ERR_UNSUPPORTED},
		{hipErrorNoDevice, SS_ERR_NO_DEVICE},
		{hipErrorInvalidDevice, SS_ERR_NO_DEVICE},
		{hipErrorStreamCaptureUnsupported, SS_ERR_CAPTURE},
		{hipErrorStreamCaptureImplicit, SS_ERR_CAPTURE},
		{hipErrorStreamCaptureInvalidated, SS_ERR_CAPTURE},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].err == err)
			return table[i].status;
	return SS_ERR_FAILED;
}

/* ---- the current device ------------------------------------------------- */

bool ss_scope_open(struct ss_scope *s, int dev)
{
	ss_enter();
	s->switched = false;
	if (SS_HIP(hipGetDevice, &s->old) != hipSuccess)
		goto fail;
	if (s->old == dev)
		return true;
	if (SS_HIP(hipSetDevice, dev) != hipSuccess)
		goto fail;
	s->switched = true;
	return true;
fail:
	ss_leave();
	return false;
}

void ss_scope_close(struct ss_scope *s)
{
	if (s->switched)
		(void)SS_HIP(hipSetDevice, s->old);
	ss_leave();
}
