/* SPDX-License-Identifier: MIT */
/* Values of options, lines of an environment, and patterns of file names. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/options.h"
#include "config/values.h"
#include "trace/file_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LINES 64

/* What is printed is read as the same. */
static void there_and_back(const char *text)
{
	struct ss_amount a, b;
	char out[64];

	if (!ss_amount_parse(text, &a) || a.percent > 0)
		return;
	ss_format_amount(&a, out, sizeof(out));
	if (!ss_amount_parse(out, &b) || b.bytes != a.bytes)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *null;
	char *text = malloc(size + 1), *lines = NULL, *save = NULL, *env[LINES] = {NULL};
	char out[64], exact[8], pattern[64] = "x%p";
	struct ss_options options;
	size_t count = 0;

	null = null ? null : fopen("/dev/null", "w");
	if (!text || !null)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	lines = strdup(text);
	for (char *line = strtok_r(lines, "\n", &save); line && count + 1 < LINES;
	     line = strtok_r(NULL, "\n", &save))
		env[count++] = line;
	ss_options_read(&options, env, null);
	ss_options_print_changed(&options, null);
	for (size_t i = 0; i < count; i++) {
		char *value = strchr(env[i], '=');
		if (value) {
			*value++ = '\0';
			(void)ss_options_set(&options, env[i], value);
			there_and_back(value);
		}
		there_and_back(env[i]);
	}
	(void)ss_file_name(text, size % 5, out, sizeof(out));
	(void)ss_file_name(text, size % 5, exact, sizeof(exact));
	(void)ss_file_glob(text, out, sizeof(out));
	(void)ss_file_name_append(pattern, sizeof(pattern), text);
	free(lines);
	free(text);
	return 0;
}
