/* SPDX-License-Identifier: MIT */
/* Reads a log as `somashim replay` does, for a program that is otherwise plain HIP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/events.h"
#include "replay_log.h"

bool replay_log_read(struct replay_log *log, const char *path, char *err, size_t err_size)
{
	struct ss_events ev;
	uint64_t in_use = 0;

	memset(log, 0, sizeof(*log));
	/* The tool that unpacks a log is not part of the program under test. */
	unsetenv("LD_PRELOAD");
	unsetenv("LD_AUDIT");
	if (!ss_events_read(&ev, path, -1, err, err_size))
		return false;
	log->ops = calloc(ev.count, sizeof(*log->ops));
	log->sizes = calloc(ev.blocks, sizeof(*log->sizes));
	if (!log->ops || !log->sizes)
		abort();
	for (size_t i = 0; i < ev.count; i++) {
		const struct ss_event *e = &ev.list[i];
		log->ops[i] = (struct replay_op){e->block, e->stream, e->is_free};
		if (!e->is_free)
			log->sizes[e->block] = e->size;
		in_use += e->is_free ? -log->sizes[e->block] : e->size;
		log->peak = in_use > log->peak ? in_use : log->peak;
	}
	log->count = ev.count;
	log->blocks = ev.blocks;
	log->streams = ev.stream_count;
	log->unknown_frees = ev.unknown_frees;
	ss_events_finish(&ev);
	return true;
}

void replay_log_finish(struct replay_log *log)
{
	free(log->ops);
	free(log->sizes);
}
