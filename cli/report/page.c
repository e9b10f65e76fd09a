/* SPDX-License-Identifier: MIT */
/* Writes the page: one file with the library, the script, the styles and the data. */
#include <stdio.h>

#include "cli/report/report.h"

#ifdef SS_HAVE_PAGE
#include "page_parts.h"

bool ss_report_page_possible(void) {
	return true;
}

/* "</" and "<!" would end or change a script element, so each < becomes an escape. */
static int write_escaped(const char *text, size_t size, void *arg) {
	FILE *out = arg;
	size_t begin = 0;

	for (size_t i = 0; i < size; i++) {
		if (text[i] == '<') {
			fwrite(text + begin, 1, i - begin, out);
			fputs("\\u003c", out);
			begin = i + 1;
		}
	}
	fwrite(text + begin, 1, size - begin, out);
	return ferror(out) ? -1 : 0;
}

bool ss_report_page(FILE *out, const json_t *data) {
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<title>somashim report</title>\n<!--\nThis page contains d3.\n", out);
	fwrite(ss_page_license, 1, ss_page_license_size, out);
	fputs("-->\n<style>\n", out);
	fwrite(ss_page_style, 1, ss_page_style_size, out);
	fputs("</style>\n</head>\n<body>\n<script>\n", out);
	fwrite(ss_page_library, 1, ss_page_library_size, out);
	fputs("</script>\n<script id=\"data\" type=\"application/json\">", out);
	if (json_dump_callback(data, write_escaped, out, JSON_COMPACT | JSON_REAL_PRECISION(10)) != 0) {
		return false;
	}
	fputs("</script>\n<script>\n", out);
	fwrite(ss_page_script, 1, ss_page_script_size, out);
	fputs("</script>\n</body>\n</html>\n", out);
	return !ferror(out);
}
#else
bool ss_report_page_possible(void) {
	return false;
}

bool ss_report_page(FILE *out, const json_t *data) {
	return false;
}
#endif
