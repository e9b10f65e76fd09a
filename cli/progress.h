/* SPDX-License-Identifier: MIT */
/* A progress bar on stderr, for work that takes long. */
#ifndef SS_CLI_PROGRESS_H
#define SS_CLI_PROGRESS_H

/* Draws the bar; `part` is from 0 to 1. */
void ss_progress_draw(double part);
/* Removes it. */
void ss_progress_clear(void);

#endif
