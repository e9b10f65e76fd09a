/* SPDX-License-Identifier: MIT */
/*
 * Runs a program as a child process. Our caller sees no difference to the program itself. Signals
 * that another process sends to us are passed on; signals from the terminal reach the child by
 * themselves, since it is in the same process group. If the terminal stops the child, we stop and
 * are continued with it. The child is killed if we are killed, and we end as the child ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/child.h"

/* Signals that are not forwarded: those that the kernel raises for a fault of our own, and those
 * that stop a process that uses the terminal from the background. */
static const int own[] = {
	SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGTTIN, SIGTTOU,
};

/* The actions of these signals when we were started. */
static void (*inherited)(int) = SIG_DFL, (*inherited_limit)(int) = SIG_DFL;

void ss_child_init(void)
{
	inherited = signal(SIGCHLD, SIG_DFL);
	inherited_limit = signal(SIGXFSZ, SIG_IGN);
}

int ss_child_exec(char **argv)
{
	signal(SIGCHLD, inherited);
	signal(SIGXFSZ, inherited_limit);
	execvp(argv[0], argv);
	int error = errno;
	ss_cli_error("%s: %s", argv[0], strerror(error));
	return error == ENOENT ? 127 : 126;
}

bool ss_child_self(char *path, size_t size)
{
	const char *asked = (const char *)getauxval(AT_EXECFN);
	char *real = realpath("/proc/self/exe", NULL);

	if (!real && asked) /* a chroot or a container without /proc */
		real = realpath(asked, NULL);
	bool fits = real && snprintf(path, size, "%s", real) < (int)size;
	free(real);
	return fits;
}

/* Blocks the forwarded signals and SIGCHLD, so that sigwaitinfo() can collect them. `old` gets
 * the mask that the child must have. */
static void block_signals(sigset_t *held, sigset_t *old)
{
	sigfillset(held);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(held, own[i]);
	sigprocmask(SIG_BLOCK, held, old);
}

static void exec_child(char **argv, const sigset_t *mask, pid_t parent, int failed)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* the parent died before prctl() */
		_exit(137);
	sigprocmask(SIG_SETMASK, mask, NULL);
	int status = ss_child_exec(argv);
	(void)!write(failed, "", 1);
	_exit(status);
}

int ss_child_run(char **argv, pid_t *started)
{
	sigset_t held, old;
	pid_t parent = getpid();
	siginfo_t info;
	int status, failed[2]; /* pipe: exec closes it; a byte in it means that exec failed */
	char byte;

	*started = 0;
	if (pipe2(failed, O_CLOEXEC) != 0) {
		ss_cli_error("pipe: %s", strerror(errno));
		return 126 << 8;
	}
	/* Orphans become our children, so that we know whether the program left some. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	block_signals(&held, &old);
	pid_t child = fork();
	if (child < 0) {
		sigprocmask(SIG_SETMASK, &old, NULL);
		ss_cli_error("fork: %s", strerror(errno));
		return 126 << 8;
	}
	if (child == 0)
		exec_child(argv, &old, parent, failed[1]);
	close(failed[1]);
	*started = read(failed[0], &byte, 1) == 1 ? 0 : child;
	close(failed[0]);
	for (;;) {
		int signal = sigwaitinfo(&held, &info);
		if (signal < 0)
			continue;
		if (signal != SIGCHLD) {
			if (info.si_code <= 0 && info.si_pid != child) /* sent by a process */
				kill(child, signal);
			continue;
		}
		pid_t pid;
		while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
			if (pid != child)
				continue;
			if (!WIFSTOPPED(status)) {
				sigprocmask(SIG_SETMASK, &old, NULL);
				return status;
			}
			/* A process that sends SIGSTOP to the child alone will continue the child
			 * alone. */
			if (WSTOPSIG(status) != SIGSTOP)
				raise(SIGSTOP);
		}
		if (pid < 0) {
			sigprocmask(SIG_SETMASK, &old, NULL);
			ss_cli_error("%s: %s", argv[0], strerror(errno));
			return 126 << 8;
		}
	}
}

bool ss_child_others(void)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {}
	return pid == 0;
}

int ss_child_exit(int status)
{
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	/* The child has written a core file if it wanted one; we leave none. */
	int signal = WTERMSIG(status);
	struct rlimit none = {0, 0};
	sigset_t one;
	setrlimit(RLIMIT_CORE, &none);
	sigemptyset(&one);
	sigaddset(&one, signal);
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigaction(signal, &action, NULL);
	raise(signal);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	return 128 + signal;
}
