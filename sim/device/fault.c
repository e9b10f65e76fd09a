/* SPDX-License-Identifier: MIT */
/*
 * Device page faults: device work on memory that is not mapped or not accessible ends the
 * process, as on a GPU. Host faults go to the handlers that the program had.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/fault.h"

__thread const char *sim_device_work __attribute__((tls_model("initial-exec")));

static struct sigaction old_segv, old_bus;
static bool (*_Atomic told)(const void *addr);

void sim_fault_tell(bool (*fn)(const void *addr))
{
	atomic_store(&told, fn);
	sim_watch_faults();
}

void sim_fault(const void *addr, const char *who, const char *why)
{
	char line[200];
	int n = snprintf(line, sizeof line, "somasim: device page fault at %p by %s (%s)\n", addr,
			 who, why);

	bool (*tell)(const void *) = atomic_load(&told);

	if (!(tell && tell(addr)) && write(2, line, (size_t)n) < 0)
		n = 0; /* there is nowhere to report it */
	signal(SIGABRT, SIG_DFL);
	abort();
}

static void on_fault(int sig, siginfo_t *info, void *ctx)
{
	struct sigaction *old = sig == SIGSEGV ? &old_segv : &old_bus;

	if (sim_device_work)
		sim_fault(info->si_addr, sim_device_work, "not mapped");
	if (old->sa_flags & SA_SIGINFO)
		old->sa_sigaction(sig, info, ctx);
	else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)
		old->sa_handler(sig);
	else
		signal(sig, SIG_DFL);
}

void sim_watch_faults(void)
{
	static atomic_flag done = ATOMIC_FLAG_INIT;
	struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_NODEFER};

	if (atomic_flag_test_and_set(&done))
		return;
	sa.sa_sigaction = on_fault;
	sigaction(SIGSEGV, &sa, &old_segv);
	sigaction(SIGBUS, &sa, &old_bus);
}
