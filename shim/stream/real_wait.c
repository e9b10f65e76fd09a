/* SPDX-License-Identifier: MIT */
/* Waits of the program, in which its thread may be cancelled. No lock. */
#include <pthread.h>

#include "shim/process/real.h"
#include "shim/process/service.h"
#include "shim/stream/real_wait.h"

struct waits {
	struct ss_token *tokens;
	unsigned count;
};

static void end_waits(void *arg)
{
	struct waits *w = arg;

	for (unsigned i = 0; i < w->count; i++)
		ss_sync_end(ss_core, &w->tokens[i], false, false);
}

hipError_t ss_real_wait(ss_wait_call *real, void *argument, struct ss_token *tokens, unsigned count)
{
	struct waits w = {tokens, count};
	volatile hipError_t err = hipSuccess; /* the cleanup is a setjmp */

	pthread_cleanup_push(end_waits, &w);
	pthread_setcancelstate(ss_tls.cancel, NULL);
	err = real ? real(argument) : ss_real_missing();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
	return err;
}
