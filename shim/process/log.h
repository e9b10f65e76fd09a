/* SPDX-License-Identifier: MIT */
/* Messages to the user: to stderr, or to the file that SOMASHIM_LOG names. */
#ifndef SS_SHIM_LOG_H
#define SS_SHIM_LOG_H

#include <stddef.h>
#include <stdio.h>

/* Opens the log as ss_options says. Not thread safe; a second call does nothing. */
void ss_shim_log_open(void);
/* The stream to write to; stderr before ss_shim_log_open(). Never closed. */
FILE *ss_shim_log_file(void);
/* Writes one line, after the prefix "somashim: ". Any thread. */
void ss_shim_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes text past the stream of the log. A signal handler may call it. */
void ss_shim_log_write(const char *text, size_t size);

#endif
