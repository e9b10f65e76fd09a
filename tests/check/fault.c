/* SPDX-License-Identifier: MIT */
/*
 * The device faults: a kernel writes to memory that went back to the device.
 *   check_fault OFFSET [own|threads]    own: the program has a handler of its own; threads: each of
 *                                       six threads registers one, all at once
 */
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <hsa/hsa_ext_amd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) do { \
	if ((call) != hipSuccess) \
		exit(2); \
} while (0)

static char *at; /* no argument shows it */

static void write_there(void **args)
{
	(void)args;
	*at = 1;
}

static hsa_status_t mine(const hsa_amd_event_t *event, void *data)
{
	(void)data;
	fprintf(stderr, "the program is told of event %d\n", (int)event->event_type);
	return HSA_STATUS_ERROR;
}

static hsa_status_t (*handler)(hsa_amd_system_event_callback_t, void *);
static pthread_barrier_t all;

static void *register_one(void *data)
{
	pthread_barrier_wait(&all);
	return handler(mine, data) == HSA_STATUS_SUCCESS ? data : NULL;
}

static int register_many(void)
{
	pthread_t threads[6];
	void *good;
	int bad = 0;

	pthread_barrier_init(&all, NULL, 6);
	for (int i = 0; i < 6; i++)
		if (pthread_create(&threads[i], NULL, register_one, &all))
			exit(2);
	for (int i = 0; i < 6; i++) {
		pthread_join(threads[i], &good);
		bad += !good;
	}
	return bad;
}

int main(int argc, char **argv)
{
	void (*reg)(const void *, void (*)(void **)) = (void (*)(
		const void *, void (*)(void **)))dlsym(RTLD_DEFAULT, "somasim_register_kernel");
	static char kernel;
	hipMemPool_t pool;
	hipStream_t s;
	void *p;

	handler = (hsa_status_t(*)(hsa_amd_system_event_callback_t, void *))dlsym(
		RTLD_DEFAULT, "hsa_amd_register_system_event_handler");
	if (argc < 2 || !reg || !handler)
		return 3;
	if (argc > 2 && !strcmp(argv[2], "threads") && register_many())
		return 4;
	if (argc > 2 && !strcmp(argv[2], "own") && handler(mine, NULL) != HSA_STATUS_SUCCESS)
		return 4;
	reg(&kernel, write_there);
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMallocAsync(&p, 8 << 20, s));
	at = (char *)p + strtoull(argv[1], NULL, 0);
	OK(hipFreeAsync(p, s));
	OK(hipDeviceSynchronize());
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipLaunchKernel(&kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, s));
	OK(hipDeviceSynchronize());
	return 5;
}
