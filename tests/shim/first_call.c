/* SPDX-License-Identifier: MIT */
/*
 * A program with a managed variable that forks before it uses HIP. The registration of the
 * variable in a constructor must not make the shim start anything: the runtime is asked for its
 * version in the first HIP call of a process, and not at all by a disabled shim.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

void **__hipRegisterFatBinary(const void *data);
void __hipRegisterManagedVar(void **modules, void **pointer, void *init, const char *name,
			     size_t size, unsigned align);

static void *variable;

/* As hipcc generates it. */
__attribute__((constructor)) static void register_variable(void)
{
	static int fat, init = 7;

	__hipRegisterManagedVar(__hipRegisterFatBinary(&fat), &variable, &init, "variable",
				sizeof(init), sizeof(init));
}

static uint64_t starts(void)
{
	return sim_count("hipRuntimeGetVersion") + sim_count("hipGetDeviceCount");
}

static void works(void)
{
	void *p;

	OK(hipMalloc(&p, 1 << 20));
	OK(hipMemset(p, 1, 1 << 20));
	OK(hipDeviceSynchronize());
	OK(hipFree(p));
}

int main(void)
{
	const char *off = getenv("SOMASHIM_DISABLE");
	int status;
	pid_t pid;

	CHECK(preloaded());
	CHECK(variable);
	CHECK(starts() == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(starts() == 0);
		works();
		CHECK(off ? !starts() : starts() > 0);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(starts() == 0);
	works();
	CHECK(off ? !starts() : starts() > 0);
	return 0;
}
