/* SPDX-License-Identifier: MIT */
/*
 * Memory that a program freed goes back to the device after SOMASHIM_DECAY_MS, whatever the program
 * does meanwhile: small work every 10 ms, of the kind that the argument names.
 */
#include <unistd.h>

#include "test.h"

#define MIB ((size_t)1 << 20)
#define COUNT 64
#define EACH (16 * MIB)
#define LEFT (128 * MIB) /* that may stay: what the small work uses, and a segment that it pins */
#define ROUNDS 300
#define BYTES 4096

static hipStream_t stream;

static void work(const char *kind)
{
	void *p;

	if (!strcmp(kind, "nothing"))
		return;
	OK(hipMalloc(&p, BYTES));
	if (!strcmp(kind, "memset"))
		OK(hipMemset(p, 0, BYTES));
	OK(hipFree(p));
	for (int i = 0; i < 2 && !strcmp(kind, "sync2"); i++)
		OK(hipStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
	static void *p[COUNT];
	uint64_t before;
	int round = 0;

	CHECK(preloaded());
	CHECK(argc > 1);
	if (!strcmp(argv[1], "sync2"))
		OK(hipStreamCreate(&stream));
	work("memset"); /* the first segment */
	before = device_free(0);
	for (int i = 0; i < COUNT; i++) {
		OK(hipMalloc(&p[i], EACH));
		OK(hipMemset(p[i], i, 4096));
	}
	CHECK(device_free(0) + COUNT * EACH / 2 <= before);
	for (int i = 0; i < COUNT; i++)
		OK(hipFree(p[i]));
	while (device_free(0) + LEFT < before) {
		CHECK(round++ < ROUNDS);
		work(argv[1]);
		usleep(10000);
	}
	return 0;
}
