/* SPDX-License-Identifier: MIT */
/* Removes operations from a failing program until each one left is needed. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "oracle.h"

void run_isolated(const struct program *p, struct result *out)
{
	static struct result *shared;
	int status;

	if (!shared)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		abort();
	memset(shared, 0, sizeof(*shared));
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(3);
		alarm(10);
		run_program(p, false, shared);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	*out = *shared;
	if (status != 0) {
		out->class = F_CRASH;
		if (WIFSIGNALED(status))
			snprintf(out->text, sizeof(out->text), "signal %d (%s)%s%.400s",
				 WTERMSIG(status), strsignal(WTERMSIG(status)),
				 shared->class ? " after: " : "", shared->text);
		else
			snprintf(out->text, sizeof(out->text), "exit status %d",
				 WEXITSTATUS(status));
	}
}

static bool still(const struct program *p, int class)
{
	struct result r;

	run_isolated(p, &r);
	return r.class == class;
}

/* Tries the program without operations [at, at + n). */
static bool without(struct program *p, int at, int n, int class)
{
	static struct program q;

	q = *p;
	memmove(&q.op[at], &q.op[at + n], (size_t)(q.count - at - n) * sizeof(q.op[0]));
	q.count -= n;
	if (!still(&q, class))
		return false;
	*p = q;
	return true;
}

void shrink(struct program *p, int class)
{
	bool again = true;

	for (int n = p->count / 2; n > 1; n /= 2)
		for (int at = 0; at + n <= p->count;)
			if (!without(p, at, n, class))
				at += n;
	while (again) {
		again = false;
		for (int at = p->count - 1; at >= 0; at--)
			again |= without(p, at, 1, class);
	}
	/* Then simplifies the configuration as far as the failure stays the same. */
	struct program q = *p;
	q.cfg.threads = 1;
	if (p->cfg.threads > 1 && still(&q, class))
		*p = q;
	q = *p;
	q.cfg.vram = 65536ull << 20;
	if (p->cfg.vram != q.cfg.vram && still(&q, class))
		*p = q;
	q = *p;
	ss_options_default(&q.cfg.opt);
	if (still(&q, class))
		*p = q;
	else {
		q = *p;
		q.cfg.opt.backing = SS_BACKING_HSA;
		if (still(&q, class))
			*p = q;
	}
	q = *p;
	for (int i = 0; i < q.count; i++)
		q.op[i].n = q.op[i].kind == OP_ALLOC || q.op[i].kind == OP_ALLOC_CLASSIC ?
				    512 :
				    q.op[i].n;
	if (still(&q, class))
		*p = q;
}
