/* SPDX-License-Identifier: MIT */
/* Makes symbols of Fortran readable. */
#include <stdio.h>
#include <string.h>

#include "trace/fortran_name.h"

/* gfortran: __module_MOD_procedure; of a submodule __module_submodule_MOD_procedure. */
static bool gfortran(const char *symbol, char *out, size_t size)
{
	const char *mark = symbol[0] == '_' && symbol[1] == '_' ? strstr(symbol + 2, "_MOD_") :
								  NULL;

	if (!mark || mark == symbol + 2 || !mark[5])
		return false;
	int n = snprintf(out, size, "%.*s::%s", (int)(mark - symbol - 2), symbol + 2, mark + 5);
	return n > 0 && (size_t)n < size;
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* flang: _Q, then for each scope a capital letter (M module, S submodule, F host, P procedure) and
 * the name in lower case. */
static bool flang(const char *symbol, char *out, size_t size)
{
	const char *at = symbol + 2;
	size_t used = 0;
	char last = 0;

	if (symbol[0] != '_' || symbol[1] != 'Q')
		return false;
	while (*at) {
		size_t length = 0;
		if (!strchr("MSFP", *at))
			return false;
		last = *at++;
		while (is_name(at[length]))
			length++;
		int n = length ? snprintf(out + used, size - used, "%s%.*s", used ? "::" : "",
					  (int)length, at) :
				 0;
		if (n <= 0 || (size_t)n >= size - used)
			return false;
		used += (size_t)n;
		at += length;
	}
	return last == 'P';
}

bool ss_fortran_name(const char *symbol, char *out, size_t size)
{
	return gfortran(symbol, out, size) || flang(symbol, out, size);
}
