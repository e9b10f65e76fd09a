/* SPDX-License-Identifier: MIT */
/*
 * The SOMASIM_ options and the quirks (defects of real runtimes that can be switched on).
 * They are read once, before any other constructor of the device, and do not change
 * afterwards.
 */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum sim_quirk {
	SIM_Q_THRESHOLD_IGNORED,
	SIM_Q_SETACCESS_TAIL,
	SIM_Q_SETACCESS_SOME,
	SIM_Q_SETACCESS_WHOLE,
	SIM_Q_SETACCESS_LOST,
	SIM_Q_SETACCESS_HOST,
	SIM_Q_HOST_NO_ACCESS,
	SIM_Q_PHYS_KEPT,
	SIM_Q_PHYS_BOUND,
	SIM_Q_RELEASE_LEAKS,
	SIM_Q_UNMAP_PARTIAL,
	SIM_Q_MAP_SETTLE,
	SIM_Q_FD_PER_HANDLE,
	SIM_Q_CREATE_CAP,
	SIM_Q_CREATE_CHUNK,
	SIM_Q_GRANULARITY_2M,
	SIM_Q_PEER_SETACCESS,
	SIM_Q_IPC_VMM,
	SIM_Q_UNMAP_UNOPENED,
	SIM_Q_MAP_FAILS,
	SIM_Q_NO_VMM,
	SIM_Q_CAPTURE_SPOILS,
	SIM_Q_IPC_PINNED,
	SIM_Q_SECOND_COPY,
	SIM_Q_POOL_OOM_LEAKS,
	SIM_Q_IMPORT_DEVICE0,
	SIM_Q_LAZY_QUEUES,
	SIM_Q_FREE_QUEUE,
	SIM_Q_EXIT_MAPPED,
	SIM_Q_PINNED_WAITS,
	SIM_Q_QUERY_WAITS,
	SIM_Q_MAP_SPOILS_GRAPHS,
	SIM_Q_COUNT
};

struct sim_options {
	uint64_t vram;  /* bytes per device, a multiple of SIM_HUGE_PAGE */
	uint64_t total; /* what HIP calls the total */
	int devices;
	bool no_device;
	uint64_t seed;
	bool verbose;
	long delay_us, delay_pct; /* longest delay of a command; how many are delayed */
	long queue;               /* commands that a stream may be behind; 0: no limit */
	long stall_pct, stall_ms;
	/* The release, as 702 for 7.2; 0 until libamdhip64 has decided */
	int hip;
	bool poison;
	bool lifo_handles;
	bool integrated;
	bool peers; /* devices can reach the memory of others */
	long settle_us;
	uint64_t create_cap; /* bytes */
	const char *fail, *cost, *arch;
	const char *shared; /* the file of shared_use.c; NULL: none */
	bool quirk[SIM_Q_COUNT];
	bool without[SIM_Q_COUNT]; /* quirks not to play although the release has them */
};

extern struct sim_options sim_opt;

/* Prints the seed once, if the options ask for it. Called when device work starts, so
 * that a process that never uses the device prints nothing. Thread-safe. */
void sim_print_seed(void);

#endif
