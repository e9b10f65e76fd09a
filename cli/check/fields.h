/* SPDX-License-Identifier: MIT */
/* The fields of a finding or a summary. What is missing, or of another type, is 0 or "". */
#ifndef SS_CLI_CHECK_FIELDS_H
#define SS_CLI_CHECK_FIELDS_H

#include <jansson.h>
#include <stdint.h>

static inline uint64_t number(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

static inline const char *text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

#endif
