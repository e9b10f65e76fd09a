/* SPDX-License-Identifier: MIT */
/*
 * Commands: what a queue executes. The function of its kind makes a command, which belongs to the
 * caller until it is enqueued. Then it belongs to the queue, which frees it after it has run.
 * Templates of graphs are commands that are cloned and never enqueued.
 */
#ifndef SIM_COMMAND_H
#define SIM_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_command_kind {
	SIM_CMD_MARKER, /* does nothing, but has a position */
	SIM_CMD_COPY,
	SIM_CMD_FILL,
	SIM_CMD_KERNEL,
	SIM_CMD_RECORD,
	SIM_CMD_WRITE_VALUE,
	SIM_CMD_WAIT_VALUE,
	SIM_CMD_HOST,
	SIM_CMD_CALL,
	SIM_CMD_SHARED_RECORD,
	SIM_CMD_SHARED_WAIT,
};

struct sim_queue;

/* A point on a queue: the seq-th command that was enqueued there. Once reached it stays
 * reached, because every queue runs in order. */
struct sim_position {
	struct sim_queue *queue;
	uint64_t seq;
};

typedef void (*sim_kernel_body)(void **args);

struct sim_command {
	enum sim_command_kind kind;
	void (*run)(struct sim_command *c); /* on the queue's thread; NULL: nothing to do */
	struct sim_command *next;
	uint64_t seq;
	int dep_count, dep_capacity;
	struct sim_position *deps, few[2]; /* what must be reached first; few is enough mostly */
	void *owned;                       /* a blob, shared with clones */
	union {
		struct {
			char *dst;
			const char *src;
			size_t width, height, depth, dpitch, spitch, dslice, sslice;
		} copy; /* bytes and rows */
		struct {
			char *dst;
			uint32_t value;
			int elem;                                  /* bytes: 1, 2 or 4 */
			size_t width, height, depth, pitch, slice; /* width in elements */
		} fill;
		struct {
			sim_kernel_body body;
			const char *name;
			void **args;
			uint32_t dims[6]; /* grid, block */
			const void *func;
		} kernel;
		struct sim_record *record;
		struct {
			void *ptr;
			uint64_t value, mask;
			unsigned condition; /* a sim_value_condition */
			bool wide;          /* 64 bits instead of 32 */
		} value;
		struct {
			void (*fn)(void *arg);
			void *arg;
		} host; /* SIM_CMD_HOST and SIM_CMD_CALL */
		struct {
			struct sim_shared_event *event;
			uint64_t n;
		} shared;
	};
};

struct sim_command *sim_command_new(enum sim_command_kind kind, void (*run)(struct sim_command *c));
struct sim_command *sim_marker(void);

/* fn runs on the queue's thread. It must not call into HIP or HSA. */
struct sim_command *sim_call_command(void (*fn)(void *arg), void *arg);

/* A copy without dependencies, for a launch of a graph. */
struct sim_command *sim_command_clone(const struct sim_command *c);
void sim_command_free(struct sim_command *c);

/* The command starts after the position has been reached. */
void sim_command_depend(struct sim_command *c, struct sim_queue *q, uint64_t seq);

/* Zeroed memory that commands share by reference. destroy (or NULL) is called with it when
 * the last reference goes. */
void *sim_blob_new(size_t size, void (*destroy)(void *p));
void *sim_blob_ref(void *p);
void sim_blob_unref(void *p);

#endif
