/* SPDX-License-Identifier: MIT */
/* Records an allocation by itself, then calls HIP until stdin ends. traced FILE */
#include <poll.h>
#include <unistd.h>

#include "../shim/test.h"
#include "trace/writer.h"

#define BYTES_OF_BLOCK 123400

__attribute__((noinline)) static void *allocate_something(void)
{
	void *p;

	OK(hipMalloc(&p, BYTES_OF_BLOCK));
	ss_trace_alloc(p, BYTES_OF_BLOCK, BYTES_OF_BLOCK, 0, NULL, NULL, 0);
	return p;
}

int main(int argc, char **argv)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	void *p;

	CHECK(argc > 1 && preloaded() && ss_trace_open(argv[1], NULL));
	p = allocate_something();
	puts("ready");
	fflush(stdout);
	while (!poll(&fd, 1, 1))
		(void)hipStreamQuery(NULL);
	OK(hipFree(p));
	ss_trace_close();
	return 0;
}
