/* SPDX-License-Identifier: MIT */
/* The bytes that a store keeps: anonymous memory, or a file without a name. One thread uses it. */
#ifndef SS_SHIM_SLEEP_TAPE_H
#define SS_SHIM_SLEEP_TAPE_H

#include <stdbool.h>
#include <stdint.h>

struct ss_tape {
	char *memory; /* NULL: a file */
	int fd;       /* -1: none */
	uint64_t size;
};

/* Makes a tape of `bytes` bytes, all of which have room: in memory (`dir` NULL) or on the disk of
 * `dir`. `beside`: bytes of host memory that the caller needs besides. `root`: of ss_host_room().
 * False with *why, a static text: there is no room, and nothing was made. */
bool ss_tape_open(struct ss_tape *t, const char *dir, uint64_t bytes, uint64_t beside,
		  const char *root, const char **why);
/* Copies [at, at + size) of the tape, which lies within it. False: the disk failed. No signal is
 * raised. */
bool ss_tape_write(struct ss_tape *t, uint64_t at, const void *from, uint64_t size);
bool ss_tape_read(const struct ss_tape *t, uint64_t at, void *to, uint64_t size);
/* Returns when the disk has everything. False: the disk failed. */
bool ss_tape_sync(struct ss_tape *t);
/* Releases memory and blocks. Does nothing to a tape that was not opened. */
void ss_tape_close(struct ss_tape *t);

/* Can files of this kind be made in `dir`? If not, *why is a static text. */
bool ss_tape_dir_usable(const char *dir, const char **why);

#endif
