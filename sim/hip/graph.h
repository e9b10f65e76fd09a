/* SPDX-License-Identifier: MIT */
/*
 * Graphs and their nodes. A node is a command that a launch clones, or an event or a child
 * graph. An executable is a copy of a graph.
 */
#ifndef SIM_HIP_GRAPH_H
#define SIM_HIP_GRAPH_H

#include <stdbool.h>
#include <stddef.h>

#include <hip/hip_runtime_api.h>

struct graph_alloc;
struct sim_command;

/* As hipGraphNodeType counts since 5.3. */
enum node_type {
	NODE_KERNEL,
	NODE_COPY,
	NODE_FILL,
	NODE_HOST,
	NODE_GRAPH,
	NODE_EMPTY,
	NODE_EVENT_WAIT,
	NODE_EVENT_RECORD,
	NODE_ALLOC = 10,
	NODE_FREE,
	NODE_VALUE = 14,
};

struct node {
	enum node_type type;
	struct graph *graph;
	struct sim_command *cmd; /* NULL for events and child graphs */
	hipEvent_t event;
	struct graph *child;
	struct graph_alloc *alloc; /* held by cmd */
	struct node **deps;
	size_t dep_count, index;
	struct node *origin, *copy_of_it; /* what it was copied from, and last copied to */
	bool disabled;                    /* launches leave it out */
	hipMemcpy3DParms copy;            /* as the program gave it */
};

struct graph {
	struct node **nodes;
	size_t n;
	bool spoiled; /* quirk capture-spoils: cannot be instantiated */
	struct graph *next;
};

struct graph *graph_new(void);
struct graph *graph_of(hipGraph_t h); /* NULL: not a live graph */
struct graph *graph_copy(struct graph *g);
void graph_free(struct graph *g);

/* True: every node of `other` comes before some node of `leaf`. */
bool graph_joined(struct node *const *leaf, size_t n, struct node *const *other, size_t m);

struct node *node_of(hipGraphNode_t h); /* NULL: not a live node */

/* Adds a node and takes c over, which may be NULL. */
struct node *node_add(struct graph *g, enum node_type type, struct sim_command *c,
		      struct node *const *deps, size_t n);
void node_free(struct node *n);
void node_depend(struct node *n, struct node *on);
bool node_depends(struct node *n, struct node *on);

/* The type of the node that a command of a stream becomes. */
enum node_type node_type_of(const struct sim_command *c);

#endif
