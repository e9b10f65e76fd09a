/* SPDX-License-Identifier: MIT */
/*
 * Queues: one worker thread each, which starts with the first command and runs late by seeded
 * delays. Reference-counted and thread-safe. The order between the queues of one device is in
 * device_queues.h, which enqueues the commands of programs.
 */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sim_command;

struct sim_queue {
	atomic_int refs;
	int device;
	bool blocking; /* takes part in the null stream's implicit order */
	bool is_null;
	uint64_t id;
	pthread_mutex_t lock; /* guards the next six lines */
	pthread_cond_t work, progress;
	struct sim_command *head, *tail;
	_Atomic uint64_t enqueued, completed; /* may be read without the lock */
	bool closing, has_worker;
	bool stalled;    /* starts no command */
	uint64_t random; /* state of the delays; the worker's */
	char name[48];
	void (*retired)(struct sim_queue *q); /* closed, and all its work is done; or NULL */
	/* A thread that synchronizes the stream holds it. The number is of those that do or
	 * will. */
	pthread_mutex_t synchronizes;
	atomic_int synchronizers;
	bool listed; /* these three belong to device_queues.c */
	struct sim_queue *next, *prev;
};

/* The caller owns one reference. */
struct sim_queue *sim_queue_new(int device, bool blocking, bool is_null);
struct sim_queue *sim_queue_ref(struct sim_queue *q);
void sim_queue_unref(struct sim_queue *q);

/* No more commands will come; those that were enqueued still run. Drops a reference. */
void sim_queue_close(struct sim_queue *q);

/* Appends a command, takes it over, and returns its position. */
uint64_t sim_queue_append(struct sim_queue *q, struct sim_command *c);

/* True: the position has been reached. */
bool sim_queue_done(struct sim_queue *q, uint64_t seq);
void sim_queue_wait(struct sim_queue *q, uint64_t seq);

/* Around a synchronization of the stream. */
void sim_queue_sync_begin(struct sim_queue *q);
void sim_queue_sync_end(struct sim_queue *q);
/* Before a query of the stream, or a record on it: with the quirk query-waits this returns when no
 * thread is inside a synchronization. */
void sim_queue_asked(struct sim_queue *q);

/* Throws away the commands that have not started. Their positions will still be reached. */
void sim_queue_drop(struct sim_queue *q);

/* From now on the queue starts no command (or does again). One that runs is finished. */
void sim_queue_stall(struct sim_queue *q, bool stalled);

#endif
