/* SPDX-License-Identifier: MIT */
/*
 * Which processes `somashim sleep' and `wake' find, and what they say of those that cannot sleep.
 *
 *   shim_sleep_says SOMASHIM many          (as rank 3 of a job)
 *   shim_sleep_says SOMASHIM nothing
 *   shim_sleep_says SOMASHIM refused TEXT  (in an environment in which nothing can sleep)
 */
#include "sleep.h"

static void many(void)
{
	void *kept = block(6 * MIB, 1), *whole_device;
	struct ss_live_page *page = page_of_ours();
	char none[] = "/nonexistent", other[16];

	COMMAND(0, "sleep", "--all");
	CHECK(state_now() == SS_LIVE_ASLEEP);
	COMMAND(0, "wake", "--all");
	COMMAND(0, "sleep", "--hold", "--rank", "3", "--rank", "5");
	CHECK(state_now() == SS_LIVE_ASLEEP && atomic_load(&page->sleep.held) == 1);
	COMMAND(0, "wake", "--rank", "3");
	COMMAND(1, "sleep", "--rank", "5");
	SAID("no process was found that can sleep");
	/* One that is not there spoils the status, but not the others. */
	snprintf(other, sizeof(other), "%d", 4194305);
	COMMAND(1, "sleep", other, own_pid());
	SAID("process 4194305: there is no such process");
	SAID("asleep: asked for");
	CHECK(state_now() == SS_LIVE_ASLEEP && whole(kept, 6 * MIB, 1));
	/* One that is served by nobody. */
	snprintf(other, sizeof(other), "%d", (int)getppid());
	COMMAND(1, "sleep", other);
	SAID("has no page in");
	COMMAND(2, "sleep", "--store", none, own_pid());
	COMMAND(2, "sleep");
	COMMAND(2, "sleep", "0");
	CHECK(state_now() == SS_LIVE_AWAKE);
	/* Readers of pages without sleep find the sizes that they know. */
	CHECK(page->version == 2 && page->size == 27840);
	/* A page of an older somashim has zeros there. */
	atomic_store(&page->sleep.version, 0);
	COMMAND(1, "sleep", own_pid());
	SAID("its somashim is of another version, without sleep");
	COMMAND(0, "top", "--once");
	atomic_store(&page->sleep.version, SS_LIVE_SLEEP_VERSION);
	COMMAND(0, "sleep", own_pid());
	CHECK(whole(kept, 6 * MIB, 1));
	/* What is no pool's memory in use. */
	OK(hipMalloc(&whole_device, 8 * MIB));
	COMMAND(0, "sleep", own_pid());
	SAID("of hipMalloc and pools on hip");
	OK(hipFree(whole_device));
}

/* The pools have nothing that could sleep, so the process is awake. */
static void nothing(void)
{
	void *p;

	COMMAND(1, "sleep", own_pid());
	SAID("its pools hold no memory");
	OK(hipMalloc(&p, 8 * MIB));
	COMMAND(1, "sleep", own_pid());
	SAID("its memory is exported, on hip, or was refused");
	CHECK(state_now() == SS_LIVE_AWAKE);
	OK(hipMemset(p, 1, 8 * MIB));
}

static void refused(const char *text)
{
	void *p = block(6 * MIB, 1);

	COMMAND(1, "sleep", own_pid());
	SAID(text);
	COMMAND(1, "sleep", "--hold", own_pid());
	CHECK(whole(p, 6 * MIB, 1));
}

int main(int argc, char **argv)
{
	sleep_test_begin(argc, argv);
	if (!strcmp(argv[2], "many"))
		many();
	else if (!strcmp(argv[2], "nothing"))
		nothing();
	else if (!strcmp(argv[2], "refused") && argc > 3)
		refused(argv[3]);
	else
		return 9;
	return 0;
}
