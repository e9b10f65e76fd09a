/* SPDX-License-Identifier: MIT */
/* Calls that fail. Failed calls of ROCm's own libraries, which lie in the runtime's folder, are not
 * reported, unless the user asks for all. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "shim/check/call.h"
#include "shim/process/real.h"

/* The folder of the file that has the address, with links followed. False: the folder is
 * unknown. */
static bool folder_of(const void *address, char *out)
{
	Dl_info info;
	char *end;

	if (!address || !dladdr(address, &info) || !info.dli_fname ||
	    !realpath(info.dli_fname, out))
		return false;
	end = strrchr(out, '/');
	if (end)
		*end = '\0';
	return end != NULL;
}

static bool is_of_rocm(uint32_t stack)
{
	char runtime[PATH_MAX], caller[PATH_MAX];
	const struct ss_check_frame *frame;

	if (!ss_check_stack_frames(stack, &frame) || !frame[0].ip ||
	    !folder_of((const void *)(frame[0].ip - 1), caller))
		return false;
	return folder_of((const void *)(uintptr_t)ss_real.hipGetErrorName, runtime) &&
	       strcmp(runtime, caller) == 0;
}

void ss_check_failed(hipError_t err)
{
	struct ss_call *call = ss_call_of_thread();
	const char *name = NULL, *words = NULL;
	uint32_t stack;

	/* A query that returns "not yet" has not failed. */
	if (ss_options.check_api == SS_API_NO || err == hipSuccess || err == hipErrorNotReady ||
	    call->failed || call->shared || !call->name || (call->kind & SS_CALL_ERRORS) ||
	    ss_exiting())
		return;
	call->failed = true;
	stack = ss_call_stack();
	if (ss_options.check_api == SS_API_EXPLICIT && is_of_rocm(stack))
		return;
	ss_enter();
	if (ss_real.hipGetErrorName)
		name = ss_real.hipGetErrorName(err);
	if (ss_real.hipGetErrorString)
		words = ss_real.hipGetErrorString(err);
	ss_leave();
	ss_check_api_error(ss_check_state, name ? name : "an error", words ? words : "", (int)err,
			   call->name, stack);
}
