/* SPDX-License-Identifier: MIT */
/* hipIpc*: memory and events that other processes open. */
#include <string.h>
#include <unistd.h>

#include "device/device_queues.h"
#include "device/fault.h"
#include "device/ipc.h"
#include "device/options.h"
#include "device/queue.h"
#include "device/record.h"
#include "device/command.h"
#include "device/shared_event.h"
#include "hip/allocation.h"
#include "hip/entry_points.h"
#include "hip/handle.h"
#include "hip/thread_state.h"
#include "hip/version.h"

/* The content of a hipIpcMemHandle_t, in the layout of the real runtime. */
struct ipc_handle {
	struct sim_ipc_handle hsa;
	uint64_t size, offset;
	uint32_t pid, device;
	uint32_t unused[2];
};
_Static_assert(sizeof(struct ipc_handle) == sizeof(hipIpcMemHandle_t),
	       "a handle fills hipIpcMemHandle_t");

hipError_t i_hipIpcGetMemHandle(hipIpcMemHandle_t *out, void *ptr)
{
	struct ipc_handle h = {.size = 0};
	struct sim_alloc a;

	if (!out || !ptr)
		return hipErrorInvalidValue;
	if (!hip_find(ptr, &a) || !a.hip)
		return hipErrorInvalidValue;
	if (a.kind == SIM_MAPPED) {
		if (sim_opt.quirk[SIM_Q_IPC_VMM])
			sim_fault(ptr, "hipIpcGetMemHandle",
				  "VMM memory: the real driver loses it until reboot");
		return hipErrorInvalidValue;
	}
	if (a.kind != SIM_DEVICE)
		return hipErrorInvalidValue;
	if (sim_ipc_export(&a, &h.hsa))
		return hipErrorOutOfMemory;
	h.size = a.size;
	h.offset = (uintptr_t)ptr - a.r.base;
	h.pid = (uint32_t)getpid();
	h.device = V7 ? (uint32_t)current_device() : 0;
	memcpy(out, &h, sizeof h);
	return hipSuccess;
}

hipError_t i_hipIpcOpenMemHandle(void **out, hipIpcMemHandle_t handle, unsigned flags)
{
	struct ipc_handle h;
	void *p;

	/* hipIpcMemLazyEnablePeerAccess was 0 in 5.2 and is 1 now; nothing else is legal. */
	if (!out || flags > 1 || (V6 && !flags))
		return hipErrorInvalidValue;
	memcpy(&h, &handle, sizeof h);
	if (!h.size)
		return hipErrorInvalidValue;
	if (h.pid == (uint32_t)getpid())
		return hipErrorInvalidContext;
	/* The device's number in the exporter, whatever this process calls it. */
	if (V7 && h.device >= (uint32_t)sim_opt.devices)
		return hipErrorInvalidValue;
	/* The offset is ignored, so the importer gets the base of the allocation. Since 7.0 a
	 * second open of the same handle gives the same mapping. */
	p = sim_ipc_import(&h.hsa, h.size, current_device(), V7 && !h.offset);
	if (!p)
		return hipErrorInvalidDevicePointer;
	*out = p;
	return hipSuccess;
}

hipError_t i_hipIpcCloseMemHandle(void *ptr)
{
	struct sim_alloc a;
	struct sim_queue *q = sim_null_queue(current_device());

	/* The current device's null stream, whatever device the mapping belongs to. */
	sim_queue_drain(q);
	sim_queue_unref(q);
	if (!ptr || !hip_find(ptr, &a) || a.kind != SIM_IMPORT || a.ownertype == OWNER_POOL)
		return hipErrorInvalidValue;
	sim_device_drain(a.device);
	return sim_ipc_close(ptr, true) ? hipSuccess : hipErrorInvalidValue;
}

/* ---- events ---- */

/* The start of a hipIpcEventHandle_t. */
struct event_handle {
	uint32_t magic, pid;
	int32_t fd;
};
#define EVENT_HANDLE 0x45484e44u

hipError_t i_hipIpcGetEventHandle(hipIpcEventHandle_t *out, hipEvent_t event)
{
	struct event_handle h = {EVENT_HANDLE, (uint32_t)getpid(), -1};
	struct event *ev = event_of(event);
	struct sim_shared_event *shared;
	struct sim_record *r;

	if (!out)
		return hipErrorInvalidValue;
	if (!ev || !(ev->flags & hipEventInterprocess))
		return hipErrorInvalidHandle;
	if (!ev->shared) {
		shared = sim_shared_event_new();
		if (!shared)
			return hipErrorOutOfMemory;
		pthread_mutex_lock(&ev->lock);
		ev->shared = shared;
		r = ev->record;
		/* A record made before the export counts as the first one. */
		if (r && !sim_record_done(r)) {
			struct sim_command *c;

			ev->shared_seq = sim_shared_event_record(shared);
			c = sim_shared_record_command(shared, ev->shared_seq);
			sim_command_depend(c, r->queue, r->seq);
			sim_enqueue(r->queue, c);
		}
		pthread_mutex_unlock(&ev->lock);
	}
	h.fd = sim_shared_event_fd(ev->shared);
	memset(out, 0, sizeof *out);
	memcpy(out, &h, sizeof h);
	return hipSuccess;
}

hipError_t i_hipIpcOpenEventHandle(hipEvent_t *out, hipIpcEventHandle_t handle)
{
	struct sim_shared_event *shared;
	struct event_handle h;

	if (!out)
		return hipErrorInvalidValue;
	memcpy(&h, &handle, sizeof h);
	if (h.magic != EVENT_HANDLE)
		return hipErrorInvalidValue;
	if (h.pid == (uint32_t)getpid())
		return hipErrorInvalidContext;
	shared = sim_shared_event_open(h.pid, h.fd);
	if (!shared)
		return hipErrorInvalidValue;
	*out = event_handle_new(hipEventDisableTiming | hipEventInterprocess);
	if (!*out)
		return hipErrorOutOfMemory;
	event_of(*out)->shared = shared;
	return hipSuccess;
}
