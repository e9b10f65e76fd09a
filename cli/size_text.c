/* SPDX-License-Identifier: MIT */
/* Sizes as people read them. */
#include <stdio.h>

#include "cli/size_text.h"

const char *ss_size_text(uint64_t bytes, char out[16])
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes / 1024;
	size_t unit = 0;

	for (; value >= 999.95 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		value /= 1024;
	snprintf(out, 16, "%.1f %s", value, units[unit]);
	return out;
}
