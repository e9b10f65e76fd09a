/* SPDX-License-Identifier: MIT */
/*
 * HIP has version numbers of its own. This table gives the usual name of the ROCm release of a
 * runtime: HIP 7.15 is in ROCm 10.0. Pure functions, no state.
 */
#ifndef SS_DRIVER_RELEASES_H
#define SS_DRIVER_RELEASES_H

#include <stdbool.h>

struct ss_release_text {
	char s[48];
};

/* In words: "ROCm 6.4", "ROCm 10.0", or "newer than ROCm 10.2" for a version that the table
 * lacks. */
struct ss_release_text ss_release_name(int major, int minor);
/* Is this HIP newer than the newest one in the table? */
bool ss_release_unknown(int major, int minor);
/* The newest one: "ROCm 10.2 (HIP 7.17)". */
struct ss_release_text ss_release_newest(void);

#endif
