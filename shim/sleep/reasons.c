/* SPDX-License-Identifier: MIT */
/*
 * Collects why the process cannot sleep, in the words that `somashim sleep` prints. No locks.
 */
#include <stdio.h>

#include "driver/rocm/rocm.h"
#include "live/kernel_memory.h"
#include "shim/process/service.h"
#include "shim/sleep/reasons.h"
#include "shim/sleep/stays.h"

/* No device can have virtual memory: the reason of the first. */
static const char *no_vmm(void)
{
	const char *first = NULL, *why;

	for (int dev = 0; dev < ss_rocm_devices; dev++) {
		if (ss_rocm_usable(dev, SS_BACKING_VMM, &why))
			return NULL;
		first = first ? first : why;
	}
	return first;
}

bool ss_sleep_refused(char *why, size_t size)
{
	enum ss_backing backing = (enum ss_backing)ss_options.backing;
	const char *no;

	why[0] = '\0';
	if (ss_options.check)
		snprintf(why, size, "it runs under SOMASHIM_CHECK");
	else if (ss_distrusted(ss_core))
		snprintf(why, size, "a part of the program reaches the device without somashim");
	else if (backing != SS_BACKING_VMM)
		snprintf(why, size, "SOMASHIM_BACKING=%s: only virtual memory can sleep",
			 ss_backing_name(backing));
	else if ((no = no_vmm()))
		snprintf(why, size, "its pools are on hip, which cannot sleep: %s", no);
	else if ((no = ss_sleep_registered(ss_kernel_root())))
		snprintf(why, size, "%s", no);
	return why[0];
}

const char *ss_sleep_nothing(uint64_t held)
{
	return held ? "its memory is exported, on hip, or was refused by the runtime" :
		      "its pools hold no memory in use";
}
