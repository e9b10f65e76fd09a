/* SPDX-License-Identifier: MIT */
/*
 * What tests need from the device itself: to hold a stream back, to count the calls that
 * reached it, and to report its memory. The software device has calls of its own for that.
 * On a real device a stream is held back by a value that it waits for, and memory is the
 * runtime's figure. Both are asked for past the shim, which must not know of them. Calls
 * are not counted there, and such a test is skipped.
 */
#ifndef TEST_SHIM_DEVICE_H
#define TEST_SHIM_DEVICE_H

#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/rocm/elf_tables.h"

#define SKIP 77
#define HELD_AT_ONCE 16

/* The software device's own calls; on a real device there are none, and TEST_AS_HARDWARE=1 has a
 * test do without them, too. */
static inline void *sim_call(const char *name)
{
	return getenv("TEST_AS_HARDWARE") ? NULL : dlsym(RTLD_DEFAULT, name);
}

static inline void *sim_must(const char *name)
{
	void *fn = sim_call(name);

	if (!fn) {
		fprintf(stderr, "needs the software device\n");
		exit(SKIP);
	}
	return fn;
}

/* Is this HIP on CUDA's driver, real or played? sim/cuda/README.md says where its rules are
 * others. */
static inline int on_cuda(void)
{
	return !!dlsym(RTLD_DEFAULT, "somacuda_spin");
}

static inline uint64_t sim_calls(void)
{
	return ((uint64_t(*)(void))sim_must("somasim_total_calls"))();
}

static inline uint64_t sim_count(const char *name)
{
	return ((uint64_t(*)(const char *))sim_must("somasim_call_count"))(name);
}

struct runtime_symbol {
	const char *name;
	void *address;
};

static inline int find_in_runtime(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *base = strrchr(info->dlpi_name, '/');
	struct runtime_symbol *s = arg;
	const ElfW(Dyn) *dynamic = NULL;
	struct ss_elf elf;

	(void)size;
	if (strncmp(base ? base + 1 : info->dlpi_name, "libamdhip64.so", 14))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	if (ss_elf_read(info->dlpi_addr, dynamic, &elf))
		s->address = (void *)ss_elf_address(&elf, s->name, STT_FUNC);
	return 1;
}

/* The runtime's own function. It is read from the runtime's symbol table, because dlsym() leads to
 * the shim. */
static inline void *runtime_call(const char *name)
{
	struct runtime_symbol s = {.name = name};

	dl_iterate_phdr(find_in_runtime, &s);
	if (!s.address) {
		fprintf(stderr, "the runtime has no %s\n", name);
		exit(SKIP);
	}
	return s.address;
}

#define RUNTIME(call) ((__typeof__(&call))runtime_call(#call))

static struct held {
	hipStream_t stream;
	int on;
} held_streams[HELD_AT_ONCE];
/* A stream goes on when its word is 1. Pinned; a reset takes them along. */
static volatile uint64_t *held_words;
static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;

static inline void must(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "%s failed\n", what);
		exit(1);
	}
}

/* The words of all streams at once, before the first is held: CUDA waits for every stream before it
 * gives pinned memory, so whoever asked while one is held would wait for ever. */
static inline void take_held_words(void)
{
	size_t bytes = HELD_AT_ONCE * sizeof(*held_words);
	void *seen, *words = (void *)(uintptr_t)held_words;

	if (words && !RUNTIME(hipHostGetDevicePointer)(&seen, words, 0))
		return;
	must(!RUNTIME(hipHostMalloc)(&words, bytes, 0), "hipHostMalloc");
	held_words = words;
	memset(held_streams, 0, sizeof(held_streams)); /* they went with the words */
}

/* Holds a stream, until release(). False: as many as can be are held. Any thread. */
static inline int try_stall(hipStream_t stream)
{
	int (*fn)(hipStream_t) = (int (*)(hipStream_t))sim_call("somasim_stall_stream");
	struct held *h = held_streams;
	void *word = NULL;
	int free;

	if (fn)
		return !fn(stream);
	pthread_mutex_lock(&held_lock);
	take_held_words();
	while (h < held_streams + HELD_AT_ONCE && h->on)
		h++;
	free = h < held_streams + HELD_AT_ONCE;
	if (free) {
		word = (void *)(uintptr_t)&held_words[h - held_streams];
		held_words[h - held_streams] = 0;
		h->on = 1;
		h->stream = stream;
	}
	pthread_mutex_unlock(&held_lock);
	if (free)
		must(!RUNTIME(hipStreamWaitValue64)(stream, word, 1, hipStreamWaitValueEq,
						    UINT64_MAX),
		     "hipStreamWaitValue64");
	return free;
}

static inline void stall(hipStream_t stream)
{
	must(try_stall(stream), "to hold a stream");
}

static inline void release(hipStream_t stream)
{
	int (*fn)(hipStream_t) = (int (*)(hipStream_t))sim_call("somasim_release_stream");

	if (fn) {
		must(!fn(stream), "somasim_release_stream");
		return;
	}
	pthread_mutex_lock(&held_lock);
	for (struct held *h = held_streams; h < held_streams + HELD_AT_ONCE; h++)
		if (h->on && h->stream == stream) {
			held_words[h - held_streams] = 1;
			h->on = 0;
		}
	pthread_mutex_unlock(&held_lock);
}

/* Device memory that is left, by the device's own figure. */
static inline uint64_t device_free(int dev)
{
	uint64_t (*bytes)(int) = (uint64_t(*)(int))sim_call("somasim_device_free_bytes");
	size_t left = 0, total = 0;
	int before = 0;

	if (bytes)
		return bytes(dev);
	must(!hipGetDevice(&before) && !hipSetDevice(dev), "hipSetDevice");
	must(!RUNTIME(hipMemGetInfo)(&left, &total), "hipMemGetInfo");
	must(!hipSetDevice(before), "hipSetDevice");
	return left;
}

#endif
