/* SPDX-License-Identifier: MIT */
/*
 * Finds out whether a network card may write to device memory without a call that we have seen. The
 * process must not sleep then.
 */
#ifndef SS_SHIM_SLEEP_STAYS_H
#define SS_SHIM_SLEEP_STAYS_H

/* A library is loaded that registers device memory with a network card past all calls that we see:
 * the card would go on writing to memory that was released. So no memory may sleep. Returns the
 * reason, a static text; NULL: there is no such library, or no card. `root` stands before /sys
 * (ss_kernel_root()). Any thread; takes the lock of the loader's list. Calls that are seen mark
 * their memory themselves (ss_core_stays in core/sleep.h). */
const char *ss_sleep_registered(const char *root);

#endif
