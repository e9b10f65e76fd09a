/* SPDX-License-Identifier: MIT */
/*
 * The store has no room, and processes that end or become another program while they copy or
 * sleep: nothing is lost, and nothing is left behind.
 *
 *   shim_sleep_store SOMASHIM CASE
 */
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "sleep.h"

#define SIZE (24 * MIB)

static char dir[] = "/tmp/somashim-store-XXXXXX";

static int files_in(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	CHECK(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

/* A full disk, as the process sees it: its files may not be so large. */
static void disk(void)
{
	struct rlimit all, little = {MIB, MIB};
	void *p = block(SIZE, 1);

	CHECK(!getrlimit(RLIMIT_FSIZE, &all));
	little.rlim_max = all.rlim_max;
	CHECK(!setrlimit(RLIMIT_FSIZE, &little));
	COMMAND(1, "sleep", "--store", dir, own_pid());
	SAID("files may not be so large");
	CHECK(state_now() == SS_LIVE_AWAKE && whole(p, SIZE, 1));
	CHECK(!setrlimit(RLIMIT_FSIZE, &all));
	COMMAND(0, "sleep", "--store", dir, own_pid());
	CHECK(!files_in(dir) && whole(p, SIZE, 1));
}

/* The machine has too little memory, and then enough (a directory stands before /proc). */
static void meminfo(const char *available)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/meminfo", dir);
	f = fopen(path, "w");
	CHECK(f && fprintf(f, "MemAvailable: %s kB\n", available) > 0 && !fclose(f));
}

static void host_memory(int argc, char **argv)
{
	char path[128];
	void *p;

	snprintf(path, sizeof(path), "%s/proc", dir);
	CHECK(!mkdir(path, 0700) && !setenv("SOMASIM_KERNEL_ROOT", dir, 1));
	meminfo("530000");
	sleep_test_begin(argc, argv);
	p = block(SIZE, 1);
	COMMAND(1, "sleep", own_pid());
	SAID("the machine has too little host memory");
	CHECK(state_now() == SS_LIVE_AWAKE && whole(p, SIZE, 1));
	meminfo("9000000");
	COMMAND(0, "sleep", own_pid());
	CHECK(whole(p, SIZE, 1));
	snprintf(path, sizeof(path), "%s/proc/meminfo", dir);
	CHECK(!unlink(path));
	*strrchr(path, '/') = '\0';
	CHECK(!rmdir(path));
}

/* ---- processes that end (the child is the one that sleeps) ------------------------------- */

static void *kills(void *arg)
{
	(void)arg;
	while (state_now() < SS_LIVE_COPYING)
		sched_yield();
	kill(getpid(), SIGKILL);
	return NULL;
}

/* In the child, which has made no call of HIP before. Ends by SIGKILL, or becomes another
 * program. */
static void child(bool killed, int argc, char **argv)
{
	char *const other[] = {"true", NULL};
	pthread_t thread;

	sleep_test_begin(argc, argv);
	(void)block(killed ? 8 * SIZE : SIZE, 1);
	if (killed)
		CHECK(!pthread_create(&thread, NULL, kills, NULL));
	(void)command("sleep", "--hold", "--store", dir, own_pid(), NULL);
	CHECK(!killed && state_now() == SS_LIVE_ASLEEP);
	execvp(other[0], other);
	_exit(2);
}

static void ends(bool killed, int argc, char **argv)
{
	char pages[] = "/tmp/somashim-pages-XXXXXX";
	int status;
	pid_t pid;

	somashim = argv[1];
	CHECK(mkdtemp(pages) && !setenv("SOMASHIM_LIVE", pages, 1));
	pid = fork();
	if (!pid)
		child(killed, argc, argv);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0);
	CHECK(!files_in(dir));
	COMMAND(1, "wake", "--all");
	SAID("no process was found");
	CHECK(!files_in(pages) && !rmdir(pages)); /* the page is gone */
}

int main(int argc, char **argv)
{
	if (argc < 3 || !preloaded())
		return SKIP;
	CHECK(mkdtemp(dir));
	if (!strcmp(argv[2], "killed") || !strcmp(argv[2], "execs")) {
		ends(!strcmp(argv[2], "killed"), argc, argv);
	} else if (!strcmp(argv[2], "host_memory")) {
		host_memory(argc, argv);
	} else {
		sleep_test_begin(argc, argv);
		disk();
	}
	CHECK(!rmdir(dir));
	return 0;
}
