/* SPDX-License-Identifier: MIT */
/* Makes valid UTF-8 of text that comes from outside, such as names of files, for JSON. */
#ifndef SS_CORE_UTF8_H
#define SS_CORE_UTF8_H

#include <stddef.h>

/* Length in bytes of the valid UTF-8 character at `s`, which 0 ends; 0 if there is none. */
static inline size_t ss_utf8_length(const char *s)
{
	const unsigned char *b = (const unsigned char *)s;
	unsigned c = b[0];
	size_t n = c < 0x80              ? 1 :
		   c >= 0xc2 && c < 0xe0 ? 2 :
		   c >= 0xe0 && c < 0xf0 ? 3 :
		   c >= 0xf0 && c < 0xf5 ? 4 :
					   0;

	for (size_t i = 1; i < n; i++)
		if ((b[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, surrogates, and values past U+10FFFF. */
	if ((c == 0xe0 && b[1] < 0xa0) || (c == 0xed && b[1] > 0x9f) ||
	    (c == 0xf0 && b[1] < 0x90) || (c == 0xf4 && b[1] > 0x8f))
		return 0;
	return n;
}

/* Does the character of `n` bytes control a terminal? Control characters do, and those that turn
 * the direction of the text. */
static inline int ss_utf8_is_control(const unsigned char *s, size_t n)
{
	return (n == 1 && (s[0] < 0x20 || s[0] == 0x7f)) ||
	       (n == 2 && s[0] == 0xc2 && s[1] < 0xa0) ||
	       (n == 3 && s[0] == 0xe2 &&
		((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
		 (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9)));
}

/* Is a foreign text harmless for a terminal as it is? */
static inline int ss_utf8_is_clean(const char *text)
{
	size_t n;

	for (; *text; text += n ? n : 1) {
		n = ss_utf8_length(text);
		if (ss_utf8_is_control((const unsigned char *)text, n))
			return 0;
	}
	return 1;
}

/* Makes a foreign text harmless for a terminal: each byte of such a character becomes '?'. Bytes
 * that are no UTF-8 stay, as names of files have them. */
static inline void ss_utf8_clean(char *text)
{
	while (*text) {
		size_t n = ss_utf8_length(text), all = n ? n : 1;

		if (ss_utf8_is_control((const unsigned char *)text, n))
			for (size_t i = 0; i < all; i++)
				text[i] = '?';
		text += all;
	}
}

#endif
