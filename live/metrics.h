/* SPDX-License-Identifier: MIT */
/* The figures of a process as Prometheus text, for the textfile collector of node_exporter. */
#ifndef SS_LIVE_METRICS_H
#define SS_LIVE_METRICS_H

#include <stdbool.h>

#include "live/page.h"

/* Writes `path` anew: readers see the old text or the new one, never a part. From `number` 2 on it
 * is a label, for processes that are alike in all others. `ended`: the process is about to end, so
 * it holds nothing any more; what it counted and its highest values stay. At most one thread at a
 * time. Returns the file, locked (flock); the caller closes it. -1 with errno set: nothing was
 * written. */
int ss_metrics_write(const char *path, unsigned number, const struct ss_live_identity *who,
		     const struct ss_live_figures *figures, bool ended);

#endif
