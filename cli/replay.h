/* SPDX-License-Identifier: MIT */
/* Runs an allocation log on the pools over the fake device, and measures it. */
#ifndef SS_CLI_REPLAY_H
#define SS_CLI_REPLAY_H

#include "cli/readers/events.h"

struct ss_options;

/* An allocation that failed. Sizes are bytes. */
struct ss_replay_failure {
	uint32_t at; /* `at` of its event */
	uint64_t size, live;
	/* The longest free range in the pools, or what the device had left if that is more */
	uint64_t largest_hole;
};

struct ss_replay_result {
	uint64_t allocations, frees, hits, failed;
	uint64_t reserved_peak, used_peak; /* bytes */
	uint64_t driver_calls;             /* create, map, unmap, release, segment alloc and free */
	uint64_t driver_calls_after;       /* those after the log's peak was first reached */
	uint64_t allocations_after;        /* allocations after that */
	/* The cost of growth: calls that took bytes from the device, mapped, unmapped, set access,
	 * and released bytes to the device. */
	uint64_t took, took_bytes, maps, unmaps, set_access, gave, gave_bytes;
	uint64_t fences, remaps, released;
	uint64_t host_bytes; /* metadata in host memory, at the peak */
	/* With a clock: times in virtual nanoseconds, which driver/fake/fake.h explains. */
	uint64_t device_end, queue_full, waits, waited, driver, device_idle;
	double seconds;
	struct ss_replay_failure first; /* if `failed` is not 0 */
	bool refused;                   /* did not start: too many streams, or out of host memory */
};

struct ss_replay_config {
	const struct ss_options *options;
	uint64_t vram; /* bytes of device memory */
	/* Commands that the device is behind, over all streams together; 0 = always idle. */
	uint64_t lag;
	/* The clock, in nanoseconds: the time of a call on the host, and the time of its command on
	 * the device (0 = no clock). If the device has `queue` commands to do, the host waits. */
	uint64_t host_ns, device_ns;
	uint32_t queue;
	bool events; /* a stream waits for an event of the one that acted before */
	uint64_t segment_ns, chunk_ns; /* of a call of the driver, as in struct ss_fake_config */
	bool no_remap;                 /* vmm: mapped memory keeps its addresses */
	bool classic;  /* replay as hipMalloc and hipFree instead of their Async variants */
	bool progress; /* draw a bar on stderr */
};

/* False and a message in `err` if a rule was broken: two live blocks overlap, a block is
 * not backed or not aligned, or an invariant of the core does not hold. */
bool ss_replay(const struct ss_events *ev, const struct ss_replay_config *config,
	       struct ss_replay_result *out, char *err, size_t err_size);

/* Sets config->vram to the smallest device, in steps of 2 MiB, on which no allocation fails: the
 * smallest that was tried by halving the distance. False and a message in `err` if a replay broke a
 * rule. */
bool ss_replay_fit(const struct ss_events *ev, struct ss_replay_config *config,
		   struct ss_replay_result *out, char *err, size_t err_size);

double ss_ratio(uint64_t a, uint64_t b); /* 0 if b is 0 */
/* Driver calls per 100 allocations, after the peak. */
double ss_calls_per_100(const struct ss_replay_result *r);

#endif
