/* SPDX-License-Identifier: MIT */
#include "hip.h"
atomic_int captures_live;
bool stream_capturing(struct stream *s) { return false; }
bool capture_submit(struct stream *s, struct cmd *c, hipError_t *e) { return false; }
hipError_t guard_unsafe(void) { return hipSuccess; }
hipError_t guard_sync_copy(void) { return hipSuccess; }
hipError_t guard_device_sync(void) { return hipSuccess; }
hipError_t guard_stream(struct stream *s) { return hipSuccess; }
hipError_t guard_event_query(struct event *ev, bool sync) { return hipSuccess; }
bool capture_record(struct stream *s, struct event *ev) { return false; }
bool capture_wait(struct stream *s, struct event *ev, hipError_t *e) { return false; }
void capture_stream_gone(struct stream *s) { }
hipError_t pool_free_block(const struct sim_alloc *a, hipStream_t stream, bool async) { return hipErrorInvalidValue; }
void pools_release(int device) { }
void pools_reset(int device) { }
hipError_t graph_mem_free(const struct sim_alloc *a) { return hipErrorInvalidValue; }
void graph_alloc_unref(struct graph_alloc *ga) { }
