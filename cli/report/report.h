/* SPDX-License-Identifier: MIT */
/* Prints the analyses of recordings as text, as JSON, or as a page for a browser. */
#ifndef SS_REPORT_REPORT_H
#define SS_REPORT_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "cli/analysis/analysis.h"
#include "cli/analysis/difference.h"
#include "cli/analysis/rank_comparison.h"

/* Text for a terminal. `most` is the number of lines of a list. */
void ss_report_text(FILE *out, const struct ss_analysis *a, size_t most);
void ss_report_ranks_text(FILE *out, const struct ss_over_ranks *o, size_t most);

/* All of the analyses as one object; `o` is NULL if there is only one. `charts`: with time lines
 * and address maps. NULL: out of memory. */
json_t *ss_report_json(struct ss_analysis *const *list, size_t count, const struct ss_over_ranks *o,
		       bool charts);
json_t *ss_report_process_json(const struct ss_analysis *a, bool charts);
/* The frames of a call site, innermost first. */
json_t *ss_report_frames_json(const struct ss_sites *s, const struct ss_site *site);
json_t *ss_report_chart_json(const struct ss_analysis *a);
json_t *ss_report_ranks_json(const struct ss_over_ranks *o);

/* All call sites of the processes as CSV, or those of a difference. */
void ss_report_csv(FILE *out, struct ss_analysis *const *list, size_t count);
void ss_report_difference_csv(FILE *out, const struct ss_difference *d);

/* Two recordings beside each other, named `a` and `b`. `most` is the number of call sites. */
void ss_report_difference_text(FILE *out, const struct ss_difference *d, const char *a,
			       const char *b, size_t most);
/* NULL: out of memory. */
json_t *ss_report_difference_json(const struct ss_difference *d, const char *a, const char *b);

/* The pool of a framework that holds more than half of the used memory at that moment; NULL: none,
 * or not known. `how` gets a text on how to see inside of the pool. The strings are static. */
const char *ss_report_pool_above(const struct ss_sites *s, const struct ss_snapshot *p,
				 const char **how);
/* Writes the page. `data` is what ss_report_json() made. False: a write failed, errno says why. */
bool ss_report_page(FILE *out, const json_t *data);

/* The name of a kind of memory outside of the pools: a static string. */
const char *ss_report_outside_name(enum ss_trace_outside_kind kind);
/* Seconds since the trace began. */
double ss_report_seconds(const struct ss_analysis *a, uint64_t time_ns);
/* Bytes as "1.50 GiB". Returns `out`. */
const char *ss_report_bytes(char out[32], uint64_t bytes);
#define SS_SITE_NAME 2048 /* characters of the longest name */
/* A name of a call site: its inner frames, the innermost first, up to the one that tells it from
 * all other sites of the file. Returns `out`. */
const char *ss_report_site_name(const struct ss_sites *s, uint32_t site, char *out, size_t size);
/* The title of a column with such names. */
const char *ss_report_sites_head(const struct ss_sites *s);
/* The name of a function with long arguments shortened in the middle. Returns `out`. */
const char *ss_report_function(const char *name, char *out, size_t size);
/* The title of the list of blocks that are live at the end. It does not call them leaks if the
 * program was killed, because the program might have freed them. */
const char *ss_report_leaks_title(const struct ss_analysis *a);
/* "GPU 0", or what stands for memory of no device. Returns `out`. */
const char *ss_report_device_name(int device, char out[32]);

#endif
