/* SPDX-License-Identifier: MIT */
/* Pickles, and the memory snapshots of PyTorch that they may be. The first byte chooses the
 * device. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/analysis/analysis.h"
#include "cli/readers/events.h"
#include "cli/readers/torch_snapshot.h"
#include "cli/snapshot/snapshot_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The recording that a report makes of it. What begins as no pickle is another reader's. */
static void as_recording(const uint8_t *data, size_t size)
{
	const struct ss_analysis_config config = {.by = SS_BY_SITE};
	char path[64], made[64], err[1024];
	int fd = size && data[0] == 0x80 ? memfd_create("snapshot", MFD_CLOEXEC) : -1;

	if (fd < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int from = write(fd, data, size) == (ssize_t)size ?
			   ss_snapshot_trace(path, made, err, sizeof(err)) :
			   -1;
	if (from >= 0) {
		ss_analysis_free(ss_analysis_run(made, &config, err, sizeof(err)));
		close(from);
	}
	close(fd);
}

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
	as_recording(data + 1, size - 1);
	return 0;
}
