/* SPDX-License-Identifier: MIT */
/* Logs of allocations, as RMM and the journal write them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/events.h"
#include "cli/readers/rmm_csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *file = size ? fmemopen((void *)(uintptr_t)data, size, "rb") : NULL;
	struct ss_input in = {.file = file, .first = size ? data[0] : 0};
	struct ss_rmm_reader *r = NULL;
	struct ss_rmm_entry e;
	struct ss_events ev;
	char err[512];

	if (file && ss_events_begin(&ev)) {
		r = ss_rmm_open(&in, err, sizeof(err));
		while (r && ss_rmm_next(r, &e, err, sizeof(err)) == 1) {
			ev.at = (uint32_t)e.line;
			if (e.is_free)
				(void)ss_events_free(&ev, e.pointer, e.size, e.stream, e.time_us);
			else if (!e.is_failure)
				(void)ss_events_alloc(&ev, e.pointer, e.size, e.stream, e.time_us);
		}
		if (r)
			ss_rmm_close(r);
		ss_events_end(&ev);
		ss_events_finish(&ev);
	}
	if (file)
		fclose(file);
	return 0;
}
