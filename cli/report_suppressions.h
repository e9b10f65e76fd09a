/* SPDX-License-Identifier: MIT */
/* Blocks that a program keeps on purpose: the suppressions of `somashim check` for its fault
 * "leak", applied to the blocks that were never freed in a recording. */
#ifndef SS_CLI_REPORT_SUPPRESSIONS_H
#define SS_CLI_REPORT_SUPPRESSIONS_H

#include <stdbool.h>

#include "cli/analysis/sites.h"

/* For struct ss_analysis_config: `suppressions` is a struct ss_suppressions. */
bool ss_report_suppressed(void *suppressions, const struct ss_sites *s, const struct ss_site *site);

#endif
