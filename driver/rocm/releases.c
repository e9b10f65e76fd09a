/* SPDX-License-Identifier: MIT */
/* The one table from HIP's version numbers to releases of ROCm. */
#include <stddef.h>
#include <stdio.h>

#include "driver/rocm/releases.h"

/* Sorted by version. Before these rows ROCm has the version number of its HIP. The file of the
 * runtime keeps HIP's number: libamdhip64.so.7 is in ROCm 10.0 to 10.2. */
static const struct {
	int hip;
	const char *rocm;
} table[] = {
	{714, "7.14"},
	{715, "10.0"},
	{716, "10.1"},
	{717, "10.2"},
};

#define COUNT (sizeof(table) / sizeof(table[0]))
#define NEWEST table[COUNT - 1]

bool ss_release_unknown(int major, int minor)
{
	return 100 * major + minor > NEWEST.hip;
}

struct ss_release_text ss_release_name(int major, int minor)
{
	struct ss_release_text text;

	snprintf(text.s, sizeof(text.s), "ROCm %d.%d", major, minor);
	for (size_t i = 0; i < COUNT; i++)
		if (table[i].hip == 100 * major + minor)
			snprintf(text.s, sizeof(text.s), "ROCm %s", table[i].rocm);
	if (ss_release_unknown(major, minor))
		snprintf(text.s, sizeof(text.s), "newer than ROCm %s", NEWEST.rocm);
	return text;
}

struct ss_release_text ss_release_newest(void)
{
	struct ss_release_text text;

	snprintf(text.s, sizeof(text.s), "ROCm %s (HIP %d.%d)", NEWEST.rocm, NEWEST.hip / 100,
		 NEWEST.hip % 100);
	return text;
}
