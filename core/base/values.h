/* SPDX-License-Identifier: MIT */
/* Values of options as text, for options.c. The parsers return false or NULL on
 * malformed text; *out is then as it was. */
#ifndef SS_CORE_VALUES_H
#define SS_CORE_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_amount;

/* Reads "12", "1.5": the whole part and the fraction in billionths. Returns what
 * follows. */
const char *ss_parse_decimal(const char *s, uint64_t *whole, uint64_t *frac);
bool ss_parse_size(const char *s, uint64_t *out);
bool ss_parse_bool(const char *s, bool *out);
/* Which devices the entries read so far were about. */
struct ss_devices_seen {
	uint64_t each; /* one bit per device that was named */
	bool all;      /* an entry without a device */
};
/* Reads one entry of a list: SIZE (all devices that no entry names) or DEV:SIZE. Returns NULL,
 * or what is wrong with it as the end of a sentence; nothing is changed then. */
const char *ss_parse_device_entry(const char *entry, struct ss_amount *out,
				  struct ss_devices_seen *seen);
/* Copies the nth of "a|b|c". False: there are fewer. */
bool ss_enum_name(const char *values, int n, char *out, size_t size);

void ss_format_size(uint64_t n, char *out, size_t size);
void ss_format_amount(const struct ss_amount *a, char *out, size_t size);
void ss_format_per_device(const struct ss_amount *a, char *out, size_t size);

#endif
