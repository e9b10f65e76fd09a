/* SPDX-License-Identifier: MIT */
/*
 * The banner of SOMASHIM_VERBOSE names the backing of hipMallocAsync and that of hipMalloc where
 * they differ. The program starts itself once more per backing and reads what that process wrote.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static char log_path[64];

static bool prints(const char *backing, const char *line)
{
	char text[8192];
	size_t n;
	FILE *f;
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		setenv("SOMASHIM_VERBOSE", "1", 1);
		setenv("SOMASHIM_LOG", log_path, 1);
		setenv("SOMASHIM_BACKING", backing, 1);
		execl("/proc/self/exe", "banner", "child", (char *)NULL);
		_exit(1);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	f = fopen(log_path, "r");
	CHECK(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	unlink(log_path);
	return strstr(text, line);
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/somashim-banner-XXXXXX";
	void *p;

	(void)argv;
	CHECK(preloaded());
	if (argc > 1) {
		OK(hipMalloc(&p, 4096));
		return 0;
	}
	CHECK(mkdtemp(dir));
	snprintf(log_path, sizeof(log_path), "%s/log", dir);
	CHECK(prints("vmm", "backing: vmm for hipMallocAsync, hip for hipMalloc\n"));
	CHECK(prints("hip", "backing: hip\n"));
	CHECK(prints("hsa", "backing: hsa\n"));
	setenv("SOMASHIM_SLEEP", "all", 1);
	CHECK(prints("vmm", "backing: vmm\n"));
	unsetenv("SOMASHIM_SLEEP");
	setenv("SOMASHIM_IPC_WHOLE", "1M", 1);
	CHECK(prints("hsa", "backing: hsa for hipMallocAsync, hip for hipMalloc\n"));
	rmdir(dir);
	return 0;
}
