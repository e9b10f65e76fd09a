/* SPDX-License-Identifier: MIT */
/*
 * The last error of a thread after calls that the shim answered.
 *
 * The runtime keeps it in thread-local memory (tls.last_error_). Up to 6.x every call stores its
 * result there, success too; from 7.0 on only errors are stored, until they are read. To be right
 * in both, the shim stores an error of ours by a real call that fails with the same error and
 * changes nothing. If no such call exists, the thread remembers the error in ss_tls until the next
 * call that would have replaced the error.
 *
 * The first success of ours after an error is stored in the runtime too, by a real call that
 * succeeds. Later ones are not, because a hit makes no call. So one difference remains: an error of
 * a call that we do not intercept stays, up to 6.x, until the runtime's own next success.
 */
#include "driver/rocm/resolve.h"
#include "shim/alloc/last_error.h"
#include "shim/check/checker.h"
#include "shim/handlers.h"
#include "shim/process/real.h"
#include "shim/process/service.h"

hipError_t ss_status_error(enum ss_status status)
{
	static const hipError_t table[] = {
		[SS_OK] = hipSuccess,
		[SS_ERR_NOMEM] = hipErrorOutOfMemory,
		[SS_ERR_INVALID] = hipErrorInvalidValue,
		[SS_ERR_FOREIGN] = hipErrorInvalidValue,
		[SS_ERR_NOT_READY] = hipErrorNotReady,
		[SS_ERR_UNSUPPORTED] = hipErrorNotSupported,
		[SS_ERR_NO_DEVICE] = hipErrorNoDevice,
		[SS_ERR_CAPTURE] = hipErrorStreamCaptureUnsupported,
		[SS_ERR_DEVICE] = hipErrorInvalidDevice,
		[SS_ERR_CLASSIC] = hipErrorInvalidValue,
		[SS_ERR_WOULD_WAIT] = hipErrorOutOfMemory,
		[SS_ERR_FAILED] = hipErrorUnknown,
	};

	return (size_t)status < sizeof(table) / sizeof(table[0]) ? table[status] : hipErrorUnknown;
}

/* None of these calls is affected by a live capture. */
static hipError_t fail_really(hipError_t err)
{
	void *p = NULL;
	size_t size;
	int v = 0;

	switch (err) {
	case hipErrorInvalidValue: return REAL(hipExtMallocWithFlags, NULL, 1, 0);
	case hipErrorOutOfMemory:
		/* Larger than any device, so it is refused at once. */
		return REAL(hipExtMallocWithFlags, &p, (size_t)1 << 62, 0);
	case hipErrorInvalidHandle: return REAL(hipEventQuery, NULL);
	case hipErrorInvalidDevice:
		return REAL(hipDeviceGetAttribute, &v, hipDeviceAttributeIntegrated, -1);
	case hipErrorNotFound: return REAL(hipMemGetAddressRange, (hipDeviceptr_t *)&p, &size, &v);
	default: return hipSuccess;
	}
}

/* In ss_tls.error: the runtime holds the error, and must be told of the next success. */
#define PLACED (-1)

static void succeed_really(void)
{
	int dev;

	(void)REAL(hipGetDevice, &dev);
}

hipError_t ss_fail(hipError_t err)
{
	if (err == hipSuccess)
		return err;
	if (unlikely(ss_checking))
		ss_check_failed(err);
	ss_tls.error = hipSuccess;
	ss_tls.command = hipSuccess;
	if (ss_exiting())
		return err;
	if (fail_really(err) == err) {
		ss_tls.error = PLACED;
	} else {
		/* An error that the runtime still holds is older than ours. From now on an error
		 * there is newer. */
		(void)REAL(hipGetLastError);
		ss_tls.error = ss_tls.command = (int)err;
	}
	return err;
}

hipError_t ss_result_slow(hipError_t err)
{
	bool replaces = ss_tls.error == PLACED || ss_runtime()->major < 7;

	if (unlikely(ss_checking))
		ss_check_failed(err);
	ss_tls.command = hipSuccess;
	if (err == hipErrorNotReady && ss_runtime()->major >= 7)
		return err; /* the runtime does not store it, and it is frequent */
	if (err != hipSuccess) {
		ss_tls.error = PLACED;
	} else if (replaces) {
		if (!ss_exiting())
			succeed_really();
		ss_tls.error = hipSuccess;
	}
	return err;
}

hipError_t do_hipGetLastError(void)
{
	hipError_t real = REAL(hipGetLastError);
	int mine = ss_tls.error;

	if (likely(mine == hipSuccess))
		return real;
	/* For hipExtGetLastError the failed command is still the last one, so the runtime must be
	 * told of the next success. */
	ss_tls.error = mine == PLACED || ss_tls.command ? PLACED : hipSuccess;
	/* The runtime's error is newer than ours. */
	return real != hipSuccess || mine == PLACED ? real : (hipError_t)mine;
}

/* The runtime counts this as a command that failed with the error that it returns. */
hipError_t do_hipPeekAtLastError(void)
{
	hipError_t real = REAL(hipPeekAtLastError);
	int mine = ss_tls.error;

	if (unlikely(real != hipSuccess) && mine == hipSuccess)
		ss_tls.error = PLACED;
	if (likely(mine == hipSuccess) || mine == PLACED || real != hipSuccess)
		return real;
	ss_tls.command = mine;
	return (hipError_t)mine;
}

/* Returns the last command's result and clears it; the last error of the other two stays. */
hipError_t do_hipExtGetLastError(void)
{
	hipError_t real = REAL(hipExtGetLastError);
	int mine = ss_tls.command;

	if (likely(mine == hipSuccess))
		return real;
	ss_tls.command = hipSuccess;
	return (hipError_t)mine;
}

__attribute__((cold)) hipError_t ss_gate_error(enum ss_gate gate)
{
	return gate == SS_GATE_SHUT ? hipErrorDeinitialized : ss_fail(hipErrorOutOfMemory);
}
