/* SPDX-License-Identifier: MIT */
/*
 * Decides which backing a device can use, from the quirk table, from the loaded objects, and from
 * the results of the self-test. No locks.
 */
#include <link.h>
#include <string.h>

#include "driver/rocm/calls.h"
#include "driver/rocm/hsa.h"
#include "driver/rocm/verdict.h"
#include "driver/rocm/vmm.h"

/* hipDeviceAttributeVirtualMemoryManagementSupported. The header of 5.2.3 does not have it;
 * the number is the same from 5.7.1 to 7.2.4. */
#define VMM_ATTRIBUTE ((hipDeviceAttribute_t)89)

enum verdict { UNTRIED, PASSED, FAILED };

static atomic_bool remember; /* store verdicts for later processes */
static _Atomic unsigned char verdicts[SS_MAX_DEVICES][SS_BACKING_COUNT];

struct library {
	const char *const *names; /* prefixes of their file names, ended by NULL */
	bool found;
};

static int is_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	struct library *l = arg;

	(void)size;
	name = name ? name + 1 : "";
	for (size_t i = 0; l->names[i]; i++)
		l->found |= !strncmp(name, l->names[i], strlen(l->names[i]));
	return l->found;
}

static bool is_loaded(const char *const *names)
{
	struct library l = {.names = names};

	dl_iterate_phdr(is_library, &l);
	return l.found;
}

/* UCX exports device memory by itself, through hsa_amd_ipc_memory_create. With an address of
 * virtual memory this call is a kernel BUG (clr#265). */
static const char *const exporters[] = {"libucp.so", "libuct_rocm", "libucm_rocm", NULL};

/* Since March 2026 PyTorch loads single values from device memory on the host, if the device has a
 * large BAR (pytorch#177023). */
static const char *const host_loaders[] = {"libtorch_hip.so", "libc10_hip.so", NULL};

bool ss_rocm_host_loads_fail(int dev)
{
	return is_loaded(host_loaders) && !ss_rocm_vmm_host(dev);
}

static uint64_t all_devices(void)
{
	return ss_rocm_devices < SS_MAX_DEVICES ? (1ull << ss_rocm_devices) - 1 : UINT64_MAX;
}

static bool vmm_refused(int dev, const char **why)
{
	unsigned quirks = ss_rocm.quirks[dev];
	int has = 0;

	*why = NULL;
	if (quirks & SS_Q_NO_VMM)
		*why = "known defects of this ROCm or GPU forbid vmm";
	else if ((quirks & SS_Q_PEER_SPOILS) && ss_rocm_devices > 1)
		*why = "known defects of this ROCm or GPU forbid vmm beside other devices";
	else if (!ss_rocm.f.hipMemAddressReserve || !ss_rocm.f.hipMemMap ||
		 !ss_rocm.f.hipMemCreate || !ss_rocm.f.hipMemSetAccess || !ss_rocm.f.hipMemUnmap ||
		 !ss_rocm.f.hipMemRelease)
		*why = "the runtime has no vmm";
	else if (SS_HIP(hipDeviceGetAttribute, &has, VMM_ATTRIBUTE, dev) != hipSuccess || !has)
		*why = "the device has no vmm";
	else if (ss_rocm_vmm_reach(dev) != all_devices())
		*why = "another device cannot reach its memory";
	else if (is_loaded(exporters))
		*why = "UCX is loaded";
	return *why != NULL;
}

bool ss_rocm_usable(int dev, enum ss_backing backing, const char **why)
{
	*why = NULL;
	if (backing == SS_BACKING_VMM)
		return !vmm_refused(dev, why);
	if (backing == SS_BACKING_HSA && !ss_rocm_hsa_ready(dev))
		*why = "HSA does not show the device's memory";
	return !*why;
}

void ss_rocm_remember(bool on)
{
	remember = on;
}

int ss_rocm_selftest_result(int dev, enum ss_backing backing, bool passed, bool holds)
{
	verdicts[dev][backing] = passed ? PASSED : FAILED;
	if (backing != SS_BACKING_VMM || !remember || !holds)
		return 0;
	return ss_rocm_verdict_remember(dev, passed ? SS_VERDICT_PASSED : SS_VERDICT_FAILED);
}

bool ss_rocm_untried(int dev)
{
	const char *why;

	return remember && !vmm_refused(dev, &why) && !ss_rocm_host_loads_fail(dev) &&
	       verdicts[dev][SS_BACKING_VMM] == UNTRIED &&
	       ss_rocm_verdict(dev) < SS_VERDICT_PASSED && ss_rocm_verdict_possible(dev);
}

enum ss_backing ss_rocm_best(int dev, const char **why)
{
	if (!vmm_refused(dev, why)) {
		enum verdict tried = (enum verdict)verdicts[dev][SS_BACKING_VMM];
		enum ss_verdict earlier = tried == UNTRIED && remember ? ss_rocm_verdict(dev) :
									 SS_VERDICT_NONE;

		*why = tried == PASSED ?
			       "the self-test passed" :
		       tried == FAILED ?
			       "the self-test of vmm failed" :
		       earlier == SS_VERDICT_PASSED ?
			       "the self-test passed earlier on this runtime, driver and device" :
		       earlier == SS_VERDICT_FAILED ?
			       "vmm failed earlier on this runtime, driver and device; somashim "
			       "doctor --save tries it again" :
			       "vmm was not tried; with it pools need about 1.03 times what is in "
			       "use on a device that is behind, with hip 1.09: somashim run or "
			       "doctor --save tries it once";
		if (tried == PASSED || earlier == SS_VERDICT_PASSED) {
			if (!ss_rocm_host_loads_fail(dev))
				return SS_BACKING_VMM;
			*why = "PyTorch loads from device memory on the host, which vmm does not "
			       "allow on this release";
		}
	}
	/* HIP believes that HSA memory belongs to device 0, as its sources say. */
	if (verdicts[dev][SS_BACKING_HIP] == FAILED && verdicts[dev][SS_BACKING_HSA] == PASSED &&
	    ss_rocm_devices == 1) {
		*why = "the self-test of hip failed";
		return SS_BACKING_HSA;
	}
	return SS_BACKING_HIP;
}
