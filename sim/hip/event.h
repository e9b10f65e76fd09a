/* SPDX-License-Identifier: MIT */
/* Events, for other entry points. */
#ifndef SIM_HIP_EVENT_H
#define SIM_HIP_EVENT_H

#include <stdint.h>

struct event;
struct sim_record;
struct sim_shared_event;

/* The record that the event holds now, or NULL: never recorded. The caller drops the
 * reference. If other processes share the event, *shared is not NULL and counts instead, with
 * *n as the number of its record. */
struct sim_record *event_record_now(struct event *ev, struct sim_shared_event **shared,
				    uint64_t *n);

#endif
