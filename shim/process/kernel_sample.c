/* SPDX-License-Identifier: MIT */
/*
 * Asks the kernel for the device memory of this process. See kernel_sample.h.
 *
 * Locks: none of its own.
 */
#include <inttypes.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "config/limits.h"
#include "driver/rocm/rocm.h"
#include "live/kernel_memory.h"
#include "shim/process/kernel_sample.h"
#include "shim/process/outside.h"
#include "trace/writer.h"

/* Queries of the kernel take at most one part in COST_SHARE of the program's time, and are at least
 * the time below apart. One query looks at all descriptors of the process. */
#define COST_SHARE 500
#define APART_NS 1000000000u
#define GREW_NS 20000000u /* least time after the pools grew, because a peak may be brief */

static _Atomic uint64_t rest_high;
static uint64_t asked_ns, cost_ns;      /* CLOCK_MONOTONIC; of one thread at a time */
static uint64_t kernel[SS_MAX_DEVICES]; /* bytes; 0: not known */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The rest: bytes that the kernel counts and that neither the pools nor counted calls explain.
 * Managed memory may lie on the host, so it explains nothing. */
static uint64_t rest_of(uint64_t all, int dev, uint64_t reserved)
{
	uint64_t known = reserved + ss_outside_bytes(dev, SS_TRACE_OUTSIDE_ARRAY) +
			 ss_outside_bytes(dev, SS_TRACE_OUTSIDE_DEVICE);

	return all > known ? all - known : 0;
}

static uint64_t vram_of(const struct ss_kernel_device *d, size_t count, const char *pci)
{
	for (size_t i = 0; i < count; i++)
		if (pci[0] && strncmp(d[i].pci, pci, sizeof(d->pci) - 1) == 0)
			return d[i].vram;
	return 0;
}

static void ask(const struct ss_live_figures *f, uint64_t t0)
{
	struct ss_kernel_device found[SS_KERNEL_DEVICES];
	size_t count = ss_kernel_memory(ss_kernel_root(), 0, found);

	for (uint32_t i = 0; i < f->device_count; i++) {
		const struct ss_live_device *d = &f->device[i];
		uint64_t vram = vram_of(found, count, d->pci);
		if (d->ordinal >= SS_MAX_DEVICES || vram == kernel[d->ordinal])
			continue;
		kernel[d->ordinal] = vram;
		ss_trace_outside(SS_TRACE_OUTSIDE_KERNEL, NULL, vram, (int)d->ordinal);
	}
	asked_ns = now_ns();
	cost_ns = asked_ns - t0;
}

void ss_kernel_sample(struct ss_live_figures *f, bool grew)
{
	uint64_t t0 = now_ns(), least = grew ? GREW_NS : APART_NS, rest = 0, high;

	if (!asked_ns ||
	    t0 - asked_ns >= (cost_ns * COST_SHARE > least ? cost_ns * COST_SHARE : least))
		ask(f, t0);
	for (uint32_t i = 0; i < f->device_count; i++) {
		struct ss_live_device *d = &f->device[i];
		int dev = d->ordinal < SS_MAX_DEVICES ? (int)d->ordinal : -1;
		d->kernel = dev >= 0 ? kernel[dev] : 0;
		d->managed = ss_outside_bytes(dev, SS_TRACE_OUTSIDE_MANAGED);
		d->host = ss_outside_bytes(dev, SS_TRACE_OUTSIDE_HOST);
		d->arrays = ss_outside_bytes(dev, SS_TRACE_OUTSIDE_ARRAY);
		d->runtime = ss_outside_bytes(dev, SS_TRACE_OUTSIDE_DEVICE);
		d->rest = d->kernel ? rest_of(d->kernel, dev, d->reserved) : 0;
		rest += d->rest;
	}
	high = atomic_load(&rest_high);
	while (rest > high && !atomic_compare_exchange_weak(&rest_high, &high, rest)) {}
}

uint64_t ss_kernel_rest_high(void)
{
	return atomic_load(&rest_high);
}

/* ---- the report on a failure --------------------------------------------------- */

struct names {
	char *at, *end;
};

static int add_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *name = info->dlpi_name ? ss_memory_library(info->dlpi_name) : NULL;
	struct names *n = arg;

	(void)size;
	if (name && n->at + strlen(name) + 3 < n->end)
		n->at += sprintf(n->at, ", %s", name);
	return 0;
}

void ss_kernel_put(FILE *out, int dev, uint64_t reserved)
{
	struct ss_kernel_device found[SS_KERNEL_DEVICES];
	size_t count = ss_kernel_memory(ss_kernel_root(), 0, found);
	uint64_t all = vram_of(found, count, ss_rocm_pci(dev));
	uint64_t managed = ss_outside_bytes(dev, SS_TRACE_OUTSIDE_MANAGED);
	uint64_t host = ss_outside_bytes(dev, SS_TRACE_OUTSIDE_HOST);
	char libraries[SS_KERNEL_NAMES] = "";
	struct names names = {libraries, libraries + sizeof(libraries)};

	if (all) {
		dl_iterate_phdr(add_library, &names);
		fprintf(out,
			"somashim:   the kernel counts %" PRIu64 " for this process: pools %" PRIu64
			", arrays %" PRIu64 ", given by the runtime %" PRIu64 ", the rest %" PRIu64
			" (code objects, scratch, queues%s)\n",
			all, reserved, ss_outside_bytes(dev, SS_TRACE_OUTSIDE_ARRAY),
			ss_outside_bytes(dev, SS_TRACE_OUTSIDE_DEVICE), rest_of(all, dev, reserved),
			libraries);
	}
	if (managed) { /* host memory alone takes nothing of most devices */
		fprintf(out,
			"somashim:   outside of the pools: managed memory %" PRIu64
			", host memory %" PRIu64 "\n",
			managed, host);
	}
}
