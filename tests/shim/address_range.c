/* SPDX-License-Identifier: MIT */
/*
 * hipMemGetHandleForAddressRange: a descriptor means a whole allocation of the runtime, and an
 * importer takes the first byte of that for the block. So a block has one only if it starts its
 * segment.
 */
#include <unistd.h>

#include "test.h"

#define SIZE (1u << 20)
#define BLOCKS 4
#define DMA_BUF 1 /* hipMemRangeHandleTypeDmaBufFd, which Debian 12's header does not have */

typedef hipError_t get_handle(void *handle, void *ptr, size_t size, int type,
			      unsigned long long flags);
static get_handle *get;

/* True: the device gave a descriptor, of memory that begins with the block. */
static bool exported(char *block, char *ptr, size_t size)
{
	int fd = -1;
	hipError_t err = get(&fd, ptr, size, DMA_BUF, 0);
	char *base = NULL;

	if (err != hipSuccess) {
		CHECK(err == hipErrorNotSupported && fd == -1);
		CHECK(hipGetLastError() == hipErrorNotSupported);
		return false;
	}
	CHECK(pread(fd, &base, sizeof(base), 0) == sizeof(base));
	close(fd);
	CHECK(base == block);
	return true;
}

/* With an argument: `async` or `classic` allocations. */
int main(int argc, char **argv)
{
	bool each = getenv("SOMASHIM_IPC_WHOLE");
	bool pool = argc > 1 ? !strcmp(argv[1], "async") : getenv("SOMASHIM_BACKING") != NULL;
	char *p[BLOCKS], *q, *named = NULL;
	int count = 0, fd = -1;
	hipStream_t s;

	CHECK(preloaded());
	get = (get_handle *)dlsym(RTLD_DEFAULT, "hipMemGetHandleForAddressRange");
	CHECK(get);
	OK(hipStreamCreate(&s));
	for (int i = 0; i < BLOCKS; i++) {
		if (pool)
			OK(hipMallocAsync((void **)&p[i], SIZE, s));
		else
			OK(hipMalloc((void **)&p[i], SIZE));
		if (exported(p[i], p[i], SIZE)) {
			named = p[i];
			CHECK(exported(p[i], p[i] + SIZE / 2, SIZE / 2));
			GIVES(hipErrorInvalidValue, get(&fd, p[i], SIZE + 1, DMA_BUF, 0));
			GIVES(hipErrorInvalidValue, get(&fd, p[i] + 1, SIZE, DMA_BUF, 0));
			count++;
		}
	}
	CHECK(count == (each ? BLOCKS : pool ? 0 : 1));
	/* Somebody may hold it, so its bytes are nobody's any more. (A whole segment goes back, and
	 * the runtime may use the address again.) */
	if (argc > 1 && pool) {
		/* hipFreeAsync does not wait for a stream that stands still until the host goes
		 * on. */
		hipStream_t stuck;
		uint32_t *flag;

		OK(hipStreamCreateWithFlags(&stuck, hipStreamNonBlocking));
		OK(hipHostMalloc((void **)&flag, sizeof(*flag), 0));
		*flag = 0;
		OK(hipStreamWaitValue32(stuck, flag, 1, hipStreamWaitValueEq, UINT32_MAX));
		for (int i = 0; i < BLOCKS; i++)
			OK(hipFreeAsync(p[i], s));
		OK(hipStreamSynchronize(s));
		__atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
		OK(hipStreamSynchronize(stuck));
	}
	for (int i = 0; i < BLOCKS && !(argc > 1 && pool); i++)
		OK(hipFree(p[i]));
	/* What was freed in stream order, and is exported, is not another's either. */
	for (int i = 0; argc > 1 && pool && i < BLOCKS; i++) {
		OK(hipMallocAsync((void **)&q, SIZE, s));
		OK(hipMemsetAsync(q, i, SIZE, s));
		OK(hipFreeAsync(q, s));
	}
	for (int i = 0; named && !each && i < BLOCKS; i++) {
		OK(hipMalloc((void **)&q, SIZE));
		CHECK(q != named);
	}
	/* Memory of the runtime's own. */
	OK(hipHostMalloc((void **)&q, SIZE, 0));
	CHECK(exported(q, q, SIZE));
	return 0;
}
