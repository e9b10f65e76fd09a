/* SPDX-License-Identifier: MIT */
/* The analysis of one file that `somashim report` is called for. */
#ifndef SS_CLI_REPORT_ANALYSIS_H
#define SS_CLI_REPORT_ANALYSIS_H

#include "cli/analysis/analysis.h"

/* `path` is a recording or a memory snapshot of PyTorch. With `phase` only one range of that name
 * is looked at: the one with the highest peak, or that `number`, from 1. NULL and one line in
 * `err`. */
struct ss_analysis *ss_report_analysis(const char *path, const struct ss_analysis_config *config,
				       const char *phase, uint64_t number, char *err,
				       size_t err_size);

#endif
