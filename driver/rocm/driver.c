/* SPDX-License-Identifier: MIT */
/*
 * The operations of core/driver.h on a real ROCm, and the start of the driver.
 *
 * Locks: start_lock, held only while results are stored. Threads that start at the same
 * time each ask the runtime, without the lock, and one of them stores the answer.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/deadline.h"
#include "driver/rocm/access_probe.h"
#include "driver/rocm/calls.h"
#include "driver/rocm/fence.h"
#include "driver/rocm/hsa.h"
#include "driver/rocm/mapping_check.h"
#include "driver/rocm/process_limits.h"
#include "driver/rocm/segment.h"
#include "driver/rocm/vmm.h"

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool started, maps; /* maps: the user chose virtual memory, or a test of it follows */

/* The application did not make this call, so the call must not change the application's last
 * error. */
static int count_devices(const struct ss_rocm *r)
{
	int n = 0;

	if (!r->f.hipGetDeviceCount || !r->f.hipGetDevice || !r->f.hipSetDevice)
		return 0;
	if (r->f.hipGetDeviceCount(&n) != hipSuccess) {
		if (r->f.hipGetLastError)
			(void)r->f.hipGetLastError();
		return 0;
	}
	return n < SS_MAX_DEVICES ? n : SS_MAX_DEVICES;
}

int ss_rocm_start(const struct ss_options *opt)
{
	struct ss_rocm *r = calloc(1, sizeof(*r));
	int n;

	if (!r)
		return 0;
	ss_enter();
#define X(name) r->f.name = (__typeof__(name) *)ss_runtime_symbol(#name);
	SS_HIP_FUNCTIONS(X)
#undef X
	n = count_devices(r);
	if (n > 0) {
#define X(name) r->f.name = (__typeof__(name) *)ss_hsa_symbol(#name);
		SS_HSA_FUNCTIONS(X)
#undef X
		/* An event costs half the packets of a value write, and a stream can wait for an
		 * event on the device (observed on AMD's runtimes). */
		r->fence = opt->fence == SS_FENCE_SIGNAL ? SS_FENCE_SIGNAL : SS_FENCE_EVENT;
		ss_rocm_hsa_start(r, n);
		for (int i = 0; i < n && r->f.hipDeviceGetPCIBusId; i++)
			(void)r->f.hipDeviceGetPCIBusId(r->pci[i], (int)sizeof(r->pci[i]), i);
		for (int i = 0; i < n; i++)
			r->quirks[i] = ss_quirk_flags(ss_runtime()->major, ss_runtime()->minor,
						      r->hsa[i].known ? r->hsa[i].arch : NULL);
	}
	ss_leave();
	pthread_mutex_lock(&start_lock);
	if (!started) {
		ss_rocm = *r;
		ss_rocm_devices = n;
		maps = opt->backing == SS_BACKING_VMM || opt->selftest ||
		       (opt->check & SS_CHECK_GUARD);
		ss_rocm_remember(opt->remember);
		started = true;
	}
	n = ss_rocm_devices;
	pthread_mutex_unlock(&start_lock);
	free(r);
	return n;
}

const char *ss_rocm_pci(int dev)
{
	return dev >= 0 && dev < SS_MAX_DEVICES ? ss_rocm.pci[dev] : "";
}

/* ---- devices ------------------------------------------------------------ */

static int device_count(void *ctx)
{
	(void)ctx;
	return ss_rocm_devices;
}

static enum ss_status device_info(void *ctx, int dev, struct ss_device_info *out)
{
	struct ss_scope s;
	size_t total = 0, left = 0, said = 0;
	int integrated = 0;
	const char *why;

	(void)ctx;
	if (dev < 0 || dev >= ss_rocm_devices)
		return SS_ERR_NO_DEVICE;
	memset(out, 0, sizeof(*out));
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	if (SS_HIP(hipDeviceGetName, out->name, (int)sizeof(out->name), dev) != hipSuccess)
		snprintf(out->name, sizeof(out->name), "device %d", dev);
	if (SS_HIP(hipMemGetInfo, &left, &said) != hipSuccess)
		left = said = 0;
	if (SS_HIP(hipDeviceTotalMem, &total, dev) != hipSuccess)
		total = said;
	out->total_bytes = total > left ? total : left;
	if (SS_HIP(hipDeviceGetAttribute, &integrated, hipDeviceAttributeIntegrated, dev) ==
	    hipSuccess)
		out->integrated = integrated != 0;
	/* The memory of an APU is host memory, and the reported total may be a part of it. */
	if (out->integrated)
		out->most_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) *
				  (uint64_t)sysconf(_SC_PAGESIZE);
	out->chunk_bytes = ss_rocm_usable(dev, SS_BACKING_VMM, &why) ? ss_rocm_vmm_min_chunk(dev) :
								       0;
	out->no_hsa = !ss_rocm_usable(dev, SS_BACKING_HSA, &why);
	out->best = ss_rocm_best(dev, &why);
	out->query_spoils = ss_rocm.fence == SS_FENCE_EVENT &&
			    ss_rocm.quirks[dev] & SS_Q_QUERY_BEFORE;
	out->unmap_at_exit = ss_rocm.quirks[dev] & SS_Q_EXIT_MAPPED;
	out->map_waits = ss_rocm.quirks[dev] & SS_Q_MAP_JOINS;
	out->unmap_waits_all = ss_rocm.quirks[dev] & SS_Q_UNMAP_WAITS;
	out->keep_unopened = ss_rocm.quirks[dev] & SS_Q_KEEP_UNOPENED;
	out->access_prefix = ss_rocm.quirks[dev] & SS_Q_ACCESS_PREFIX ||
			     (ss_rocm.quirks[dev] & SS_Q_ACCESS_TRY && out->chunk_bytes &&
			      (maps || out->best == SS_BACKING_VMM) && !ss_rocm_access_parts(dev));
	out->release_waits[SS_BACKING_HIP] = true;
	out->release_waits[SS_BACKING_HSA] = false;
	/* An unmap waits on the null stream on 6.x, and for every stream that has access on 7.x. In
	 * tests, only a held-up blocking stream made either of these releases wait. */
	out->release_waits[SS_BACKING_VMM] = true;
	ss_scope_close(&s);
	return SS_OK;
}

static enum ss_status mem_info(void *ctx, int dev, uint64_t *free_bytes, uint64_t *total_bytes)
{
	struct ss_scope s;
	size_t f = 0, t = 0;
	hipError_t err;

	(void)ctx;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	err = SS_HIP(hipMemGetInfo, &f, &t);
	ss_scope_close(&s);
	if (err != hipSuccess)
		return ss_rocm_status(err);
	if (free_bytes)
		*free_bytes = f;
	if (total_bytes)
		*total_bytes = t;
	return SS_OK;
}

void ss_rocm_add_peers(int dev, uint64_t peers)
{
	ss_rocm_hsa_add_peers(dev, peers);
}

void ss_rocm_device_reset(int dev)
{
	ss_rocm_fence_reset(dev);
	ss_rocm_mapping_check_reset(dev);
}

void ss_rocm_stream_destroyed(void *native)
{
	ss_rocm_fence_stream_destroyed(native);
}

enum ss_fence_kind ss_rocm_fence_kind(void)
{
	return ss_rocm.fence;
}

/* ---- time --------------------------------------------------------------- */

static uint64_t now_ms(void *ctx)
{
	(void)ctx;
	return ss_monotonic_ns() / 1000000;
}

static void sleep_ms(void *ctx, unsigned ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

	(void)ctx;
	while (nanosleep(&t, &t) && errno == EINTR) /* a profiler's signals do not end the sleep */
		;
}

#define YIELD_US 50     /* a sleep takes this much longer than requested */
#define YIELDS_PER_US 16 /* an upper bound of the yields in a microsecond */

static uint64_t nap(void *ctx, unsigned us)
{
	uint64_t from = ss_monotonic_ns(), now = from, ns = us * 1000ull;
	struct ss_deadline d = ss_deadline_in(from, ns, us * YIELDS_PER_US);
	struct timespec t = {0, (long)ns};

	(void)ctx;
	if (us >= YIELD_US)
		nanosleep(&t, NULL);
	else
		for (; !ss_deadline_over(&d, now); now = ss_monotonic_ns(), ss_deadline_take(&d, 1))
			sched_yield();
	now = ss_monotonic_ns();
	return (now > from + ns ? now - from : ns) / 1000;
}

static void pause_now(void *ctx)
{
	(void)ctx;
	sched_yield();
}

struct ss_driver ss_rocm_driver(void)
{
	return (struct ss_driver){
		.device_count = device_count,
		.device_info = device_info,
		.mem_info = mem_info,
		.segment_alloc = ss_rocm_segment_alloc,
		.segment_free = ss_rocm_segment_free,
		.segment_access = ss_rocm_segment_access,
		.vmm_reserve = ss_rocm_vmm_reserve,
		.vmm_unreserve = ss_rocm_vmm_unreserve,
		.chunk_create = ss_rocm_vmm_create,
		.chunk_release = ss_rocm_vmm_release,
		.map = ss_rocm_vmm_map,
		.unmap = ss_rocm_vmm_unmap,
		.set_access = ss_rocm_vmm_access,
		.settle = ss_rocm_mapping_check,
		.limit = ss_process_limit,
		.fence_record = ss_rocm_fence_record,
		.fence_query = ss_rocm_fence_query,
		.stream_idle = ss_rocm_stream_idle,
		.fence_wait = ss_rocm_fence_wait,
		.fence_release = ss_rocm_fence_release,
		.now_ms = now_ms,
		.sleep_ms = sleep_ms,
		.pause = pause_now,
		.nap = nap,
	};
}
