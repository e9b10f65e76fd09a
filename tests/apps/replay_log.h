/* SPDX-License-Identifier: MIT */
/* A log in memory: RMM CSV or a PyTorch memory snapshot. */
#ifndef REPLAY_LOG_H
#define REPLAY_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replay_op {
	uint32_t block;  /* index into `sizes` */
	uint32_t stream; /* dense number of the log's stream */
	bool is_free;
};

struct replay_log {
	struct replay_op *ops;
	size_t count;
	size_t *sizes; /* of each block, in order of allocation */
	uint32_t blocks, streams;
	uint64_t unknown_frees; /* of blocks that were allocated before the log */
	uint64_t peak;          /* most requested bytes live at once */
};

/* False, and a message in `err`, if the log can't be read. */
bool replay_log_read(struct replay_log *log, const char *path, char *err, size_t err_size);
void replay_log_finish(struct replay_log *log);

#endif
