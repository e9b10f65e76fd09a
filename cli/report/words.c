/* SPDX-License-Identifier: MIT */
/* Short texts that all reports use: bytes, times, devices. */
#include "cli/report/report.h"

double ss_report_seconds(const struct ss_analysis *a, uint64_t time_ns)
{
	return time_ns > a->first_ns ? (double)(time_ns - a->first_ns) / 1e9 : 0;
}

const char *ss_report_bytes(char out[32], uint64_t bytes)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	int i = 0;

	for (; value >= 1024 && i < 6; i++)
		value /= 1024;
	snprintf(out, 32, i ? "%.2f %s" : "%.0f %s", value, unit[i]);
	return out;
}

const char *ss_report_leaks_title(const struct ss_analysis *a)
{
	return a->end == SS_TRACE_END_CLOSED   ? "Never freed" :
	       a->end == SS_TRACE_END_SNAPSHOT ? "Live at the end of the snapshot" :
						 "Live when the recording ended";
}

const char *ss_report_outside_name(enum ss_trace_outside_kind kind)
{
	static const char *const name[SS_TRACE_OUTSIDE_KINDS] = {
		[SS_TRACE_OUTSIDE_MANAGED] = "managed", [SS_TRACE_OUTSIDE_HOST] = "host",
		[SS_TRACE_OUTSIDE_ARRAY] = "arrays",    [SS_TRACE_OUTSIDE_DEVICE] = "runtime",
		[SS_TRACE_OUTSIDE_KERNEL] = "kernel",
	};

	return name[kind];
}

const char *ss_report_sites_head(const struct ss_sites *s)
{
	return s->by == SS_BY_SITE ? "call site, innermost first" : ss_by_name(s->by, false);
}

const char *ss_report_device_name(int device, char out[32])
{
	snprintf(out, 32, device == SS_NO_DEVICE ? "no device" : "GPU %d", device);
	return out;
}
