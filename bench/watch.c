/* SPDX-License-Identifier: MIT */
/*
 * Repeats one watched call for callgrind: watch CALL N. It is run once under the preload and once
 * under the wrapper that only passes calls on; the difference is the cost of watching.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

static hipStream_t a, b;
static hipEvent_t event;

/* Callgrind counts inside this function. */
COUNTED void counted(const char *call, int n);
COUNTED void counted(const char *call, int n)
{
	while (n-- > 0) {
		if (call[0] == 'r' || call[0] == 'b')
			CHECK(hipEventRecord(event, a));
		if (call[0] == 'r')
			continue;
		if (call[0] == 'w' || call[0] == 'b')
			CHECK(hipStreamWaitEvent(b, event, 0));
		else if (call[0] == 's')
			CHECK(hipStreamSynchronize(a));
		else
			CHECK(hipEventQuery(event));
	}
}

int main(int argc, char **argv)
{
	void *p;

	if (argc != 3 || !strchr("rwbsq", argv[1][0]))
		die("usage: watch record|wait|both|sync|query N");
	CHECK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	CHECK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
	CHECK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
	CHECK(hipMallocAsync(&p, 1 << 20, a));
	CHECK(hipEventRecord(event, a));
	CHECK(hipStreamSynchronize(a));
	counted(argv[1], 16);
	CHECK(hipDeviceSynchronize());
	counted(argv[1], atoi(argv[2]));
	return 0;
}
