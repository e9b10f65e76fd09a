/* SPDX-License-Identifier: MIT */
/* Memory that is freed late: from atexit handlers and from destructors. */
#include "test.h"

static void *blocks[6];
static hipStream_t stream;

static void early_handler(void)
{
	OK(hipFree(blocks[0]));
	OK(hipFreeAsync(blocks[1], NULL));
}

static void late_handler(void)
{
	OK(hipFree(blocks[2]));
	OK(hipFreeAsync(blocks[3], stream));
}

/* As the destructor of a static object: after main's handlers. */
__attribute__((destructor)) static void last(void)
{
	if (!blocks[4])
		return;
	OK(hipFree(blocks[4]));
	OK(hipFreeAsync(blocks[5], stream));
}

int main(void)
{
	atexit(early_handler); /* before the shim starts, so it runs after */
	CHECK(preloaded());
	OK(hipStreamCreate(&stream));
	for (int i = 0; i < 6; i++) {
		if (i & 1)
			OK(hipMallocAsync(&blocks[i], 4096, stream));
		else
			OK(hipMalloc(&blocks[i], 4096));
	}
	atexit(late_handler);
	return 0;
}
