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
	const char *tool; /* "gzip -dc", "unzip"; NULL if the file is not packed */
	pid_t pid;        /* the running tool; 0 after it was waited for */
};

/* Is a file packed that begins with these `n` bytes? */
bool ss_input_is_packed(const void *begin, size_t n);
/* A text that names a file of another kind that begins with these bytes; NULL: it is none that is
 * known. */
const char *ss_input_other(const void *begin, size_t n);
/* Opens `path`; "-" is standard input. A packed file, also within another one, is recognized by its
 * first bytes and piped through the tool that unpacks it; of a zip, the tool unpacks the file that
 * torch.save() saved. Returns false with a message in `err` on any error; an empty file is an
 * error, too, and so is a file of a kind that is known to be no log. Not thread safe (it forks). */
bool ss_input_open(struct ss_input *in, const char *path, char *err, size_t err_size);
/* Call after the last byte was read. False means that the tool failed, so the contents
 * are incomplete. */
bool ss_input_complete(struct ss_input *in);
void ss_input_close(struct ss_input *in);

#endif
