/* SPDX-License-Identifier: MIT */
/* Stands for libroctx64: counts the calls that reach it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int roctx_calls[5];
EXPORT void roctxMarkA(const char *message);
EXPORT int roctxRangePushA(const char *message);
EXPORT int roctxRangePop(void);
EXPORT uint64_t roctxRangeStartA(const char *message);
EXPORT void roctxRangeStop(uint64_t id);

static int level;

void roctxMarkA(const char *message)
{
	if (strcmp(message, "loaded") != 0)
		abort();
	roctx_calls[0]++;
}

int roctxRangePushA(const char *message)
{
	if (!message)
		abort();
	roctx_calls[1]++;
	return level++;
}

int roctxRangePop(void)
{
	roctx_calls[2]++;
	return --level;
}

uint64_t roctxRangeStartA(const char *message)
{
	if (!message)
		abort();
	return 1000 + (uint64_t)roctx_calls[3]++;
}

void roctxRangeStop(uint64_t id)
{
	if (id != 1000)
		abort();
	roctx_calls[4]++;
}
