/* SPDX-License-Identifier: MIT */
/* One state of a trace file that may still be written. Internal to the reader. */
#ifndef SS_TRACE_STEADY_H
#define SS_TRACE_STEADY_H

#include "trace/reader_file.h"

/* For a file that is open and has a good header. Waits until no process moves the beginning of a
 * ring (cli/ring/). The ring then stays unchanged until the file is closed: locked if its program
 * has ended, else as a copy without a name, which takes the place of `fd`. Sets `writer`, `end_ns`
 * and the header. Waits for 20 ms if the program runs. False with one line in `err`. */
bool ss_trace_steady(struct ss_trace_file_def *f, enum ss_trace_writer *writer, char *err,
		     size_t err_size);

#endif
