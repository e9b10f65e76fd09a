/* SPDX-License-Identifier: MIT */
/* Facts about the dynamic loader of this machine, for `somashim run`. */
#ifndef SS_CLI_RUN_LOADER_H
#define SS_CLI_RUN_LOADER_H

#include <stdbool.h>
#include <stddef.h>

/* Should the auditor be used besides the preload? Not with glibc before 2.35 (`version`, NULL:
 * that of this process). Then SOMASHIM_API_TABLE=1 is set instead unless it is set already, and
 * unless `quiet` that is said on stderr. Not thread safe, as it changes the environment. */
bool ss_loader_audits(const char *version, bool quiet);
/* Does the loader refuse to preload `library` here? If so, `reason` gets what it says. */
bool ss_loader_refusal(const char *library, char *reason, size_t size);

#endif
