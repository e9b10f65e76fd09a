/* SPDX-License-Identifier: MIT */
/*
 * The device faults: a kernel writes to memory that went back to the device.
 *   check_fault OFFSET [own]    own: the program has a handler of its own
 */
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <hsa/hsa_ext_amd.h>
#include <stdio.h>
#include <stdlib.h>

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

int main(int argc, char **argv)
{
	void (*reg)(const void *, void (*)(void **)) = (void (*)(
		const void *, void (*)(void **)))dlsym(RTLD_DEFAULT, "somasim_register_kernel");
	hsa_status_t (*handler)(hsa_amd_system_event_callback_t, void *) = (hsa_status_t(*)(
		hsa_amd_system_event_callback_t,
		void *))dlsym(RTLD_DEFAULT, "hsa_amd_register_system_event_handler");
	static char kernel;
	hipMemPool_t pool;
	hipStream_t s;
	void *p;

	if (argc < 2 || !reg || !handler)
		return 3;
	if (argc > 2 && handler(mine, NULL) != HSA_STATUS_SUCCESS)
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
