/* SPDX-License-Identifier: MIT */
/* Parses and formats values of options, for options.c. On malformed text the parsers return false
 * or NULL and leave *out unchanged. */
#ifndef SS_CONFIG_VALUES_H
#define SS_CONFIG_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_amount;

/* Reads a decimal number such as "12" or "1.5": the whole part, and the fraction in billionths.
 * Returns the text after the number. */
const char *ss_parse_decimal(const char *s, uint64_t *whole, uint64_t *frac);
bool ss_parse_size(const char *s, uint64_t *out);
/* A time in ms, at most SS_FOR_EVER_MS: "30" and "30s" are seconds; "500ms", "5m", "1.5h",
 * "off". */
bool ss_parse_time(const char *s, uint64_t *out);
bool ss_parse_bool(const char *s, bool *out);
/* The devices of the entries that were read so far. */
struct ss_devices_seen {
	uint64_t each; /* one bit per device that was named */
	bool all;      /* an entry without a device */
};
/* Reads one entry of a list, SIZE (for all devices that no entry names) or DEV:SIZE, into
 * out[SS_MAX_DEVICES]. Returns NULL on success. Otherwise nothing is changed, and the result
 * describes the error as the end of a sentence. */
const char *ss_parse_device_entry(const char *entry, struct ss_amount *out,
				  struct ss_devices_seen *seen);
/* Copies the name with index `n` of "a|b|c". False: there is none. */
bool ss_enum_name(const char *values, int n, char *out, size_t size);

/* The text that the parser would read as the value: 64M, 20%, 0:1G,20%. Cut if it does not fit. */
void ss_format_time(uint64_t ms, char *out, size_t size);
void ss_format_size(uint64_t n, char *out, size_t size);
void ss_format_amount(const struct ss_amount *a, char *out, size_t size);
void ss_format_per_device(const struct ss_amount *a, char *out, size_t size);

#endif
