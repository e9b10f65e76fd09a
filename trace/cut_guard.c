/* SPDX-License-Identifier: MIT */
/* The handler of SIGBUS for cut_guard.h. No lock. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "trace/cut_guard.h"

#define ASKED 2
#define MAPPINGS 8

static ss_cut_found *_Atomic asked[ASKED]; /* NULL after the last */
static struct {
	atomic_uintptr_t at; /* 0: free */
	atomic_size_t size;  /* 0: not complete yet */
} mapping[MAPPINGS];
static atomic_bool handled;
static struct sigaction before;

static bool is_mapped(const void *at, void **from, size_t *size)
{
	ss_cut_found *found;

	for (int i = 0; i < MAPPINGS; i++) {
		*size = atomic_load(&mapping[i].size);
		*from = (void *)atomic_load(&mapping[i].at);
		if ((uintptr_t)at - (uintptr_t)*from < *size)
			return true;
	}
	for (int i = 0; i < ASKED && (found = atomic_load(&asked[i])); i++)
		if (found(at, from, size))
			return true;
	return false;
}

/* Raises the signal once more, for the handler that was set before. */
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

static void handle(void)
{
	struct sigaction ours = {.sa_sigaction = on_bus_error,
				 .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};

	if (atomic_exchange(&handled, true) || sigaction(SIGBUS, NULL, &before) != 0)
		return;
	ours.sa_mask = before.sa_mask;
	(void)sigaction(SIGBUS, &ours, NULL);
}

void ss_cut_guard_mapping(void *at, size_t size)
{
	for (int i = 0; i < MAPPINGS; i++) {
		uintptr_t none = 0;
		if (!atomic_compare_exchange_strong(&mapping[i].at, &none, (uintptr_t)at))
			continue;
		atomic_store(&mapping[i].size, size);
		break;
	}
	handle();
}

void ss_cut_guard_end(const void *at)
{
	for (int i = 0; i < MAPPINGS; i++) {
		if (atomic_load(&mapping[i].at) != (uintptr_t)at)
			continue;
		atomic_store(&mapping[i].size, 0);
		atomic_store(&mapping[i].at, 0);
	}
}

void ss_cut_guard(ss_cut_found *found)
{
	for (int i = 0; i < ASKED && atomic_load(&asked[i]) != found; i++) {
		ss_cut_found *none = NULL;
		if (atomic_compare_exchange_strong(&asked[i], &none, found))
			break;
	}
	handle();
}
