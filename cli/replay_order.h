/* SPDX-License-Identifier: MIT */
/* Events between the streams of a log. */
#ifndef SS_CLI_REPLAY_ORDER_H
#define SS_CLI_REPLAY_ORDER_H

struct ss_core;
struct ss_timeline;

/* Work that is enqueued on `to` from now on comes after all work that is on `from` now. */
void ss_replay_order(struct ss_core *core, struct ss_timeline *from, struct ss_timeline *to);

#endif
