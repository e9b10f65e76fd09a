/* SPDX-License-Identifier: MIT */
/*
 * The other end of shim/process/tester.c. The test runs as `somashim doctor`, in a process of its
 * own, because it may hang or die. The test counts as ended when its output ends, because the
 * thread that waits for the program collects every child.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/run_selftest.h"

#define TIMEOUT_S "20" /* without progress */
#define END_MS 1000    /* until a process is gone that has closed its output, or was killed */

static struct ss_report *report;
static char self[PATH_MAX];
static sigset_t inherited; /* the mask that a program gets */
static _Atomic pid_t test;

/* The environment without the page, which counts only what the program does. */
static char **environment(void)
{
	size_t n = 0, count = 0;

	while (environ[count])
		count++;
	char **copy = calloc(count + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < count; i++)
		if (strncmp(environ[i], "SOMASHIM_REPORT=", 16) != 0)
			copy[n++] = environ[i];
	return copy;
}

static void run_test(void)
{
	char runtime[sizeof(report->runtime)], byte[256];
	char *argv[] = {"somashim", "doctor",    "--untried", "--runtime",
			runtime,    "--timeout", TIMEOUT_S,   NULL};
	char **env = environment();
	int end[2];

	snprintf(runtime, sizeof(runtime), "%.*s", (int)sizeof(runtime) - 1, report->runtime);
	if (!env || pipe2(end, O_CLOEXEC) != 0) {
		free(env);
		return;
	}
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(end[1], STDOUT_FILENO);
		dup2(end[1], STDERR_FILENO);
		sigprocmask(SIG_SETMASK, &inherited, NULL);
		execve(self, argv, env);
		_exit(127);
	}
	close(end[1]);
	atomic_store(&test, pid);
	while (pid > 0 && read(end[0], byte, sizeof(byte)) > 0) {}
	for (int i = 0; pid > 0 && i < END_MS && kill(pid, 0) == 0; i++)
		usleep(1000);
	atomic_store(&test, 0);
	close(end[0]);
	free(env);
}

static void *listen(void *arg)
{
	uint32_t state;

	while ((state = atomic_load(&report->test)) == SS_TEST_READY || state == SS_TEST_ASKING)
		syscall(SYS_futex, &report->test, FUTEX_WAIT, state, NULL, NULL, 0);
	if (state == SS_TEST_WANTED) {
		run_test();
		atomic_store(&report->test, SS_TEST_DONE);
		syscall(SYS_futex, &report->test, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
	return arg;
}

void ss_run_selftest_start(struct ss_report *r)
{
	pthread_t thread;
	sigset_t all;

	report = r;
	if (!ss_child_self(self, sizeof(self)))
		return;
	r->tester = (uint32_t)getpid();
	atomic_store(&r->test, SS_TEST_READY);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &inherited);
	if (pthread_create(&thread, NULL, listen, NULL) == 0)
		pthread_detach(thread);
	else
		atomic_store(&r->test, SS_TEST_OFF);
	pthread_sigmask(SIG_SETMASK, &inherited, NULL);
}

void ss_run_selftest_stop(void)
{
	pid_t pid = atomic_load(&test);

	if (!report)
		return;
	atomic_store(&report->test, SS_TEST_DONE);
	syscall(SYS_futex, &report->test, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	for (int i = 0; i < END_MS && waitpid(pid, NULL, WNOHANG) == 0; i++)
		usleep(1000);
}
