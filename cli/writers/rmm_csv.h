/* SPDX-License-Identifier: MIT */
/* Writes allocation logs in the CSV format of the RAPIDS Memory Manager (RMM). */
#ifndef SS_WRITERS_RMM_CSV_H
#define SS_WRITERS_RMM_CSV_H

#include <stdint.h>
#include <stdio.h>

/* `time_us` counts microseconds since midnight; whole days are dropped. Errors are left in
 * the stream, for ferror(). */
void ss_rmm_write_header(FILE *out);
void ss_rmm_write_row(FILE *out, unsigned thread, uint64_t time_us, const char *action,
		      uint64_t pointer, uint64_t size, uint64_t stream);

#endif
