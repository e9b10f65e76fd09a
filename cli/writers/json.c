/* SPDX-License-Identifier: MIT */
/* JSON output of the subcommands, on top of jansson. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/writers/json.h"

#define DIGITS 10 /* jansson's default of 17 would show 0.1 as 0.10000000000000001 */

/* Length in bytes of the valid UTF-8 character at `s`; 0 if there is none. */
static size_t utf8_length(const unsigned char *s)
{
	unsigned c = s[0];
	size_t n = c < 0x80              ? 1 :
		   c >= 0xc2 && c < 0xe0 ? 2 :
		   c >= 0xe0 && c < 0xf0 ? 3 :
		   c >= 0xf0 && c < 0xf5 ? 4 :
					   0;

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, surrogates, and values past U+10FFFF. */
	if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f) ||
	    (c == 0xf0 && s[1] < 0x90) || (c == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

json_t *ss_json_text(const char *bytes)
{
	static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
	char *text = malloc(strlen(bytes) * (sizeof(replacement) - 1) + 1), *to = text;

	if (!text)
		return NULL;
	while (*bytes) {
		size_t n = utf8_length((const unsigned char *)bytes);
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
