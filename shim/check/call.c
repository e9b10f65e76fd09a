/* SPDX-License-Identifier: MIT */
/* The call of each thread: it begins, and ends with a result, which says what was not used, or
 * waited for. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/check/call.h"
#include "shim/check/quarantine.h"

static struct ss_call spare = {.shared = true}; /* of threads for which there is no host memory */
static pthread_key_t calls;
static __thread __attribute__((tls_model("initial-exec"))) struct ss_call *mine;

static void forget(void *gone)
{
	mine = NULL;
	ss_operands_drop(&((struct ss_call *)gone)->uses);
	free(gone);
}

/* Only programs that are checked pay for it, since all libraries share the room of static TLS. */
struct ss_call *ss_call_of_thread(void)
{
	if (!mine) {
		mine = calloc(1, sizeof(*mine));
		if (mine)
			pthread_setspecific(calls, mine);
	}
	return mine ? mine : &spare;
}

bool ss_call_init(void)
{
	return !pthread_key_create(&calls, forget);
}

void ss_check_call_begins(const char *name, unsigned kind)
{
	struct ss_call *call = ss_call_of_thread();

	memset(&call->name, 0, offsetof(struct ss_call, uses) - offsetof(struct ss_call, name));
	call->uses.count = 0;
	call->uses.lost = false;
	call->name = name;
	call->kind = kind;
	call->since = ss_check_now(ss_check_state);
	if (ss_distrusted(ss_core))
		ss_check_blind(ss_check_state);
	if (kind & SS_CALL_POOLS)
		(void)ss_quarantine_empty(false);
}

void ss_check_called(hipError_t err)
{
	const struct ss_call *call = ss_call_of_thread();

	if (call->captured && err == hipSuccess)
		ss_check_captured(ss_timeline_native(call->captured), &call->uses);
	/* What a call that failed was about to use is not used. */
	if ((call->pageable || err != hipSuccess) && call->stream)
		ss_check_tell(ss_check_state, call->stream);
	/* Of the others nobody promises whether they wait. */
	if (call->stream && (call->kind & SS_CALL_COPIES)) {
		if (call->to_host && err == hipSuccess)
			ss_check_stream_synced(ss_check_state, call->stream, call->since);
		else
			ss_check_tell(ss_check_state, call->stream);
	}
	if (call->kind & SS_CALL_WAITS)
		ss_check_all_synced(ss_check_state, -1, call->since);
}

const char *ss_call_name(void)
{
	const struct ss_call *call = ss_call_of_thread();

	return call->name ? call->name : "a HIP call";
}

struct ss_operands *ss_operands_of_call(void)
{
	struct ss_call *call = ss_call_of_thread();

	return call->shared ? NULL : &call->uses;
}

uint32_t ss_call_stack(void)
{
	struct ss_call *call = ss_call_of_thread();
	struct ss_stack_bounds none = {0};

	if (!call->has_stack)
		call->stack = ss_check_stack(call->shared ? &none : &call->bounds);
	call->has_stack = true;
	return call->stack;
}
