/* SPDX-License-Identifier: MIT */
/* Stream capture: what calls on a capturing stream do instead of work. Thread-safe. */
#ifndef SIM_HIP_CAPTURE_H
#define SIM_HIP_CAPTURE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <hip/hip_runtime_api.h>

struct event;
struct sim_command;
struct stream;

/* Captures in progress. While it is 0 nothing else here need be called. */
extern atomic_int captures_live;

bool stream_capturing(struct stream *s);

/* Each returns true if the stream captures: then *e is the result of the call. Commands are
 * taken over in that case. */
bool capture_submit(struct stream *s, struct sim_command *c, hipError_t *e);
bool capture_wait(struct stream *s, struct event *ev, hipError_t *e);
bool capture_alloc(struct stream *s, void **ptr, size_t size, hipError_t *e);
bool capture_free(struct stream *s, void *ptr, hipError_t *e);

/* False: the stream captures nothing, or its capture is invalid. */
bool capture_record(struct stream *s, struct event *ev);

/* The stream is about to be destroyed. */
void capture_stream_destroyed(struct stream *s);

#endif
