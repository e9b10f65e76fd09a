/* SPDX-License-Identifier: MIT */
/*
 * The queues of each device. The null queue and the blocking queues are ordered implicitly, as
 * HIP's null stream and its blocking streams: a command of the null queue waits for all commands
 * that are on the blocking queues, and the other way round. All functions are thread-safe.
 */
#ifndef SIM_DEVICE_QUEUES_H
#define SIM_DEVICE_QUEUES_H

#include <stdbool.h>
#include <stdint.h>

struct sim_command;
struct sim_queue;

/* Each returns a reference that the caller drops. */
struct sim_queue *sim_device_queue_new(int device, bool blocking);
struct sim_queue *sim_null_queue(int device);
struct sim_queue *sim_thread_queue(int device); /* of the calling thread */

/* Enqueues a command in implicit order, takes it over, and returns its position. */
uint64_t sim_enqueue(struct sim_queue *q, struct sim_command *c);

/* Waits for all commands that are on the queue. For the null queue it also waits for those on the
 * queues that are joined to it. */
void sim_queue_drain(struct sim_queue *q);

/* True: nothing is pending on the null queue or on a queue that is joined to it. */
bool sim_null_idle(int device);

/* Waits for everything that is enqueued on the device at the time of the call. */
void sim_device_drain(int device);

/* Waits for one queue after the other, each up to the end that it has when its turn comes,
 * as SyncAllStreams of the real runtime. */
void sim_device_finish(int device);

/* Throws away all commands that have not started, and waits for the others. */
void sim_device_drop(int device);

#endif
