/* SPDX-License-Identifier: MIT */
/* What is known to be wrong with which runtime, and what is done about it. */
#ifndef SS_DRIVER_QUIRKS_H
#define SS_DRIVER_QUIRKS_H

#include <stdbool.h>
#include <stddef.h>

enum ss_quirk_flag {
	SS_Q_NOTE = 0,          /* described only: the shim's design avoids it */
	SS_Q_NO_VMM = 1 << 0,   /* do not offer VMM */
	SS_Q_ACCESS_PREFIX = 1 << 1, /* SetAccess over the whole mapped prefix */
	SS_Q_MAP_WAITS = 1 << 2,     /* map and unmap wait for blocking streams */
	SS_Q_CREATE_CAP = 1 << 3,    /* one handle cannot exceed host memory */
	SS_Q_QUERY_IN_CAPTURE = 1 << 4, /* hipEventQuery ends a foreign capture */
	SS_Q_CHECK_FREE_ASYNC = 1 << 5, /* hipFreeAsync believes any pointer */
	SS_Q_UNMAP_ONE = 1 << 6,        /* one chunk per hipMemUnmap */
	SS_Q_PEER_SPOILS = 1 << 7,      /* no VMM beside other devices */
	SS_Q_SETTLE = 1 << 8,           /* a fresh mapping is tried before it is used */
	SS_Q_QUERY_BEFORE = 1 << 9,     /* hipEventQuery ends its stream's later capture */
	SS_Q_EXIT_MAPPED = 1 << 10,     /* mappings at the end of the process crash it */
};

struct ss_quirk {
	const char *id;      /* C1..C26 and V1..V16: docs/known-problems.md */
	const char *ref;     /* a public thread, or where it was observed */
	int from, to;        /* 100 * major + minor, inclusive; 0 = open */
	const char *arch;    /* prefix of gcnArchName; NULL = any */
	unsigned flags;
	const char *wrong, *does;
};

const struct ss_quirk *ss_quirks(size_t *count);
bool ss_quirk_applies(const struct ss_quirk *q, int major, int minor, const char *arch);
/* The flags of every row that applies. */
unsigned ss_quirk_flags(int major, int minor, const char *arch);

#endif
