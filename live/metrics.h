/* SPDX-License-Identifier: MIT */
/* The figures of a process as Prometheus text, for the textfile collector of node_exporter. */
#ifndef SS_LIVE_METRICS_H
#define SS_LIVE_METRICS_H

#include <stdbool.h>

#include "live/page.h"

/* Writes `path` anew: readers see the old text or the new one, never a part. `ended`: the process
 * is about to end, so it holds nothing any more; what it counted and its highest values stay. At
 * most one thread at a time. False with errno set: nothing was written. */
bool ss_metrics_write(const char *path, const struct ss_live_identity *who,
		      const struct ss_live_figures *figures, bool ended);

#endif
