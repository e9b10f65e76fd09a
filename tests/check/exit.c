/* SPDX-License-Identifier: MIT */
/* exit MICROSECONDS: main() returns then, while threads begin, or allocate, use and free blocks.
 * Nothing is wrong. */
#include <hip/hip_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *work(void *seed)
{
	unsigned at = (unsigned)(uintptr_t)seed;
	hipStream_t stream;

	/* Calls fail when the runtime has ended, which may be before the thread's first. */
	if (hipStreamCreateWithFlags(&stream, hipStreamNonBlocking) != hipSuccess)
		return NULL;
	for (;;) {
		size_t size = 300 + (size_t)rand_r(&at) % 1000;
		void *p;

		if (hipMallocAsync(&p, size, stream) != hipSuccess)
			return NULL;
		(void)hipMemsetAsync(p, 1, size, stream);
		(void)hipFreeAsync(p, stream);
		(void)hipStreamSynchronize(stream);
	}
}

int main(int argc, char **argv)
{
	for (uintptr_t i = 1; i <= 3; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, work, (void *)i) != 0)
			return 3;
	}
	usleep(argc > 1 ? (useconds_t)atoi(argv[1]) : 50000);
	return 0;
}
