/* SPDX-License-Identifier: MIT */
/*
 * Which processes `somashim sleep' and `wake' find, and what they say of those that cannot sleep.
 *
 *   shim_sleep_says SOMASHIM many          (as rank 3 of a job)
 *   shim_sleep_says SOMASHIM nothing | idle | kept | exported
 *   shim_sleep_says SOMASHIM registered LIBRARY
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

/* All is idle: it comes back, which is all that was asked for. */
static void idle(void)
{
	void *p = block(32 * MIB, 1);
	uint64_t before = device_free(0);

	OK(hipFreeAsync(p, stream));
	OK(hipStreamSynchronize(stream));
	COMMAND(0, "sleep", own_pid());
	SAID("awake, with idle memory released: asked for 32.0 MiB");
	CHECK(state_now() == SS_LIVE_AWAKE && device_free(0) >= before + 32 * MIB);
	COMMAND(1, "sleep", own_pid());
	SAID("its pools hold no memory");
}

/* A runtime that keeps what was released: the process sleeps all the same. */
static void kept(void)
{
	void *p = block(6 * MIB, 1);

	COMMAND(0, "sleep", "--hold", own_pid());
	SAID("the devices' figure did not rise");
	CHECK(state_now() == SS_LIVE_ASLEEP);
	COMMAND(0, "wake", own_pid());
	CHECK(whole(p, 6 * MIB, 1));
}

/* Others hold the memory behind one block: it stays, by name, with what they write. */
static void exported(void)
{
	void *held = block(64 * MIB, 1), *p = block(64 * MIB, 2);
	hipMemGenericAllocationHandle_t handle;

	OK(hipMemRetainAllocationHandle(&handle, held));
	COMMAND(0, "sleep", own_pid());
	SAID("exported by hipMemRetainAllocationHandle");
	CHECK(!strstr(said, "refused by the runtime"));
	SAID("; 120.0 MiB kept, "); /* and 8 stay, the chunk of that handle */
	CHECK(state_now() == SS_LIVE_ASLEEP);
	CHECK(atomic_load(&page_of_ours()->sleep.asleep[0]) >= 64 * MIB);
	CHECK(whole(p, 64 * MIB, 2) && whole(held, 64 * MIB, 1));
	/* The mark stays when the handle goes: others may have made more of it. */
	OK(hipMemRelease(handle));
	COMMAND(0, "sleep", own_pid());
	SAID("exported by hipMemRetainAllocationHandle");
	CHECK(whole(p, 64 * MIB, 2) && whole(held, 64 * MIB, 1));
}

/* A library that registers memory by itself. */
static void registered(const char *library)
{
	void *p = block(6 * MIB, 1);

	COMMAND(0, "sleep", own_pid());
	CHECK(whole(p, 6 * MIB, 1) && dlopen(library, RTLD_NOW));
	COMMAND(1, "sleep", own_pid());
	SAID("UCX is loaded, which may have registered memory");
	CHECK(whole(p, 6 * MIB, 1));
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
	else if (!strcmp(argv[2], "idle"))
		idle();
	else if (!strcmp(argv[2], "kept"))
		kept();
	else if (!strcmp(argv[2], "exported"))
		exported();
	else if (!strcmp(argv[2], "registered") && argc > 3)
		registered(argv[3]);
	else if (!strcmp(argv[2], "refused") && argc > 3)
		refused(argv[3]);
	else
		return 9;
	return 0;
}
