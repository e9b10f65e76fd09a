/* SPDX-License-Identifier: MIT */
/* The handler of SIGBUS behind cut_guard.h. No lock. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "trace/cut_guard.h"

#define GUARDED 4

static ss_cut_found *_Atomic guarded[GUARDED]; /* NULL behind the last */
static atomic_bool handled;
static struct sigaction before;

static bool is_mapped(const void *at, void **from, size_t *size)
{
	ss_cut_found *found;

	for (int i = 0; i < GUARDED && (found = atomic_load(&guarded[i])); i++)
		if (found(at, from, size))
			return true;
	return false;
}

/* The signal comes once more, to whoever had it before. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(signal, info, context);
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(signal);
	} else {
		sigaction(signal, &before, NULL);
		if (info->si_code <= 0) /* sent by a process: no access follows that raises it */
			raise(signal);
	}
}

static void on_bus_error(int signal, siginfo_t *info, void *context)
{
	int saved = errno;
	size_t size;
	void *from;

	if (info->si_code != BUS_ADRERR || !is_mapped(info->si_addr, &from, &size) ||
	    mmap(from, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		pass_on(signal, info, context);
	errno = saved;
}

void ss_cut_guard(ss_cut_found *found)
{
	struct sigaction ours = {.sa_sigaction = on_bus_error,
				 .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};

	for (int i = 0; i < GUARDED && atomic_load(&guarded[i]) != found; i++) {
		ss_cut_found *none = NULL;
		if (atomic_compare_exchange_strong(&guarded[i], &none, found))
			break;
	}
	if (atomic_exchange(&handled, true) || sigaction(SIGBUS, NULL, &before) != 0)
		return;
	ours.sa_mask = before.sa_mask;
	(void)sigaction(SIGBUS, &ours, NULL);
}
