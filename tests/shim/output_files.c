/* SPDX-License-Identifier: MIT */
/*
 * What the shim writes, and where: a program that closes all descriptors and opens its own,
 * a journal across a device reset, statistics of destroyed pools.
 */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static char dir[] = "/tmp/somashim-sinks-XXXXXX";

static const char *at(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static char *text_of(const char *name)
{
	static char text[1 << 16];
	FILE *f = fopen(at(name), "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	CHECK(f && !fclose(f));
	text[n] = '\0';
	return text;
}

static int daemon_like(void)
{
	void *p, *huge;
	int fd;

	OK(hipMalloc(&p, 1000));
	for (int i = 3; i < 256; i++)
		close(i);
	for (int i = 0; i < 8; i++) {
		fd = open(at("data"), O_WRONLY | O_CREAT | O_APPEND, 0600);
		CHECK(fd >= 0 && fd < 256);
	}
	CHECK(write(fd, "precious", 8) == 8);
	OK(hipFree(p));
	GIVES(hipErrorOutOfMemory, hipMalloc(&huge, (size_t)1 << 45));
	return 0;
}

static int resets(void)
{
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
	void *p[3];

	OK(hipMalloc(&p[0], 1000));
	OK(hipMallocAsync(&p[1], 1 << 20, NULL));
	OK(hipMallocFromPoolAsync(&p[2], 1 << 20, pool, NULL));
	OK(hipDeviceReset());
	OK(hipMalloc(&p[0], 1000));
	OK(hipFree(p[0]));
	return 0;
}

static int destroys(void)
{
	hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
	void *p;

	for (int i = 0; i < 500; i++) {
		OK(hipMallocFromPoolAsync(&p, 4096, pool, NULL));
		OK(hipFreeAsync(p, NULL));
	}
	OK(hipMemPoolDestroy(pool));
	return 0;
}

static void run(const char *self, const char *what)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		setenv("SOMASHIM_STATS", "1", 1);
		setenv("SOMASHIM_LOG", at("log"), 1);
		setenv("SOMASHIM_JOURNAL", at("journal"), 1);
		execl("/proc/self/exe", self, what, dir, NULL);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
}

static unsigned count(const char *text, const char *word)
{
	unsigned n = 0;

	while ((text = strstr(text, word))) {
		n++;
		text++;
	}
	return n;
}

int main(int argc, char **argv)
{
	char clean[64];

	CHECK(preloaded());
	if (argc > 2) {
		strcpy(dir, argv[2]);
		return !strcmp(argv[1], "daemon") ? daemon_like() :
		       !strcmp(argv[1], "reset")  ? resets() :
						    destroys();
	}
	CHECK(mkdtemp(dir));
	run(argv[0], "daemon");
	CHECK(!strcmp(text_of("data"), "precious"));
	CHECK(strstr(text_of("log"), "out of memory") && strstr(text_of("log"), "classic pool"));
	unlink(at("journal"));
	run(argv[0], "reset");
	CHECK(count(text_of("journal"), ",allocate,") == 4 &&
	      count(text_of("journal"), ",free,") == 4);
	/* A second process has a journal of its own, and a log that both write to. */
	unlink(at("log"));
	run(argv[0], "reset");
	CHECK(count(text_of("journal"), ",allocate,") == 4 &&
	      count(text_of("journal.2"), ",allocate,") == 4);
	CHECK(strstr(text_of("log"), "this journal is ") && strstr(text_of("log"), "/journal.2\n"));
	run(argv[0], "reset");
	CHECK(strstr(text_of("log"), "/journal.2\n") && strstr(text_of("log"), "/journal.3\n"));
	unlink(at("log"));
	run(argv[0], "destroy");
	CHECK(strstr(text_of("log"), "pools that are no more") &&
	      strstr(text_of("log"), "allocations 500"));
	snprintf(clean, sizeof(clean), "rm -r %s", dir);
	CHECK(!system(clean));
	return 0;
}
