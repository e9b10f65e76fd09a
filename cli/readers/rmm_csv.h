/* SPDX-License-Identifier: MIT */
/* Reads allocation logs in the CSV format of the RAPIDS Memory Manager (RMM). */
#ifndef SS_READERS_RMM_CSV_H
#define SS_READERS_RMM_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/readers/input.h"

struct ss_rmm_entry {
	bool is_free, is_failure; /* a failure is an allocation that failed; it has no pointer */
	uint64_t thread, pointer, size, stream; /* size in bytes */
	uint64_t time_us;                       /* since midnight */
	unsigned long long line;                /* line number in the file, from 1 */
	bool cut; /* set at the end of the file if its last line is incomplete */
};

struct ss_rmm_reader;

/* Reads the header line. A log without one has the columns of RMM in their order, as Spark RAPIDS
 * prints it. NULL with a message in `err` on failure. The caller keeps `in` and closes it after the
 * reader. */
struct ss_rmm_reader *ss_rmm_open(struct ss_input *in, char *err, size_t err_size);
/* Returns 1 for an entry, 0 at the end, and -1 for a malformed line, which `err` names
 * with the reason. A malformed last line without a line end is no error: the disk was full
 * or the program was killed while it wrote. It is skipped, and out->cut is set. */
int ss_rmm_next(struct ss_rmm_reader *reader, struct ss_rmm_entry *out, char *err, size_t err_size);
void ss_rmm_close(struct ss_rmm_reader *reader);

#endif
