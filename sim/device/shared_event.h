/* SPDX-License-Identifier: MIT */
/*
 * Events that processes share: one page that counts how often the event was recorded and how
 * far the records have been reached. All functions are thread-safe. Pages are never unmapped.
 */
#ifndef SIM_SHARED_EVENT_H
#define SIM_SHARED_EVENT_H

#include <stdbool.h>
#include <stdint.h>

struct sim_command;
struct sim_shared_event;

/* NULL: out of memory or of descriptors. */
struct sim_shared_event *sim_shared_event_new(void);

/* Opens the event of another process. NULL: it is not there. */
struct sim_shared_event *sim_shared_event_open(uint32_t pid, int fd);

/* The creator's descriptor. */
int sim_shared_event_fd(const struct sim_shared_event *ev);

/* Counts a record and returns its number. */
uint64_t sim_shared_event_record(struct sim_shared_event *ev);

/* The number of the last record, by whichever process. */
uint64_t sim_shared_event_recorded(struct sim_shared_event *ev);

/* Has the n-th record been reached? And a wait for it. */
bool sim_shared_event_done(struct sim_shared_event *ev, uint64_t n);
void sim_shared_event_wait(struct sim_shared_event *ev, uint64_t n);

/* Commands that reach the n-th record, and that wait for it. */
struct sim_command *sim_shared_record_command(struct sim_shared_event *ev, uint64_t n);
struct sim_command *sim_shared_wait_command(struct sim_shared_event *ev, uint64_t n);

#endif
