/* SPDX-License-Identifier: MIT */
/* JSON output of the subcommands, on top of jansson. */
#ifndef SS_WRITERS_JSON_H
#define SS_WRITERS_JSON_H

#include <jansson.h>

/* A JSON string from any bytes. JSON is UTF-8 and a path need not be, so every byte that
 * is not part of a valid character becomes U+FFFD. NULL on lack of memory. */
json_t *ss_json_text(const char *bytes);
/* A ratio or a time, rounded to 4 decimals. */
json_t *ss_json_rounded(double value);
/* Prints the value as one line on stdout and releases it. `root` may be NULL, from a
 * jansson call that failed. Returns the exit status: 0, or 1 with a message on stderr. */
int ss_json_print(json_t *root);

#endif
