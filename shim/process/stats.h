/* SPDX-License-Identifier: MIT */
/* Statistics at the end of the process, as SOMASHIM_STATS says. */
#ifndef SS_SHIM_STATS_H
#define SS_SHIM_STATS_H

#include <stdio.h>

struct ss_core;

/* Prints the table of the core's pools. Calls no driver; safe at exit. */
void ss_shim_stats_table(struct ss_core *core, FILE *out);
/* Remembers the process of the statistics. Call it when the core exists, before the first call is
 * served. */
void ss_shim_stats_start(void);
/* Writes the statistics, once. Writes nothing in a child that was forked or vforked. A signal
 * handler may call it: no heap and no stdio stream of others is used. */
void ss_shim_stats_write(void);

#endif
