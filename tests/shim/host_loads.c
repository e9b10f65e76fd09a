/* SPDX-License-Identifier: MIT */
/*
 * The host loads from memory of a pool, as PyTorch does where the device has a large BAR. Mapped
 * memory is open to the host where that is safe; where it is not, auto takes no mapped memory if
 * PyTorch is loaded (SOMASIM_QUIRKS=host-no-access).
 *
 *   host_loads vmm|hip loads|faults MODULE|none
 *
 * Which memory a pool has, whether mapped memory can be loaded from, and a library that is loaded
 * first.
 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define MIB ((size_t)1 << 20)

static bool load_faults(const volatile char *p)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(*p == 7 ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

/* Was it said that PyTorch dies? */
static bool is_said(void)
{
	FILE *log = fopen(getenv("SOMASHIM_LOG"), "r");
	char line[512];
	bool said = false;

	while (log && fgets(line, sizeof(line), log))
		said |= strstr(line, "PyTorch loads from device memory on the host (.item())") !=
			NULL;
	if (log)
		fclose(log);
	return said;
}

int main(int argc, char **argv)
{
	bool mapped, torch;
	char *p;

	CHECK(argc == 4 && preloaded());
	if (pkey_alloc(0, 0) < 0)
		return SKIP;
	(void)unlink(getenv("SOMASHIM_LOG"));
	mapped = !strcmp(argv[1], "vmm");
	torch = strcmp(argv[3], "none") != 0;
	CHECK(!torch || dlopen(argv[3], RTLD_NOW));
	OK(hipMallocAsync((void **)&p, 8 * MIB, NULL));
	OK(hipMemsetAsync(p, 7, 8 * MIB, NULL));
	OK(hipStreamSynchronize(NULL));
	CHECK((sim_count("hipMemCreate") > 0) ==
	      (mapped || !strcmp(getenv("SOMASHIM_SELFTEST"), "1")));
	CHECK(load_faults(p) == (mapped && !strcmp(argv[2], "faults")));
	CHECK(is_said() == (mapped && torch && !strcmp(argv[2], "faults")));
	/* What comes later is as what was there first. */
	OK(hipMallocAsync((void **)&p, 100 * MIB, NULL));
	OK(hipMemsetAsync(p, 7, 100 * MIB, NULL));
	OK(hipStreamSynchronize(NULL));
	CHECK(load_faults(p + 90 * MIB) == (mapped && !strcmp(argv[2], "faults")));
	return 0;
}
