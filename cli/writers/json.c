/* SPDX-License-Identifier: MIT */
/* JSON output of the subcommands, on top of jansson. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/writers/json.h"
#include "core/base/utf8.h"

#define DIGITS 10 /* jansson's default of 17 would show 0.1 as 0.10000000000000001 */

json_t *ss_json_text(const char *bytes)
{
	static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
	char *text = malloc(strlen(bytes) * (sizeof(replacement) - 1) + 1), *to = text;

	if (!text)
		return NULL;
	while (*bytes) {
		size_t n = ss_utf8_length(bytes);
		const char *from = n ? bytes : replacement;
		size_t length = n ? n : sizeof(replacement) - 1;
		memcpy(to, from, length);
		to += length;
		bytes += n ? n : 1;
	}
	json_t *string = json_stringn(text, (size_t)(to - text));
	free(text);
	return string;
}

json_t *ss_json_rounded(double value)
{
	return json_real(round(value * 1e4) / 1e4);
}

int ss_json_print(json_t *root)
{
	/* A write error is left in stdout, for the check at the end of the program. */
	bool ok = root != NULL;

	if (ok) {
		json_dumpf(root, stdout, JSON_REAL_PRECISION(DIGITS));
		putchar('\n');
	} else {
		fprintf(stderr, "somashim: out of memory\n");
	}
	json_decref(root);
	return ok ? 0 : 1;
}
