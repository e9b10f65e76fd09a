/* SPDX-License-Identifier: MIT */
/*
 * Handles of streams and events. Their memory is never released, so that a stale handle is refused
 * and does not crash. A new handle reuses the one that was destroyed last (SOMASIM_HANDLE_LIFO).
 * All functions are thread-safe.
 */
#ifndef SIM_HIP_HANDLE_H
#define SIM_HIP_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hip/hip_runtime_api.h>

struct capture;
struct node;
struct sim_queue;
struct sim_record;
struct sim_shared_event;

struct stream {
	pthread_mutex_t lock;  /* guards queue */
	_Atomic uint32_t live; /* a magic number while the handle is valid */
	uint32_t next_free;
	struct sim_queue *queue;
	int device;
	unsigned flags;
	int priority;
	uint32_t cumask[8];
	_Atomic bool detached; /* its execution context was destroyed */
	/* The rest belongs to capture.c, under its lock. */
	struct capture *capture;
	bool spoiled;       /* quirk capture-spoils */
	struct node **leaf; /* the nodes after which the next one comes */
	size_t leaf_count;
};

struct event {
	pthread_mutex_t lock; /* guards what follows */
	_Atomic uint32_t live;
	uint32_t next_free;
	unsigned flags;
	int device;
	struct sim_record *record;       /* NULL: never recorded */
	struct sim_shared_event *shared; /* for other processes too, or NULL */
	uint64_t shared_seq;             /* the last record that this process made */
	hipStream_t recorded_on;         /* the stream of the last record */
	uint64_t capture_id;             /* the capture that recorded it, and its nodes; 0: none */
	struct node **nodes;
	size_t node_count;
};

/* The stream behind a handle, or NULL: the handle is not live. Implicit streams have none. */
struct stream *stream_of(hipStream_t h);

/* Returns NULL if there are too many. Takes over the caller's reference to the queue. */
hipStream_t stream_handle_new(struct sim_queue *q, unsigned flags, int priority);

/* The handle dies. *q gets the reference to its queue. False: it was dead already. */
bool stream_handle_free(hipStream_t h, struct sim_queue **q);

/* Calls fn with each live stream of a device. */
void stream_each(int device, void (*fn)(struct stream *s));

struct event *event_of(hipEvent_t h);
hipEvent_t event_handle_new(unsigned flags);

/* The handle dies; the caller owns *record. False: it was dead already. */
bool event_handle_free(hipEvent_t h, struct sim_record **record);

#endif
