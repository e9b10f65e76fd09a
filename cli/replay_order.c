/* SPDX-License-Identifier: MIT */
/* One stream waits for an event of another, as in a program whose streams are stages. */
#include "cli/replay_order.h"
#include "core/order/watched.h"

void ss_replay_order(struct ss_core *core, struct ss_timeline *from, struct ss_timeline *to)
{
	void *event = from; /* one of its own for each stream */
	struct ss_token t = ss_record_begin(core, event, from);

	ss_record_end(core, &t, true);
	t = ss_wait_begin(core, event, to);
	ss_wait_end(core, &t, true);
}
