/* SPDX-License-Identifier: MIT */
/* Records the identity of the process: program, arguments, host, job, rank, options. */
#ifndef SS_TRACE_PROCESS_INFO_H
#define SS_TRACE_PROCESS_INFO_H

#include <stddef.h>

#include "trace/process_job.h"
#include "trace/record.h"

/* Not thread safe. */
void ss_trace_process_info(struct ss_trace_context *c);
/* One INFO record. Text beyond SS_TRACE_TEXT_MAX is cut. */
void ss_trace_info_text(struct ss_trace_context *c, enum ss_trace_info_key key, const char *text,
			size_t length);

#endif
