/* SPDX-License-Identifier: MIT */
/* What replay reads: a file that may be compressed, and RMM's CSV in it. */
#ifndef SS_CLI_LOG_H
#define SS_CLI_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* ---- input.c ------------------------------------------------------------ */

struct ss_input {
	FILE *file;
	int first;        /* its first byte; still to be read */
	const char *tool; /* what unpacks it, NULL if nothing does */
	pid_t pid;        /* of that, 0 once it was waited for */
};

/* Opens a file, "-" for standard input. gzip, xz and zstd are known by how they
 * begin and unpacked by the tool of that name. False and a message in `err`,
 * for an empty file too. */
bool ss_input_open(struct ss_input *in, const char *path, char *err, size_t err_size);
/* Once everything is read: false when the unpacking failed, so that what came is
 * not all there was. */
bool ss_input_complete(struct ss_input *in);
void ss_input_close(struct ss_input *in);

/* ---- log.c -------------------------------------------------------------- */

struct ss_log_entry {
	bool is_free;
	uint64_t thread, pointer, size, stream;
	uint64_t time_us; /* since midnight */
	unsigned long long line; /* where it stands */
	bool cut; /* at the end: that line was cut off in its middle, and left out */
};

struct ss_log;

/* Reads the header. NULL and a message in `err`; `in` remains the caller's. */
struct ss_log *ss_log_open(struct ss_input *in, char *err, size_t err_size);
/* 1: an entry; 0: the end; -1: malformed, `err` names the line and the reason. A last
 * line without its end that is malformed was being written when the disk was full or the
 * program was killed: it is left out. */
int ss_log_next(struct ss_log *log, struct ss_log_entry *out, char *err, size_t err_size);
void ss_log_close(struct ss_log *log);

#endif
