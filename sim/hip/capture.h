/* SPDX-License-Identifier: MIT */
/* Captures, inside: shared by capture.c and guard.c. */
#ifndef CAPTURE_SIM_H
#define CAPTURE_SIM_H

#include "hip.h"

struct capture {
	uint64_t id;
	hipStreamCaptureMode mode;
	struct stream *origin;
	pthread_t thread;
	struct graph *graph;
	bool given;                   /* captured into the program's own graph */
	bool invalid;
	struct stream **streams;
	size_t nstreams;
	struct capture *next;
};

extern pthread_mutex_t cap_lock;     /* guards all of it */
extern struct capture *captures;
struct capture *capture_by_id(uint64_t id);

#endif
