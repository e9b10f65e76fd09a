/* SPDX-License-Identifier: MIT */
/*
 * The analysis of a recording of one process: its peaks and the call sites that held them, leaks,
 * waste, waits and failures. The reports (text, JSON and the page) print these figures and compute
 * nothing. The file is read twice: the first pass finds the peaks, the second one the call sites
 * that held memory at each peak. The memory of an analysis grows with the number of blocks that
 * live at once and with the number of call stacks, not with the number of events.
 *
 * Times are CLOCK_BOOTTIME in nanoseconds, bytes are bytes. Not thread safe.
 */
#ifndef SS_ANALYSIS_ANALYSIS_H
#define SS_ANALYSIS_ANALYSIS_H

#include "cli/analysis/phases.h"
#include "cli/analysis/trace_memory.h"
#include "cli/analysis/sites.h"
#include "cli/analysis/window.h"

#define SS_CHARTED 1024    /* call sites that the chart can tell apart */
#define SS_CHARTED_GROUPS 12 /* ... and functions, files, .. */
#define SS_WAIT_CAUSES 9   /* enum ss_trace_wait_cause */
#define SS_TRIM_CAUSES 5   /* enum ss_trace_trim_cause */
#define SS_LIBRARIES 128
#define SS_SNAPSHOTS 100   /* failures that get a snapshot; the rest is counted */

struct ss_holder {
	uint32_t site;
	uint64_t bytes, blocks;
};

/* The parts of the reserved memory that no live block uses. rounding + in_flight_own +
 * in_flight_others + fragmentation + other_pools + idle + asked = reserved. */
struct ss_waste {
	uint64_t rounding;         /* blocks are larger than what was asked for */
	uint64_t in_flight_own;    /* freed, not yet reusable: on the stream that asks */
	uint64_t in_flight_others; /* ... on other streams */
	uint64_t fragmentation;    /* free, in holes that are too small for the request */
	uint64_t other_pools;      /* free in other pools */
	uint64_t idle;             /* free in holes that are large enough */
	uint64_t largest_hole;     /* of the pool that asks */
};

/* One device at one moment. */
struct ss_snapshot {
	uint64_t event; /* the moment is right after this event; from 1; 0: never */
	uint64_t time_ns;
	int device; /* index; SS_NO_DEVICE */
	struct ss_level level;
	struct ss_holder *holder; /* the largest first */
	size_t holders;
	uint64_t request;      /* bytes of the allocation that grew or failed; 0: none */
	uint32_t stream, pool; /* of that allocation */
	struct ss_waste waste;
};

struct ss_failure {
	struct ss_snapshot snapshot;
	bool limit; /* a limit that the user set, not the device */
	uint32_t site;
	uint64_t device_free;    /* or the limit */
	uint64_t reserved, used; /* as the program recorded it */
};

/* The highest values in a span of the time line. All spans have the same length. */
struct ss_sample {
	uint64_t event;   /* at which `used` was reached */
	uint64_t time_ns; /* of that event */
	uint64_t used, reserved, in_flight;
	uint64_t outside[SS_TRACE_OUTSIDE_KINDS]; /* of the pools */
	uint64_t rest;                            /* struct ss_outside */
};

struct ss_timeline {
	struct ss_sample *sample;
	uint64_t *held; /* by sample and column: bytes at that event */
	size_t count, room;
	uint64_t begin_ns, span_ns;
	struct ss_level now; /* only while the time line is made */
	struct ss_outside outside;
	uint64_t now_event, now_ns;
};

/* The addresses of a pool at a moment, in cells of equal size. Only mapped memory has cells. */
struct ss_address_map {
	uint64_t time_ns;
	uint32_t pool;
	uint64_t bytes, cell_bytes, largest_hole;
	size_t cells, gaps;
	char *live, *in_flight; /* a digit per cell: 0 nothing, 9 all of it */
	uint32_t *gap;          /* cells before which addresses are missing */
};

/* A block: it was live from `begin_ns` to `end_ns`. */
struct ss_life {
	uint64_t begin_ns, end_ns; /* end_ns is UINT64_MAX if nobody freed it */
	uint64_t bytes;
	uint32_t stream, thread; /* groups of the allocation */
};

/* The blocks of a call site with the largest bytes x time. */
struct ss_lives {
	struct ss_life *life; /* in the order of `begin_ns` */
	size_t count;
	uint64_t all; /* blocks that the site had */
};

struct ss_usage {                                 /* of a device or a pool */
	struct ss_level used_peak, reserved_peak; /* all levels when that one was highest */
	uint64_t used_peak_ns, reserved_peak_ns, in_flight_peak_ns;
	uint64_t used_peak_event, reserved_peak_event;
	uint64_t in_flight_peak;
	struct ss_level end;
	double asked_mean, used_mean, in_flight_mean, reserved_mean; /* over time */
	uint64_t changed_ns;                                         /* for the means */
	uint64_t allocs, frees, hits, failed;
	uint64_t maps, unmaps; /* of physical memory */
	uint64_t trimmed;      /* bytes that trims released */
};

/* From `time_ns` on, `reserved` bytes are reserved. If there are more than SS_STEPS steps, each two
 * neighbours become one step with the higher value. */
struct ss_reserved_step {
	uint64_t time_ns, reserved;
};
#define SS_STEPS 8192

/* Blocks whose requested size is from 2^n bytes to before 2^(n+1). */
struct ss_size_class {
	uint64_t allocs, bytes;     /* in all */
	uint64_t live_blocks, live; /* at the end */
};
#define SS_SIZE_CLASSES 64

struct ss_device_result {
	int device;             /* ordinal; SS_NO_DEVICE */
	char name[64], pci[16]; /* "" if not known */
	uint64_t total;         /* 0 if not known */
	struct ss_usage usage;
	struct ss_outside outside_peak, outside_end; /* of each kind by itself */
	uint64_t outside_peak_ns[SS_TRACE_OUTSIDE_KINDS], rest_peak_ns;
	struct ss_snapshot used_peak, reserved_peak; /* the latter after the new block */
	struct ss_timeline timeline;
	struct ss_size_class size[SS_SIZE_CLASSES];
	struct ss_reserved_step *step; /* each change of what is reserved */
	size_t steps;
	uint64_t grow_tid; /* the thread that grew to the peak, until it has its block */
	bool growing;
};

struct ss_pool_result {
	uint32_t id;
	int device;
	uint64_t handle;
	char name[32];
	struct ss_usage usage;
};

/* Lists of call sites, each in the order of one figure. */
enum ss_ranking_kind {
	SS_RANKING_PEAK,    /* by the most that was live at once */
	SS_RANKING_ALLOCS,  /* by the number of allocations */
	SS_RANKING_REPEATS, /* sites that free a block and soon ask for its size again */
	SS_RANKING_LEAKS,   /* by bytes that were never freed; sites that grow come first */
	SS_RANKING_WAITS,   /* by time in waits and calls of the driver */
	SS_RANKINGS,
};
#define SS_REPEATS_MIN 10u     /* fewer are no reason to keep a block */

struct ss_ranking {
	uint32_t *site;
	size_t count; /* at most SS_RANKED */
	size_t all;   /* sites that belong into the list */
};
#define SS_RANKED 1000

struct ss_spent { /* time */
	uint64_t count, ns, longest_ns;
};

struct ss_analysis {
	char *path, *problem; /* problem: the first damage, or NULL */
	size_t problems;
	char *exe, *host, *launcher, *job, *command, *version, *runtime;
	uint32_t pid;
	int rank, ranks; /* -1 if not known */
	enum ss_trace_end end;
	uint64_t real_offset; /* plus a time: nanoseconds since 1970 */
	uint64_t lost_events, lost_stacks, lost_names, unknown_frees, lost_frees, reset_blocks;
	uint64_t suppressed_blocks, suppressed_bytes; /* live at the end, but no leak */
	/* Memory from before the recording begins, as a ring has it */
	uint64_t lived_blocks, lived_bytes;

	uint64_t events, first_ns, last_ns;
	struct ss_part part; /* of the recording; all times count from its begin */
	struct ss_phases phases;
	uint64_t kind[SS_TRACE_OUTSIDE + 1]; /* events by kind */
	size_t threads, streams;
	struct ss_sites sites;         /* call sites, or the groups that config.by asked for */
	struct ss_sites calls;         /* the call sites, if `sites` are groups */
	struct ss_sites group[SS_BYS]; /* for charts: all kinds of groups but SS_BY_SITE */
	struct ss_device_result *device;
	struct ss_pool_result *pool;
	size_t devices, pools;
	struct ss_ranking ranking[SS_RANKINGS];
	struct ss_spent wait[SS_WAIT_CAUSES];
	struct ss_spent trim[SS_TRIM_CAUSES]; /* ns is 0 */
	uint64_t trim_bytes[SS_TRIM_CAUSES];
	char libraries[SS_LIBRARIES]; /* that take device memory of their own: "RCCL, MIOpen" */
	struct ss_failure *failure;
	size_t failures; /* with a snapshot */
	uint64_t failures_all;
	/* Sites and groups of the chart, the largest peak first */
	struct ss_ranking charted[SS_BYS];
	/* The first column of each kind, and the number of all columns */
	size_t column[SS_BYS + 1];
	struct ss_lives *lives; /* of the sites of the chart */
	struct ss_address_map *map;
	size_t maps;
};

struct ss_analysis_config {
	/* For names; NULL: frames are modules and offsets, and no other file is opened */
	struct ss_symbol_files *files;
	enum ss_by by;       /* the groups of the lists; with charts always call sites */
	struct ss_part part; /* the part to look at */
	const char *phase;   /* the phase to look for (phases.wanted_begin_ns); NULL: none */
	uint64_t phase_number;
	bool charts;    /* fill in groups, time lines, lives and address maps */
	size_t lives;   /* blocks whose lives are kept, in all */
	size_t samples; /* of a time line at most; a power of two */
	/* Are the blocks that the call site keeps no leak? NULL: all blocks are leaks */
	bool (*suppressed)(void *suppressions, const struct ss_sites *s,
			   const struct ss_site *site);
	void *suppressions;
	void (*progress)(void *arg, double part); /* may be NULL */
	void *arg;
};

/* NULL and one line in `err`, with path and offset if the file is to blame. */
struct ss_analysis *ss_analysis_run(const char *path, const struct ss_analysis_config *config,
				    char *err, size_t err_size);
void ss_analysis_free(struct ss_analysis *a);
/* The path that the report names. False: out of memory. */
bool ss_analysis_rename(struct ss_analysis *a, const char *path);

/* The name of a cause in reports: a static string. */
const char *ss_wait_name(enum ss_trace_wait_cause cause);
const char *ss_trim_name(enum ss_trace_trim_cause cause);
/* The figure that orders the ranking: bytes, allocations, repeats, bytes or nanoseconds. 0: the
 * site is not in the ranking. */
uint64_t ss_ranking_value(enum ss_ranking_kind kind, const struct ss_site *site);
/* Fills in the rankings. False: out of memory. */
bool ss_rank_sites(struct ss_analysis *a);
/* The first `most` sites by their peaks. False: out of memory. */
bool ss_rank_peaks(const struct ss_sites *s, size_t most, struct ss_ranking *out);

#endif
