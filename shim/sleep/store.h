/* SPDX-License-Identifier: MIT */
/* Where contents of device memory are kept while the process sleeps. */
#ifndef SS_SHIM_SLEEP_STORE_H
#define SS_SHIM_SLEEP_STORE_H

#include "core/sleep.h"

/* The store; dir: NULL = anonymous memory, else a directory. NULL and *why (static text) if it
 * cannot be. */
const struct ss_sleep_store *ss_store_make(const char *dir, const char **why);
/* The text for the last refusal of it, or NULL. */
const char *ss_store_why(const struct ss_sleep_store *store);
void ss_store_end(const struct ss_sleep_store *store);

#endif
