/* SPDX-License-Identifier: MIT */
/* Opens a file that may be compressed, and hands out its contents as a stdio stream. */
#ifndef SS_READERS_INPUT_H
#define SS_READERS_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct ss_input {
	FILE *file;       /* the uncompressed contents */
	int first;        /* the first byte, which can still be read from `file` */
	const char *tool; /* "gzip", "xz" or "zstd"; NULL if the file is not compressed */
	pid_t pid;        /* the running tool; 0 after it was waited for */
};

/* The tool that unpacks a file that begins with these `n` bytes, of which there is one at least;
 * NULL if it is not compressed. */
const char *ss_input_tool(const void *begin, size_t n);
/* Opens `path`; "-" is standard input. A compressed file is recognized by its first bytes
 * and piped through the tool of that name. Returns false with a message in `err` on any
 * error; an empty file is an error too. Not thread safe (it forks). */
bool ss_input_open(struct ss_input *in, const char *path, char *err, size_t err_size);
/* Call after the last byte was read. False means that the tool failed, so the contents
 * are incomplete. */
bool ss_input_complete(struct ss_input *in);
void ss_input_close(struct ss_input *in);

#endif
