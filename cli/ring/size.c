/* SPDX-License-Identifier: MIT */
/* Reads how much a ring keeps. See size.h. */
#include <stdlib.h>
#include <string.h>

#include "cli/ring/size.h"
#include "trace/format.h"

#define DEFAULT_BYTES (1ull << 30)
#define MOST_S (366 * 86400.0)

static bool parse_one(const char *text, struct ss_ring_size *out)
{
	static const struct {
		char unit;
		double seconds, bytes;
	} units[] = {
		{'s', 1, 0},    {'m', 60, 0},      {'h', 3600, 0},    {'d', 86400, 0},
		{'K', 0, 1024}, {'M', 0, 1 << 20}, {'G', 0, 1 << 30}, {'T', 0, 1ull << 40},
	};
	char *end;

	if (*text < '0' || *text > '9') /* strtod() reads signs and words, too */
		return false;
	double n = strtod(text, &end);
	if (end != text + strspn(text, "0123456789.")) /* 0x10, 1e9 */
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (*end != units[i].unit || end[1])
			continue;
		double seconds = n * units[i].seconds, bytes = n * units[i].bytes;
		if (units[i].seconds > 0 ?
			    out->keep_ns || seconds < 1 || seconds > MOST_S :
			    out->bytes ||
				    bytes < (double)SS_TRACE_RING_LEAST * SS_TRACE_BLOCK_SIZE ||
				    bytes > (double)SS_TRACE_RING_MOST * SS_TRACE_BLOCK_SIZE)
			return false;
		out->keep_ns = units[i].seconds > 0 ? (uint64_t)(seconds * 1e9) : out->keep_ns;
		out->bytes = units[i].seconds > 0 ? out->bytes : (uint64_t)bytes;
		return true;
	}
	return false;
}

bool ss_ring_size_parse(const char *text, struct ss_ring_size *out)
{
	char copy[64], *rest = copy, *part;

	*out = (struct ss_ring_size){0};
	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	while ((part = strsep(&rest, ",")))
		if (!parse_one(part, out))
			return false;
	out->bytes = out->bytes ? out->bytes : DEFAULT_BYTES;
	return true;
}
