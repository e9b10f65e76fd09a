/* SPDX-License-Identifier: MIT */
/*
 * The start of the device: neither loading the libraries nor the registrations of compiled
 * code start it, and a child that is forked before it starts can use it.
 */
#include <hsa/hsa.h>
#include <sys/wait.h>

#include "test.h"

extern void **__hipRegisterFatBinary(const void *);
extern void __hipUnregisterFatBinary(void **);
extern void __hipRegisterVar(void **, void *, char *, char *, int, size_t, int, int);
extern void __hipRegisterManagedVar(void *, void **, void *, const char *, size_t, unsigned);

static int started(void)
{
	return ((int (*)(void))control("somasim_started"))();
}

static void *managed;
static int variable;

/* Uses the device and checks that it works. */
static void use_device(int value)
{
	hipStream_t s;
	char *d, back;
	int copy = 0, n;

	OK(hipGetDeviceCount(&n));
	OK(hipStreamCreate(&s));
	OK(hipMalloc((void **)&d, 4096));
	OK(hipMemsetAsync(d, value, 4096, s));
	OK(hipStreamSynchronize(s));
	OK(hipMemcpy(&back, d + 4095, 1, hipMemcpyDeviceToHost));
	CHECK(back == value);
	OK(hipMemsetD32Async(managed, value, 1, s));
	OK(hipStreamSynchronize(s));
	CHECK(*(int *)managed == value);
	OK(hipMemcpyToSymbol(&variable, &value, sizeof value, 0, hipMemcpyHostToDevice));
	OK(hipMemcpyFromSymbol(&copy, &variable, sizeof copy, 0, hipMemcpyDeviceToHost));
	CHECK(copy == value);
	OK(hipFree(d));
	OK(hipStreamDestroy(s));
}

static int exit_code(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

int main(void)
{
	int init = 42;
	void **module, *p;
	pid_t pid;

	CHECK(!started());
	module = __hipRegisterFatBinary("image");
	__hipRegisterVar(module, &variable, "variable", "variable", 0, sizeof variable, 0, 0);
	__hipRegisterManagedVar(module, &managed, &init, "managed", sizeof init, sizeof init);
	CHECK(*(int *)managed == 42);
	CHECK(!strcmp(hipGetErrorName(hipErrorOutOfMemory), "hipErrorOutOfMemory"));
	CHECK(!started());

	/* Children of a process that has not used HIP: by HIP, and by HSA. */
	pid = fork();
	if (!pid) {
		use_device(3);
		CHECK(started());
		exit(0);
	}
	CHECK(exit_code(pid) == 0);
	CHECK(!started() && *(int *)managed == 42);
	pid = fork();
	if (!pid) {
		OK(hsa_init());
		CHECK(started());
		use_device(4);
		exit(0);
	}
	CHECK(exit_code(pid) == 0);

	/* A grandchild, with nothing started in between. */
	pid = fork();
	if (!pid) {
		pid = fork();
		if (!pid) {
			use_device(5);
			exit(0);
		}
		exit(exit_code(pid));
	}
	CHECK(exit_code(pid) == 0);

	CHECK(!started());
	use_device(6);
	CHECK(started());

	/* A child of a process that has used HIP. */
	pid = fork();
	if (!pid)
		_exit(hipMalloc(&p, 64) == hipErrorNotInitialized &&
				      hsa_init() == HSA_STATUS_ERROR_NOT_INITIALIZED ?
			      0 :
			      1);
	CHECK(exit_code(pid) == 0);
	use_device(7);
	__hipUnregisterFatBinary(module);
	return 0;
}
