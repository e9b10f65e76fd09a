/* SPDX-License-Identifier: MIT */
/* Inside libamdhip64: streams, events, captures, and what its files share. */
#ifndef HIP_SIM_H
#define HIP_SIM_H

#include <hip/hip_runtime_api.h>

#include "device/sim.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define V52 (sim_opt.hip == 52)
#define V57 (sim_opt.hip == 57)
#define V6 (sim_opt.hip >= 60)
#define V7 (sim_opt.hip >= 70)

/* ---- commands (queue.c runs them) ---- */

enum cmd_kind {
	C_MARKER, C_COPY, C_SET, C_KERNEL, C_RECORD, C_WRITE, C_WAITVAL, C_HOST,
	C_CALLBACK, C_IPC_RECORD, C_IPC_WAIT, C_FREE, C_EVENT_RECORD, C_EVENT_WAIT,
	C_ALLOC, C_GRAPH,
};

struct queue;
struct rec;
struct ipc_event;
struct event;
struct graph;

struct dep {
	struct queue *q;
	uint64_t seq;
};

typedef void (*kernel_body)(void **args);

struct cmd {
	enum cmd_kind kind;
	struct cmd *next;
	uint64_t seq;
	int ndeps, capdeps;
	struct dep *deps, few[2];
	void *owned;                  /* a blob, shared with clones */
	union {
		struct {
			char *dst;
			const char *src;
			size_t width, height, depth, dpitch, spitch, dslice, sslice;
		} copy;
		struct {
			char *dst;
			uint32_t value;
			int elem;
			size_t width, height, depth, pitch, slice; /* width in elements */
		} set;
		struct {
			kernel_body body;
			const char *name;
			void **args;
			uint32_t dims[6];
			const void *func;
		} kernel;
		struct rec *rec;
		struct {
			void *ptr;
			uint64_t value, mask;
			unsigned flags;
			bool wide;
		} val;
		struct {
			void (*fn)(void *arg);
			hipStreamCallback_t cb;
			hipStream_t stream;
			void *arg;
		} host;
		struct {
			struct ipc_event *ev;
			uint64_t n;
		} ipc;
		struct {
			void *ptr;
			size_t size;
			int device;
			struct graph_alloc *ga;
		} mem;
		hipEvent_t event;             /* graph nodes: bound at launch */
		struct graph *child;
	};
};

struct queue {
	atomic_int refs;
	int device;
	bool blocking, is_null, listed;
	unsigned flags;
	int priority;
	uint64_t id;
	pthread_mutex_t lock;
	pthread_cond_t work, progress;
	struct cmd *head, *tail;
	_Atomic uint64_t enqueued, completed;
	bool closing, worker;
	int stalled;
	uint64_t rng;
	char name[48];
	struct queue *next, *prev;
};

struct queue *queue_new(int device, bool blocking, bool is_null);
struct queue *queue_ref(struct queue *q);
void queue_unref(struct queue *q);
void queue_close(struct queue *q);
struct cmd *cmd_new(enum cmd_kind kind);
struct cmd *cmd_clone(const struct cmd *c);
void cmd_free(struct cmd *c);
void cmd_run(struct cmd *c);
void *blob_new(size_t size);          /* zeroed, counted by commands */
void *blob_ref(void *p);
void blob_unref(void *p);
void cmd_dep(struct cmd *c, struct queue *q, uint64_t seq);
uint64_t enqueue(struct queue *q, struct cmd *c);
void queue_wait(struct queue *q, uint64_t seq);
bool queue_done(struct queue *q, uint64_t seq);
/* Everything enqueued so far on a stream, joined if it is the null stream. */
void queue_drain(struct queue *q);
void device_drain(int device);
void device_finish(int device);
bool device_idle_null(int device);
struct queue *null_queue(int device);
struct queue *thread_queue(int device);
void device_drop_queues(int device);
void device_each_queue(int device, void (*fn)(struct queue *q, void *arg), void *arg);
void host_call(struct cmd *c);
uint64_t now_ns(void);
struct rec *rec_new(struct queue *q);
struct rec *rec_ref(struct rec *r);
void rec_unref(struct rec *r);
bool rec_done(struct rec *r);

struct rec {
	atomic_int refs;
	struct queue *q;
	uint64_t seq;
	_Atomic uint64_t t;
};

/* ---- handles (handle.c): slots are never unmapped, and reused LIFO ---- */

struct capture;
struct node;

struct stream {
	pthread_mutex_t lock;
	_Atomic uint32_t live;        /* magic while the handle is valid */
	uint32_t next_free;
	struct queue *q;
	int device;
	unsigned flags;
	int priority;
	uint64_t id;
	uint32_t cumask[8];
	/* capture.c, under its lock */
	struct capture *cap;
	bool spoiled;
	_Atomic bool detached;        /* its execution context is gone (context.c) */
	struct node **leaf;
	size_t nleaf;
};

struct event {
	pthread_mutex_t lock;
	_Atomic uint32_t live;
	uint32_t next_free;
	unsigned flags;
	int device;
	struct rec *rec;
	struct ipc_event *ipc;
	uint64_t ipc_seq;
	hipStream_t on; /* where it was recorded last */
	/* captured */
	uint64_t cap_id;
	struct node **nodes;
	size_t nnodes;
};

hipStream_t stream_handle_new(struct queue *q, unsigned flags, int priority);
struct stream *stream_of(hipStream_t h);          /* NULL: not a live handle */
bool stream_handle_free(hipStream_t h, struct queue **q);
void streams_reset(int device);
struct event *event_of(hipEvent_t h);
hipEvent_t event_handle_new(unsigned flags);

/* The queue behind a handle, referenced; s is NULL for the implicit streams. */
hipError_t resolve(hipStream_t h, struct queue **q, struct stream **s);
/* The same of a stream whose execution context is gone. */
hipError_t resolve_any(hipStream_t h, struct queue **q, struct stream **s);
/* Enqueue, or record into the stream's capture. Takes the command. */
hipError_t submit(hipStream_t h, struct cmd *c, bool wait);
#define SPT(h) ((h) ? (h) : hipStreamPerThread)
#define LEGACY ((hipStream_t)1)

/* ---- capture.c ---- */
extern atomic_int captures_live;
bool stream_capturing(struct stream *s);
/* True when the stream captures: the command became a node (or *e says why not). */
bool capture_submit(struct stream *s, struct cmd *c, hipError_t *e);
hipError_t guard_unsafe(void);        /* hipMalloc and friends */
hipError_t guard_sync_copy(void);     /* hipMemset, hipMemcpy */
hipError_t guard_device_sync(void);
hipError_t guard_stream(struct stream *s);   /* query or wait of a capturing stream */
hipError_t guard_event_query(struct event *ev, bool sync);
hipError_t guard_mempool(void);
bool blocking_capture_on(int device, struct stream *except);
bool capture_record(struct stream *s, struct event *ev);
bool capture_wait(struct stream *s, struct event *ev, hipError_t *e);
bool capture_alloc(struct stream *s, void **ptr, size_t size, hipError_t *e);
bool capture_free(struct stream *s, void *ptr, hipError_t *e);
void capture_stream_gone(struct stream *s);

/* ---- devices and allocations ---- */
static inline int cur_device(void)
{
	return sim_self()->device;
}
hipError_t check_device(int device);
hipError_t stream_create_on(int device, hipStream_t *out, unsigned flags, int priority);
bool hip_find(const void *p, struct sim_alloc *a);   /* what HIP knows, raw HSA included */
hipError_t device_malloc(void **ptr, size_t size, unsigned flags, int device);
void *hip_device_memory(int device, size_t size, unsigned flags);
void hip_device_release(void *base);
bool host_pageable(const void *p);
void wait_owner(const struct sim_alloc *a);
hipError_t host_release(void *ptr);
int peer_mask(int device);

enum owner { O_NONE, O_POOL, O_GRAPH };

/* ---- pools ---- */
hipError_t pool_free_block(const struct sim_alloc *a, hipStream_t stream, bool async);
void pools_release(int device);
void pools_reset(int device);
hipError_t graph_mem_free(const struct sim_alloc *a);

/* ---- graphs ---- */
struct node *node_add(struct graph *g, struct cmd *c, struct node *const *deps, size_t n);
struct graph *graph_new(void);
void graph_free(struct graph *g);
bool graph_joined(struct node *const *leaf, size_t n, struct node *const *other, size_t m);
void graph_spoil(struct graph *g);
struct graph *graph_of(hipGraph_t h);
hipError_t graph_alloc_new(size_t size, int device, struct graph_alloc **out);

struct graph_alloc {
	atomic_int refs;
	void *ptr;
	size_t size;
	int device;
	atomic_bool live;
};
void graph_alloc_unref(struct graph_alloc *ga);

/* ---- kernels ---- */
struct cmd *kernel_cmd(const void *func, dim3 grid, dim3 block, void **args, void **extra, hipError_t *e);
struct cmd *module_kernel_cmd(hipFunction_t f, const uint32_t dims[6], void **args, void **extra, hipError_t *e);
void kernel_run(const struct cmd *c);

/* ---- copies ---- */
struct cmd *copy_cmd(void *dst, const void *src, size_t n);
struct cmd *copy3d_cmd(const hipMemcpy3DParms *p, hipError_t *e);
struct cmd *drv3d_cmd(const HIP_MEMCPY3D *p);
hipError_t submit_copy(hipStream_t h, struct cmd *c, hipMemcpyKind kind, bool wait);
hipError_t submit_rows(hipStream_t h, void *dst, size_t dp, const void *src, size_t sp, size_t w, size_t rows,
		  hipMemcpyKind kind, bool wait);
hipError_t check_copy(const void *dst, const void *src, size_t n, hipMemcpyKind kind);
void ipc_event_done(struct ipc_event *ev, uint64_t n);
uint64_t ipc_event_recorded(struct ipc_event *ev);
void ipc_event_wait(struct ipc_event *ev, uint64_t n);

#define E(name, node, params, args) hipError_t i_##name params;
#define N(name, node, params)
#define X(name, node)
#include "hip_entries.h"
#undef E
#undef N
#undef X

/* Through the PLT on purpose: the real library re-enters these exports (of those that it
 * calls so, hipGetDevice and hipModuleLaunchKernel are left out: nobody intercepts the one,
 * and only hipLaunchByPtr leads to the other). */
#define PLT(call) call
/* hipMemGetInfo by the PLT: hipmem.c */
void ask_free(void);

#endif
