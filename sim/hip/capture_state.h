/* SPDX-License-Identifier: MIT */
/* Captures as capture.c, capture_calls.c and capture_guard.c see them. capture_lock guards all
 * of it, and the capture fields of streams and events. */
#ifndef SIM_HIP_CAPTURE_STATE_H
#define SIM_HIP_CAPTURE_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <hip/hip_runtime_api.h>

struct graph;
struct node;
struct stream;

struct capture {
	uint64_t id;
	hipStreamCaptureMode mode;
	struct stream *origin; /* where it began and must end */
	pthread_t thread;      /* that began it */
	struct graph *graph;
	bool given; /* the graph belongs to the program */
	bool invalid;
	struct stream **streams;
	size_t stream_count;
	struct capture *next;
};

extern pthread_mutex_t capture_lock;
extern struct capture *captures;

/* All are called with capture_lock held. */
struct capture *capture_by_id(uint64_t id);
void capture_join(struct capture *c, struct stream *s);
void capture_set_leaf(struct stream *s, struct node *const *n, size_t count);

/* Adds a capture to the list. */
void capture_start(struct capture *c);

/* Ends and frees a capture; the caller owns the graph unless it was given. */
struct graph *capture_finish(struct capture *c);

#endif
