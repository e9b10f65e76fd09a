/* SPDX-License-Identifier: MIT */
/* Writes the page: one file with the library, the script, the styles and the data. */
#include <stdio.h>

#include "cli/report/report.h"

#include "page_parts.h"

/* "</" and "<!" would end or change a script element, so each < becomes an escape. */
static int write_escaped(const char *text, size_t size, void *arg)
{
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

/* Text between tags. */
static void write_text(FILE *out, const char *text)
{
	for (; *text; text++)
		if (*text == '<' || *text == '&')
			fprintf(out, "&#%d;", *text);
		else
			fputc(*text, out);
}

/* Writes the title of the page: the program, or the two recordings. */
static void write_title(FILE *out, const json_t *data)
{
	static const char *const keys[] = {"command", "program", "path"};
	const json_t *difference = json_object_get(data, "difference");
	const json_t *process = json_array_get(json_object_get(data, "processes"), 0);
	const char *name = NULL;

	for (size_t i = 0; i < 3 && (!name || !*name); i++)
		name = json_string_value(json_object_get(process, keys[i]));
	if (difference) {
		write_text(out, json_string_value(
					json_object_get(json_object_get(difference, "a"), "name")));
		fputs(" and ", out);
		name = json_string_value(json_object_get(json_object_get(difference, "b"), "name"));
	}
	write_text(out, name ? name : "device memory");
	fputs(" - somashim report", out);
}

bool ss_report_page(FILE *out, const json_t *data)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
	      out);
	write_title(out, data);
	fputs("</title>\n<!--\nThis page contains d3.\n", out);
	fwrite(ss_page_license, 1, ss_page_license_size, out);
	fputs("-->\n<style>\n", out);
	fwrite(ss_page_style, 1, ss_page_style_size, out);
	fputs("</style>\n</head>\n<body>\n<script>\n", out);
	fwrite(ss_page_library, 1, ss_page_library_size, out);
	fputs("</script>\n<script id=\"data\" type=\"application/json\">", out);
	if (json_dump_callback(data, write_escaped, out, JSON_COMPACT | JSON_REAL_PRECISION(10)) !=
	    0)
		return false;
	fputs("</script>\n<script>\n", out);
	fwrite(ss_page_script, 1, ss_page_script_size, out);
	fputs("</script>\n</body>\n</html>\n", out);
	return !ferror(out);
}
