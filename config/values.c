/* SPDX-License-Identifier: MIT */
/*
 * Values of options, from text and back. Numbers are parsed here because strtod() obeys the locale
 * of the program. No lock, no state.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/options.h"
#include "config/values.h"

_Static_assert(SS_MAX_DEVICES <= 64, "struct ss_devices_seen has a bit per device");

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* ---- from text ---------------------------------------------------------- */

const char *ss_parse_decimal(const char *s, uint64_t *whole, uint64_t *frac)
{
	*whole = *frac = 0;
	if (!isdigit((unsigned char)*s))
		return NULL;
	for (; isdigit((unsigned char)*s); s++)
		if (__builtin_mul_overflow(*whole, 10, whole) ||
		    __builtin_add_overflow(*whole, (uint64_t)(*s - '0'), whole))
			return NULL;
	if (*s != '.')
		return s;
	s++;
	if (!isdigit((unsigned char)*s))
		return NULL;
	for (uint64_t unit = 100000000; isdigit((unsigned char)*s); s++, unit /= 10)
		*frac += unit * (uint64_t)(*s - '0');
	return s;
}

bool ss_parse_size(const char *s, uint64_t *out)
{
	static const char units[] = "KMGT";
	uint64_t whole, frac, unit = 1;

	s = ss_parse_decimal(s, &whole, &frac);
	if (!s)
		return false;
	const char *u = *s ? strchr(units, toupper((unsigned char)*s)) : NULL;
	if (u) {
		unit <<= 10 * (u - units + 1);
		s++;
		if (*s == 'i' || *s == 'I') {
			s++;
			if (*s != 'b' && *s != 'B')
				return false;
		}
	} else if (frac) {
		return false; /* a fraction of a byte */
	}
	if (*s == 'b' || *s == 'B')
		s++;
	uint64_t part = (uint64_t)((unsigned __int128)frac * unit / 1000000000);
	return *s == '\0' && !__builtin_mul_overflow(whole, unit, &whole) &&
	       !__builtin_add_overflow(whole, part, out);
}

bool ss_amount_parse(const char *text, struct ss_amount *out)
{
	struct ss_amount a = {.set = true};
	uint64_t whole, frac;

	const char *end = ss_parse_decimal(text, &whole, &frac);
	if (strcasecmp(text, "max") == 0) {
		a.bytes = UINT64_MAX;
	} else if (end && strcmp(end, "%") == 0) {
		if (whole > 100 || (whole == 100 && frac))
			return false;
		a.percent = (double)whole + (double)frac / 1e9;
	} else if (!ss_parse_size(text, &a.bytes)) {
		return false;
	}
	*out = a;
	return true;
}

uint64_t ss_amount_bytes(const struct ss_amount *a, uint64_t total)
{
	if (a->percent > 0)
		return (uint64_t)((long double)total * a->percent / 100);
	return a->bytes;
}

bool ss_parse_time(const char *s, uint64_t *out)
{
	static const struct {
		const char *name;
		uint64_t ms;
	} units[] = {{"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60000}, {"h", 3600000}};
	uint64_t whole, frac;
	unsigned __int128 ms;

	if (strcasecmp(s, "off") == 0) {
		*out = 0;
		return true;
	}
	s = ss_parse_decimal(s, &whole, &frac);
	for (size_t i = 0; s && i < ARRAY_LEN(units); i++) {
		if (strcmp(s, units[i].name) != 0)
			continue;
		ms = (unsigned __int128)whole * units[i].ms +
		     (unsigned __int128)frac * units[i].ms / 1000000000;
		*out = ms < SS_FOR_EVER_MS ? (uint64_t)ms : SS_FOR_EVER_MS;
		return true;
	}
	return false;
}

bool ss_parse_bool(const char *s, bool *out)
{
	static const char *const words[] = {
		"0", "1", "no", "yes", "off", "on", "false", "true",
	};
	size_t i = 0;
	while (i < ARRAY_LEN(words) && strcasecmp(s, words[i]) != 0)
		i++;
	*out = i < ARRAY_LEN(words) ? i & 1 : *out;
	return i < ARRAY_LEN(words);
}

const char *ss_parse_device_entry(const char *entry, struct ss_amount *out,
				  struct ss_devices_seen *seen)
{
	struct ss_amount a = {0};
	const char *colon = strchr(entry, ':'), *value = colon ? colon + 1 : entry;
	uint64_t device = 0, frac;

	if (colon) {
		const char *end = ss_parse_decimal(entry, &device, &frac);
		if (end != colon || frac)
			return "has no number of a device before the colon";
		if (device >= SS_MAX_DEVICES)
			return "names a device that there cannot be";
	}
	if (!ss_amount_parse(value, &a))
		return "has no size or percent";
	if (colon ? seen->each >> device & 1 : seen->all) {
		return colon ? "names a device for the second time" :
			       "is for all devices for the second time";
	}
	for (uint64_t i = 0; i < SS_MAX_DEVICES; i++)
		if (colon ? i == device : !(seen->each >> i & 1))
			out[i] = a;
	seen->each |= colon ? 1ull << device : 0;
	seen->all |= !colon;
	return NULL;
}

bool ss_enum_name(const char *values, int n, char *out, size_t size)
{
	for (; n > 0 && values; n--) {
		values = strchr(values, '|');
		values = values ? values + 1 : NULL;
	}
	if (!values)
		return false;
	size_t len = strcspn(values, "|");
	if (len >= size)
		return false;
	memcpy(out, values, len);
	out[len] = '\0';
	return true;
}

/* ---- to text ------------------------------------------------------------ */

void ss_format_time(uint64_t ms, char *out, size_t size)
{
	if (ms % 1000)
		snprintf(out, size, "%" PRIu64 "ms", ms);
	else
		snprintf(out, size, "%" PRIu64 "%s", ms / 1000, ms ? "s" : "");
}

void ss_format_size(uint64_t n, char *out, size_t size)
{
	static const char units[] = "\0KMGT";
	int u = 0;
	for (; u < 4 && n >= 1024 && n % 1024 == 0; u++)
		n /= 1024;
	snprintf(out, size, "%llu%.1s", (unsigned long long)n, &units[u]);
}

void ss_format_amount(const struct ss_amount *a, char *out, size_t size)
{
	if (!a->set)
		out[0] = '\0';
	else if (a->percent > 0)
		snprintf(out, size, "%g%%", a->percent);
	else if (a->bytes == UINT64_MAX)
		snprintf(out, size, "max");
	else
		ss_format_size(a->bytes, out, size);
}

void ss_format_per_device(const struct ss_amount *a, char *out, size_t size)
{
	char first[32], one[32];
	bool same = true;
	size_t used = 0;

	ss_format_amount(&a[0], first, sizeof(first));
	for (int i = 0; i < SS_MAX_DEVICES; i++) {
		ss_format_amount(&a[i], one, sizeof(one));
		same &= strcmp(first, one) == 0;
		if (one[0] && used < size) {
			used += (size_t)snprintf(out + used, size - used, "%s%d:%s",
						 used ? "," : "", i, one);
		}
	}
	if (same)
		snprintf(out, size, "%s", first);
}
