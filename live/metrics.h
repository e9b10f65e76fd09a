/* SPDX-License-Identifier: MIT */
/* The figures of a process as Prometheus text, for the textfile collector of node_exporter. */
#ifndef SS_LIVE_METRICS_H
#define SS_LIVE_METRICS_H

#include <stdbool.h>

#include "live/page.h"

/* Replaces the file `path`: readers see the old text or the new one, never a part. A `number` from
 * 2 on becomes a label, for processes that are alike in all other labels. `ended`: the process is
 * about to end, so its held bytes are 0; its counters and highest values stay. At most one thread
 * at a time. Returns the file, locked (flock); the caller closes it. -1 with errno set: nothing was
 * written. */
int ss_metrics_write(const char *path, unsigned number, const struct ss_live_identity *who,
		     const struct ss_live_figures *figures, bool ended);

#endif
