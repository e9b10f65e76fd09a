/* SPDX-License-Identifier: MIT */
/* Records of events. */
#include <stdlib.h>

#include "device/clock.h"
#include "device/command.h"
#include "device/queue.h"
#include "device/record.h"

struct sim_record *sim_record_new(struct sim_queue *q)
{
	struct sim_record *r = calloc(1, sizeof *r);

	if (!r)
		abort();
	atomic_init(&r->refs, 1);
	r->queue = sim_queue_ref(q);
	return r;
}

struct sim_record *sim_record_ref(struct sim_record *r)
{
	if (r)
		atomic_fetch_add(&r->refs, 1);
	return r;
}

void sim_record_unref(struct sim_record *r)
{
	if (!r || atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	sim_queue_unref(r->queue);
	free(r);
}

bool sim_record_done(struct sim_record *r)
{
	return sim_queue_done(r->queue, r->seq);
}

static void run_record(struct sim_command *c)
{
	atomic_store(&c->record->time_ns, sim_now_ns());
}

struct sim_command *sim_record_command(struct sim_record *r)
{
	struct sim_command *c = sim_command_new(SIM_CMD_RECORD, run_record);

	c->record = sim_record_ref(r);
	return c;
}
