/* SPDX-License-Identifier: MIT */
/* The options, that is, every SOMASHIM_ variable. Their table is in options.c. */
#ifndef SS_CONFIG_OPTIONS_H
#define SS_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "config/limits.h"

/* SOMASHIM_SLEEP: which memory can sleep */
enum ss_sleep { SS_SLEEP_OFF, SS_SLEEP_POOLS, SS_SLEEP_ALL };

enum ss_free_sync { SS_FREE_SYNC_AUTO, SS_FREE_SYNC_ALWAYS, SS_FREE_SYNC_NEVER };

/* The failed allocations that are reported. */
enum ss_oom_reports { SS_OOM_REPORTS_FEW, SS_OOM_REPORTS_ALL, SS_OOM_REPORTS_NONE };

/* A size, or a share of a device's memory. */
struct ss_amount {
	uint64_t bytes; /* used if percent is 0 */
	double percent;
	bool set;
};

/* SOMASHIM_STATS */
enum ss_stats_form { SS_STATS_OFF, SS_STATS_TABLE, SS_STATS_JSON };

/* SOMASHIM_SELFTEST */
enum ss_selftest_form { SS_SELFTEST_OFF, SS_SELFTEST_ALL, SS_SELFTEST_NEW };

/* SOMASHIM_CHECK, a bit for each tool in the order of the names */
enum ss_check_tools {
	SS_CHECK_ORDER = 1,
	SS_CHECK_BOUNDS = 2,
	SS_CHECK_FREE = 4,
	SS_CHECK_LEAK = 8,
	SS_CHECK_POISON = 16,
	SS_CHECK_GUARD = 32,
	SS_CHECK_RACE = 64,
	/* Listed after "all", which does not include them */
	SS_CHECK_INIT = 256,
	SS_CHECK_UNUSED = 512
};
#define SS_PADDING_MOST 4096 /* bytes, after or before a block */
/* The errors of order to look for, in the words of compute-sanitizer. */
enum ss_check_races { SS_RACES_ALL, SS_RACES_BEFORE_ALLOC, SS_RACES_AFTER_FREE };

/* SOMASHIM_CHECK_API: the failed calls that are reported */
enum ss_check_api { SS_API_NO, SS_API_EXPLICIT, SS_API_ALL };

/* The longest time that an option can have: 139 years. Sums and products of a few such times do not
 * overflow. */
#define SS_FOR_EVER_MS (1ull << 42)

struct ss_options {
	int backing;                                /* enum ss_backing */
	int fence;                                  /* enum ss_fence_kind */
	int free_sync;                              /* enum ss_free_sync */
	struct ss_amount threshold[SS_MAX_DEVICES]; /* release threshold */
	struct ss_amount initial;                   /* reserved at the first use of a device */
	struct ss_amount limit;                     /* cap per process and device */
	uint64_t decay_ms;
	bool decay_thread; /* a thread releases idle memory; else synchronizations do */
	uint64_t growth_wait_ms;
	uint64_t oom_wait_ms;
	int oom_reports;      /* enum ss_oom_reports */
	uint64_t align_large; /* alignment of blocks of at least this size */
	uint64_t ipc_whole;   /* blocks from this size get own segments; 0 = off */
	uint64_t trace_ring;  /* bytes of a recording that is a ring; 0 = none */
	int stats;            /* enum ss_stats_form */
	int selftest;         /* enum ss_selftest_form */
	bool disable, verbose, api_table;
	int sleep;             /* enum ss_sleep */
	bool backing_by_sleep; /* `backing` is vmm because of `sleep` */
	uint64_t idle_sleep;   /* ms without work after which the process sleeps; 0 = never */
	uint64_t wake_wait_ms; /* longest wait of a call for memory to wake with */
	int check;             /* enum ss_check_tools */
	int check_races;       /* enum ss_check_races */
	int check_api;         /* enum ss_check_api */
	bool check_possible;
	char check_kernel[512];      /* the kernels that are checked; "" = all */
	uint64_t check_init_percent; /* percent of a copy, for the tool init */
	uint64_t check_launches;     /* number of their launches that are checked; 0 = all */
	uint64_t check_quarantine;   /* bytes, for the tool poison */
	uint64_t check_padding;      /* bytes after each block, for the tool bounds */
	uint64_t check_front;        /* bytes before each block, for the tool bounds */
	uint64_t check_guard;        /* blocks from this size, for the tool guard */
	bool remember;               /* results of a self-test count for later processes */
	/* Paths as given; "" = off. */
	char log[512], journal[512], trace[512], report[512], metrics[512], check_file[512];
	char live[512]; /* a directory, or a word for off (live/directory.h) */
};

/* The defaults, without looking at the environment. */
void ss_options_default(struct ss_options *opt);
/* Reads the environment `env`. Unknown SOMASHIM_ names and malformed values are reported on `warn`
 * (NULL: not at all) with the nearest valid name, and the default is used. A process that runs with
 * another user's rights (setuid, AT_SECURE) has the defaults. */
void ss_options_read(struct ss_options *opt, char **env, FILE *warn);
/* Sets one option by its name without the prefix SOMASHIM_; upper and lower case are the same.
 * False: the name is unknown or the value malformed, and nothing changed. */
bool ss_options_set(struct ss_options *opt, const char *name, const char *value);
/* The number of typing mistakes between two names; 0: one name is a part of the other (such as
 * THRESHOLD). Upper and lower case are the same. */
int ss_name_distance(const char *name, const char *valid);
/* Parses "64M", "1.5G", "20%" or "max". False: the text is malformed. */
bool ss_amount_parse(const char *text, struct ss_amount *out);
/* The amount in bytes; percents are of `total` bytes. */
uint64_t ss_amount_bytes(const struct ss_amount *a, uint64_t total);
/* Prints the table of all options, for `somashim options`; `markdown`: in the form of
 * docs/options.md. */
void ss_options_print(FILE *out, bool markdown);
/* One row of the table as text. `values` is "auto|hip|hsa|vmm" or names a type; `def` is ""
 * for an option without a default. The strings are static. */
struct ss_option_row {
	const char *name, *values, *def, *help;
};
/* False if there is no row `i`. */
bool ss_options_row(size_t i, struct ss_option_row *out);
/* Prints one line for each option that differs from its default. */
void ss_options_print_changed(const struct ss_options *opt, FILE *out);

#endif
