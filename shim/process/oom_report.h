/* SPDX-License-Identifier: MIT */
/* Reports allocations that failed on the log, as SOMASHIM_OOM_REPORTS says. */
#ifndef SS_SHIM_OOM_REPORT_H
#define SS_SHIM_OOM_REPORT_H

struct ss_core;
struct ss_oom;

/* For struct ss_watch. Any thread, with no lock held. */
void ss_shim_oom_report(struct ss_core *core, const struct ss_oom *oom);

#endif
