/* SPDX-License-Identifier: MIT */
/*
 * Page faults of the device. The HSA runtime calls one handler per process. With SOMASHIM_CHECK
 * this handler is ours, and it calls the handlers of the program and of HIP. The runtime gets their
 * answer: it prints the address and ends the process, unless one of them has handled the fault. No
 * lock.
 */
#include <hsa/hsa_ext_amd.h>
#include <stdlib.h>

#include "core/base/backoff.h"
#include "driver/rocm/resolve.h"
#include "shim/check/checker.h"
#include "shim/check/inside.h"

#define HANDLERS_MAX 8

typedef hsa_status_t register_fn(hsa_amd_system_event_callback_t, void *);

static struct {
	hsa_amd_system_event_callback_t _Atomic fn;
	void *data;
} theirs[HANDLERS_MAX];
static atomic_int count; /* number of handlers, or more */
/* The owner of the handler that the runtime calls. A thread that finds the registration in progress
 * waits. */
static _Atomic enum { UNKNOWN, ASKING, OURS, NOT_OURS } whose;

static hsa_status_t on_event(const hsa_amd_event_t *event, void *unused)
{
	hsa_status_t answer = HSA_STATUS_ERROR;

	(void)unused;
	if (ss_checking && event->event_type == HSA_AMD_GPU_MEMORY_FAULT_EVENT)
		ss_check_memory_fault(ss_check_state, event->memory_fault.virtual_address);
	for (int i = 0; i < HANDLERS_MAX; i++) {
		hsa_amd_system_event_callback_t fn = atomic_load(&theirs[i].fn);

		if (fn && fn(event, theirs[i].data) == HSA_STATUS_SUCCESS)
			answer = HSA_STATUS_SUCCESS;
	}
	return answer;
}

static register_fn *real(void)
{
	return (register_fn *)ss_hsa_symbol("hsa_amd_register_system_event_handler");
}

void ss_fault_watch(void)
{
	__typeof__(whose) unknown = UNKNOWN;
	register_fn *fn = real();
	hsa_status_t status;
	unsigned turn = 0;

	while (fn && !atomic_compare_exchange_strong(&whose, &unknown, ASKING)) {
		if (unknown != ASKING)
			return;
		unknown = UNKNOWN;
		ss_backoff(&turn);
	}
	if (!fn)
		return;
	status = fn(on_event, NULL);
	/* Before hsa_init() the runtime refuses, and a later call may succeed. */
	atomic_store(&whose, status == HSA_STATUS_SUCCESS               ? OURS :
			     status == HSA_STATUS_ERROR_NOT_INITIALIZED ? UNKNOWN :
									  NOT_OURS);
}

/* HIP registers its own handler while it starts, which is before the checker does. */
__attribute__((visibility("default"))) hsa_status_t hsa_amd_register_system_event_handler(
	hsa_amd_system_event_callback_t callback, void *data)
{
	const char *check = secure_getenv("SOMASHIM_CHECK");
	register_fn *fn = real();
	int at;

	if (!fn) /* the runtime's answer before hsa_init() */
		return HSA_STATUS_ERROR_NOT_INITIALIZED;
	if (callback && check && check[0])
		ss_fault_watch();
	if (!callback || atomic_load(&whose) != OURS)
		return fn(callback, data);
	at = atomic_fetch_add(&count, 1);
	if (at >= HANDLERS_MAX)
		return HSA_STATUS_ERROR;
	theirs[at].data = data;
	atomic_store(&theirs[at].fn, callback);
	return HSA_STATUS_SUCCESS;
}
