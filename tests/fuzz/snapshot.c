/* SPDX-License-Identifier: MIT */
/* Pickles, and the memory snapshots of PyTorch that they may be. The first byte chooses the
 * device. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/events.h"
#include "cli/readers/torch_snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *in = size > 1 ? fmemopen((void *)(uintptr_t)(data + 1), size - 1, "rb") : NULL;
	struct ss_events ev;
	char err[512];

	if (!in)
		return 0;
	if (ss_events_begin(&ev)) {
		bool read = ss_snapshot_read(&ev, in, data[0] % 4 - 1, err, sizeof(err));
		bool ended = ss_events_end(&ev);
		for (size_t i = 0; read && ended && i < ev.count; i++)
			if (ev.list[i].block >= ev.blocks || ev.list[i].stream >= ev.stream_count)
				abort();
		ss_events_finish(&ev);
	}
	fclose(in);
	return 0;
}
