/* SPDX-License-Identifier: MIT */
/*
 * The store keeps contents of device memory while the process sleeps. One thread at a time uses it,
 * and that thread is in no call into the runtime. The thread's current device stays as it is.
 */
#ifndef SS_SHIM_SLEEP_STORE_H
#define SS_SHIM_SLEEP_STORE_H

#include "core/sleep.h"

/* A store in anonymous memory (`dir` NULL), or in files without names in a directory, which is
 * copied. NULL and *why, a static text: it cannot be. Makes no HIP call. */
const struct ss_sleep_store *ss_store_make(const char *dir, const char **why);
/* Why one of its functions returned false the last time: a static text. NULL: none did since it was
 * last opened. */
const char *ss_store_why(const struct ss_sleep_store *store);
/* For tests: another directory stands before /proc and /sys. It must live as long as the store. */
void ss_store_set_root(const struct ss_sleep_store *store, const char *root);
/* It must not be open. NULL is allowed. */
void ss_store_end(const struct ss_sleep_store *store);

#endif
