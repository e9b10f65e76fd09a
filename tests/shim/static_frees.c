/* SPDX-License-Identifier: MIT */
/*
 * Blocks that destructors of static objects free are counted as freed, in the statistics and in
 * the journal: those of the program, of a library that it links, and of one that it opens
 * (static_frees_lib.c; the argument is its path). The program starts itself once more and reads
 * what that process wrote.
 */
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static void *classic, *pooled;

__attribute__((destructor)) static void frees(void)
{
	if (!classic)
		return;
	OK(hipFree(classic));
	OK(hipFreeAsync(pooled, NULL));
}

int static_frees_allocate(int twice);

static int child(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*allocate)(int) = NULL;
	void *fn = library ? dlsym(library, "static_frees_allocate") : NULL;

	memcpy(&allocate, &fn, sizeof(fn));
	CHECK(allocate && allocate != static_frees_allocate && !allocate(0));
	CHECK(!static_frees_allocate(0));
	OK(hipMallocAsync(&pooled, 3 << 20, NULL));
	OK(hipMalloc(&classic, 5 << 20));
	return 0;
}

/* How many lines of the file contain all of these words. */
static int lines_with(const char *path, const char *a, const char *b)
{
	char line[1024];
	FILE *f = fopen(path, "r");
	int n = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, a) && strstr(line, b);
	fclose(f);
	return n;
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/somashim-frees-XXXXXX", log[64], journal[64];
	int status;
	pid_t pid;

	CHECK(preloaded());
	CHECK(argc > 1);
	if (argc > 2)
		return child(argv[1]);
	CHECK(mkdtemp(dir));
	snprintf(log, sizeof(log), "%s/log", dir);
	snprintf(journal, sizeof(journal), "%s/journal", dir);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		setenv("SOMASHIM_STATS", "1", 1);
		setenv("SOMASHIM_LOG", log, 1);
		setenv("SOMASHIM_JOURNAL", journal, 1);
		execl("/proc/self/exe", argv[0], argv[1], "child", (char *)NULL);
		_exit(1);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(lines_with(log, "allocations 3, frees 3,", "") == 2);
	CHECK(lines_with(log, "used 0.0 MiB (high", "") == 2);
	CHECK(lines_with(journal, ",allocate,", "") == 6);
	CHECK(lines_with(journal, ",free,", "") == 6);
	unlink(log);
	unlink(journal);
	rmdir(dir);
	return 0;
}
