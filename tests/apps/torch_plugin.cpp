// SPDX-License-Identifier: MIT
// Plays PyTorch above a plug-in for its allocator (examples/pytorch): tensors are made on one stream,
// read on another, freed by the host, and made again. Prints how many samples were wrong.
//   torch_plugin PLUGIN with|without     record_stream; without it a plug-in is wrong
// Exit status 1: with record_stream a sample was wrong, or a failed allocation was no exception.
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <sys/types.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

static const size_t BYTES = 1 << 20, STEP = 4096;
static const int ROUNDS = 100;

template <class F> static F *find(void *library, const char *name)
{
	F *function = reinterpret_cast<F *>(dlsym(library, name));

	if (!function) {
		fprintf(stderr, "torch_plugin: %s\n", dlerror());
		exit(2);
	}
	return function;
}

static void check(hipError_t error)
{
	if (error == hipSuccess)
		return;
	fprintf(stderr, "torch_plugin: %s\n", hipGetErrorString(error));
	exit(2);
}

// PyTorch makes the streams that a tensor is used on wait for those that wrote it.
static void join(hipStream_t stream, hipStream_t other)
{
	hipEvent_t event;

	check(hipEventCreateWithFlags(&event, hipEventDisableTiming));
	check(hipEventRecord(event, other));
	check(hipStreamWaitEvent(stream, event, 0));
	check(hipEventDestroy(event));
}

int main(int argc, char **argv)
{
	void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : nullptr;

	if (!library) {
		fprintf(stderr, "torch_plugin: %s\n", argc == 3 ? dlerror() : "PLUGIN with|without");
		return 2;
	}
	bool with = strcmp(argv[2], "with") == 0;
	auto *allocate = find<void *(ssize_t, int, hipStream_t)>(library, "torch_malloc");
	auto *release = find<void(void *, ssize_t, int, hipStream_t)>(library, "torch_free");
	auto *record_stream = find<void(void *, hipStream_t)>(library, "torch_record_stream");
	auto *reset = find<void()>(library, "torch_reset");
	hipStream_t writer, reader;
	hipMemPool_t pool;
	uint64_t threshold = UINT64_MAX, high = 0, after = 0;
	unsigned char *host;
	long wrong = 0;

	check(hipStreamCreateWithFlags(&writer, hipStreamNonBlocking));
	check(hipStreamCreateWithFlags(&reader, hipStreamNonBlocking));
	check(hipHostMalloc(reinterpret_cast<void **>(&host), BYTES * ROUNDS, 0));
	check(hipDeviceGetDefaultMemPool(&pool, 0));
	check(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &threshold));
	for (int i = 0; i < ROUNDS; i++) {
		void *tensor = allocate(BYTES, 0, writer);

		check(hipMemsetAsync(tensor, i, BYTES, writer));
		join(reader, writer);
		if (with)
			record_stream(tensor, reader);
		check(hipMemcpyAsync(host + i * BYTES, tensor, BYTES, hipMemcpyDeviceToHost, reader));
		release(tensor, BYTES, 0, writer);
	}
	check(hipDeviceSynchronize());
	for (int i = 0; i < ROUNDS; i++)
		for (size_t at = 0; at < BYTES; at += STEP)
			wrong += host[i * BYTES + at] != i;
	check(hipMemPoolGetAttribute(pool, hipMemPoolAttrReservedMemHigh, &high));
	reset();
	check(hipMemPoolGetAttribute(pool, hipMemPoolAttrReservedMemCurrent, &after));
	printf("record_stream=%d samples=%zu wrong=%ld reserved_high_mib=%zu after_reset_mib=%zu\n",
	       with, ROUNDS * BYTES / STEP, wrong, size_t(high >> 20), size_t(after >> 20));
	try {
		allocate(ssize_t(1) << 50, 0, writer);
		fprintf(stderr, "torch_plugin: out of memory is no exception\n");
		return 1;
	} catch (const std::bad_alloc &) {
	}
	if (after) {
		fprintf(stderr, "torch_plugin: memory stayed after the cache was emptied\n");
		return 1;
	}
	return with && wrong;
}
