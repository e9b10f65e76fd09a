/* SPDX-License-Identifier: MIT */
/* Records of events: a position on a queue, and the time at which it was reached. They are
 * reference-counted and thread-safe. */
#ifndef SIM_RECORD_H
#define SIM_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sim_command;
struct sim_queue;

struct sim_record {
	atomic_int refs;
	struct sim_queue *queue;
	uint64_t seq;             /* set when the record is enqueued */
	_Atomic uint64_t time_ns; /* 0: not reached yet */
};

struct sim_record *sim_record_new(struct sim_queue *q);
struct sim_record *sim_record_ref(struct sim_record *r);
void sim_record_unref(struct sim_record *r);

/* True: everything before the record is done. */
bool sim_record_done(struct sim_record *r);

/* The command that reaches the record. It holds a reference of its own. */
struct sim_command *sim_record_command(struct sim_record *r);

#endif
