/* SPDX-License-Identifier: MIT */
/* Counts skipped checks, for the summary. */
#ifndef SS_SHIM_CHECK_SKIPS_H
#define SS_SHIM_CHECK_SKIPS_H

void ss_check_skip_kernel(void);
void ss_check_skip_graph(void);
/* Padding, or the bytes of a freed block, that could not be compared. */
void ss_check_skip_bytes(void);

#endif
