/* SPDX-License-Identifier: MIT */
/* Short texts that all reports use: bytes, times, names of call sites. */
#include <string.h>

#include "cli/report/report.h"

#define INNER 6 /* frames of a short name */

double ss_report_seconds(const struct ss_analysis *a, uint64_t time_ns) {
	return time_ns > a->first_ns ? (double)(time_ns - a->first_ns) / 1e9 : 0;
}

const char *ss_report_bytes(char out[32], uint64_t bytes) {
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	int i = 0;

	for (; value >= 1024 && i < 6; i++) {
		value /= 1024;
	}
	snprintf(out, 32, i ? "%.2f %s" : "%.0f %s", value, unit[i]);
	return out;
}

const char *ss_report_device_name(int device, char out[32]) {
	snprintf(out, 32, device == SS_NO_DEVICE ? "no device" : "GPU %d", device);
	return out;
}

const char *ss_report_site_name(const struct ss_sites *s, uint32_t index, char *out,
				size_t size) {
	const struct ss_site *site = &s->site[index];
	const struct ss_frame *f;
	size_t length = 0;

	snprintf(out, size, "(call stack not known)");
	for (uint32_t i = 0; i < INNER && (f = ss_site_frame(s, site, i)); i++) {
		const char *slash = strrchr(f->source, '/');
		char line[16] = "";
		if (f->line) {
			snprintf(line, sizeof(line), ":%d", f->line);
		}
		int n = i == 0 && f->source[0] ?
			snprintf(out, size, "%s (%s%s)", f->function, slash ? slash + 1 : f->source,
				 line) :
			snprintf(out + length, size - length, "%s%s", i ? " < " : "", f->function);
		length += n > 0 ? (size_t)n : 0;
		if (length >= size) {
			break;
		}
	}
	return out;
}
