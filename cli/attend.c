/* SPDX-License-Identifier: MIT */
/*
 * A parent that is not there: runs a program as a child and is, to whoever started us,
 * as if it were the program. Signals sent to us go on to it; what the terminal sends
 * has reached it already, with the whole process group. It is stopped and continued
 * with us, ends as it ends, and dies if we are killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

static const int forwarded[] = {
	SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGTSTP, SIGWINCH,
	SIGVTALRM, SIGPROF, SIGIO, SIGURG, SIGPWR,
};

/* Blocks what is forwarded; `old` is the mask that the program must have. */
static void hold_signals(sigset_t *held, sigset_t *old) {
	sigemptyset(held);
	sigaddset(held, SIGCHLD);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++) {
		sigaddset(held, forwarded[i]);
	}
	sigprocmask(SIG_BLOCK, held, old);
}

static void become(char **argv, const sigset_t *mask, pid_t parent, int failed) {
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) { /* already too late */
		_exit(137);
	}
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	/* As a shell says it. */
	int status = errno == ENOENT ? 127 : 126;
	ss_cli_error("run: %s: %s", argv[0], strerror(errno));
	(void)!write(failed, "", 1);
	_exit(status);
}

int ss_attend(char **argv, bool *started) {
	sigset_t held, old;
	pid_t parent = getpid();
	siginfo_t info;
	int status, failed[2]; /* closed by a successful exec, with nothing in it */
	char byte;

	*started = false;
	if (pipe2(failed, O_CLOEXEC) != 0) {
		ss_cli_error("run: pipe: %s", strerror(errno));
		return 126 << 8;
	}
	hold_signals(&held, &old);
	pid_t child = fork();
	if (child < 0) {
		sigprocmask(SIG_SETMASK, &old, NULL);
		ss_cli_error("run: fork: %s", strerror(errno));
		return 126 << 8;
	}
	if (child == 0) {
		become(argv, &old, parent, failed[1]);
	}
	close(failed[1]);
	*started = read(failed[0], &byte, 1) == 0;
	close(failed[0]);
	for (;;) {
		int signal = sigwaitinfo(&held, &info);
		if (signal < 0) {
			continue;
		}
		if (signal != SIGCHLD) {
			if (info.si_code <= 0 && info.si_pid != child) { /* from a process */
				kill(child, signal);
			}
			continue;
		}
		pid_t pid;
		while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
			if (pid != child) {
				continue;
			}
			if (!WIFSTOPPED(status)) {
				sigprocmask(SIG_SETMASK, &old, NULL);
				return status;
			}
			raise(SIGSTOP);
		}
	}
}

int ss_end_as(int status) {
	if (!WIFSIGNALED(status)) {
		return WEXITSTATUS(status);
	}
	/* The program has left its core, if any. */
	int signal = WTERMSIG(status);
	struct rlimit none = { 0, 0 };
	sigset_t one;
	setrlimit(RLIMIT_CORE, &none);
	sigemptyset(&one);
	sigaddset(&one, signal);
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigaction(signal, &action, NULL);
	raise(signal);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	return 128 + signal;
}
