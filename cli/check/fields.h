/* SPDX-License-Identifier: MIT */
/* The fields of a finding or a summary. A field that is missing, or of another type, is 0 or "". */
#ifndef SS_CLI_CHECK_FIELDS_H
#define SS_CLI_CHECK_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"

static inline uint64_t number(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

static inline const char *text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

/* May it be printed as it is? A string of JSON is UTF-8. */
static inline bool is_harmless(const char *s)
{
	for (size_t n; *s; s += n) {
		n = *s >= ' ' && *s < 0x7f ? 1 : ss_utf8_length(s); /* as nearly all are */
		if (!n || ss_utf8_is_control((const unsigned char *)s, n))
			return false;
	}
	return true;
}

/* A text that another file says, as it may be printed. NULL: host memory is out, or it is no
 * UTF-8. */
static inline json_t *harmless(const char *from)
{
	char *copy = strdup(from);
	json_t *string;

	if (!copy)
		return NULL;
	ss_utf8_clean(copy);
	string = json_string(copy);
	free(copy);
	return string;
}

#endif
