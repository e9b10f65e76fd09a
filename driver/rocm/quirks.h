/* SPDX-License-Identifier: MIT */
/* The known defects of the runtimes, and the measure of somashim against each. */
#ifndef SS_DRIVER_QUIRKS_H
#define SS_DRIVER_QUIRKS_H

#include <stdbool.h>
#include <stddef.h>

enum ss_quirk_flag {
	SS_Q_NOTE = 0,                  /* nothing to do: the design of the pools avoids it */
	SS_Q_NO_VMM = 1 << 0,           /* do not offer VMM */
	SS_Q_ACCESS_PREFIX = 1 << 1,    /* set access from the start of the reservation on */
	SS_Q_MAP_IN_CAPTURE = 1 << 2,   /* a map would join blocking streams that capture */
	SS_Q_QUERY_IN_CAPTURE = 1 << 3, /* hipEventQuery ends the capture of another stream */
	SS_Q_CHECK_FREE_ASYNC = 1 << 4, /* hipFreeAsync does not check its pointer */
	SS_Q_PEER_SPOILS = 1 << 5,      /* do not offer VMM if there are several devices */
	SS_Q_SETTLE = 1 << 6,           /* check a fresh mapping before it is used */
	SS_Q_QUERY_BEFORE = 1 << 7,     /* hipEventQuery ends a later capture of its stream */
	SS_Q_EXIT_MAPPED = 1 << 8,      /* the process crashes if it ends with memory mapped */
	SS_Q_KEEP_UNOPENED = 1 << 10, /* the process crashes if memory without access is unmapped */
	SS_Q_MAP_ALONE = 1 << 9,      /* only one thread may map, unmap or set access at a time */
	SS_Q_UNMAP_WAITS = 1 << 12,   /* an unmap waits for all devices that can reach the memory */
	SS_Q_NO_HOST = 1 << 13,       /* do not give the host access to mapped memory */
	SS_Q_MAP_JOINS = 1 << 14,     /* a map waits for blocking streams */
	SS_Q_ACCESS_TRY = 1 << 11,    /* find out by a trial whether SS_Q_ACCESS_PREFIX is needed */
};

struct ss_quirk {
	const char *id;   /* docs/known-problems.md */
	const char *ref;  /* a public issue, or the release on which it was observed */
	int from, to;     /* of HIP, 100 * major + minor, both inclusive; 0 = no bound */
	const char *arch; /* prefix of the architecture's name; NULL = any */
	unsigned flags;
	const char *wrong, *does; /* the defect, and what somashim does */
};

/* The whole table; static. */
const struct ss_quirk *ss_quirks(size_t *count);
bool ss_quirk_applies(const struct ss_quirk *q, int major, int minor, const char *arch);
/* The flags of all rows that apply; `arch` may be NULL for an unknown one. */
unsigned ss_quirk_flags(int major, int minor, const char *arch);

#endif
