/* SPDX-License-Identifier: MIT */
/* The state that the two passes over a recording share. Only files of this folder include this
 * header. */
#ifndef SS_ANALYSIS_PASS_H
#define SS_ANALYSIS_PASS_H

#include "cli/analysis/analysis.h"

struct ss_pass {
	struct ss_analysis *a;
	const struct ss_analysis_config *config;
	struct ss_trace_memory memory;
	struct ss_window window;
	uint64_t event;                 /* number of the event that is being applied, from 1 */
	uint16_t device_at[SS_DEVICES]; /* index of the result + 1; 0: there is none */
	uint32_t *pool_at;              /* the same by number of the pool; SS_POOLS */
	uint32_t *chart_of[SS_BYS];     /* by site: its column + 1; 0: not in the chart */
	size_t lives;                   /* blocks of one call site that are kept */
	uint64_t *held;                 /* by result of a device and column: bytes now */
	struct ss_pass_plan *plan;      /* the moments that the second pass waits for */
	bool failed;                    /* out of memory */
};

/* The site of a block, or its group. */
static inline struct ss_site *ss_pass_site(struct ss_analysis *a, enum ss_by by,
					   const struct ss_range *b)
{
	return by == SS_BY_SITE ? &a->sites.site[b->site] :
				  &a->group[by].site[ss_sites_group(&a->group[by], b->site,
								    b->first_stream, b->tid)];
}

/* The first pass counts. */
ss_trace_memory_watch ss_pass_count;
void ss_pass_count_event(struct ss_pass *p, const struct ss_trace_item *e);
/* Call it after the last event that describes memory from before the recording. */
void ss_pass_count_begin(struct ss_pass *p, const struct ss_trace_item *e);
void ss_pass_count_end(struct ss_pass *p);
/* Puts the results of devices in the order of their numbers. */
void ss_pass_sort_devices(struct ss_pass *p);

/* The second pass looks at single moments. */
bool ss_pass_plan(struct ss_pass *p);
void ss_pass_plan_free(struct ss_pass *p);
ss_trace_memory_watch ss_pass_hold;
void ss_pass_before_event(struct ss_pass *p, const struct ss_trace_item *e);
void ss_pass_after_event(struct ss_pass *p, const struct ss_trace_item *e);
void ss_pass_look_end(struct ss_pass *p);

/* Fills in the level of the device, and the call sites that hold its memory now, at most `most`. */
bool ss_snapshot_take(struct ss_pass *p, struct ss_snapshot *snapshot, int device, size_t most);
/* Fills in the memory that live blocks do not use, as the request of the snapshot's pool and stream
 * sees it. */
void ss_snapshot_waste(struct ss_pass *p, struct ss_snapshot *snapshot);
/* Keeps the life of a block that ends, or that lives at the end of the file. */
bool ss_life_keep(struct ss_pass *p, size_t charted, const struct ss_range *range, uint64_t end_ns);
/* The number of lives that one call site may keep. */
size_t ss_lives_of_one(const struct ss_pass *p);
void ss_lives_sort(struct ss_analysis *a);
bool ss_address_map_take(struct ss_pass *p, uint32_t pool, uint64_t time_ns);

#endif
