/* SPDX-License-Identifier: MIT */
/* Starts the recording of SOMASHIM_TRACE and the journal. What is recorded is up to whoever does
 * it. */
#ifndef SS_SHIM_RECORDING_H
#define SS_SHIM_RECORDING_H

#include "core/core.h"

/* Opens the file, before the core is made. Calls nothing of HIP, so a lock may be held; but
 * ss_trace_prepare() must have been called without one. */
void ss_recording_start(const struct ss_options *options);
/* Opens the journal of SOMASHIM_JOURNAL, if there is to be one. Before anybody uses the core. */
void ss_recording_journal(struct ss_core *core, const struct ss_options *options);
/* Describes the runtime and the devices. No lock held. */
void ss_recording_describe(int devices);

#endif
