/* SPDX-License-Identifier: MIT */
/*
 * What `somashim run` says at the end: a file that every process maps, so that nothing
 * is lost with one that is killed. SOMASHIM_REPORT names it.
 */
#ifndef SS_SHIM_REPORT_H
#define SS_SHIM_REPORT_H

#include <stdatomic.h>
#include <stdint.h>

#define SS_REPORT_MAGIC 0x53535231u /* "SSR1" */

/* How references to our entries came to us. */
enum ss_route {
	SS_ROUTE_LINK,  /* bound by name */
	SS_ROUTE_PAST,  /* bound to the runtime, and turned round by the auditor */
	SS_ROUTE_DLSYM, /* asked for by dlsym() or dlvsym(), the auditor says */
	SS_ROUTE_PROC,  /* by hipGetProcAddress and its kin */
	SS_ROUTE_TABLE, /* the runtime's table was taken */
	SS_ROUTES,
};

struct ss_report {
	uint32_t magic;
	/* Processes: that loaded the shim, that it served, in which it found no device
	 * or was disabled, that had HIP and never called us, from which calls went past. */
	atomic_uint loaded, used, off, unused, bypassed;
	atomic_uint route[SS_ROUTES];
};

#define SS_REPORT_BYTES 4096 /* a page, so that the file can be mapped over it */

union ss_report_page {
	struct ss_report r;
	char bytes[SS_REPORT_BYTES];
};

/* The auditor finds it by its name, and counts in it from the first binding on. */
extern union ss_report_page somashim_report __attribute__((visibility("default")));

static inline void ss_report_add(atomic_uint *count)
{
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

#endif
