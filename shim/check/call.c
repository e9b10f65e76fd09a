/* SPDX-License-Identifier: MIT */
/* The current call of each thread. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/check/call.h"
#include "shim/check/quarantine.h"

/* Shared by threads for which there is no host memory */
static struct ss_call spare = {.shared = true};
static pthread_key_t calls;
static __thread __attribute__((tls_model("initial-exec"))) struct ss_call *mine;

static void forget(void *gone)
{
	mine = NULL;
	ss_operands_drop(&((struct ss_call *)gone)->uses);
	free(gone);
}

/* The call is allocated, so that only checked programs pay for it: all libraries share the room of
 * static TLS. */
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
