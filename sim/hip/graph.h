/* SPDX-License-Identifier: MIT */
/* Graphs, inside: shared by graph.c (life and launch), node.c and nodemem.c (the nodes). */
#ifndef GRAPH_SIM_H
#define GRAPH_SIM_H

#include "hip.h"

struct node {
	struct graph *graph;
	struct cmd *cmd;
	struct graph *child;
	struct node **deps;
	size_t ndeps, index;
	struct node *origin, *twin;   /* what it was copied from, and to */
	hipKernelNodeParams kernel;   /* as the program gave them */
	hipMemsetParams set;
	hipMemcpy3DParms copy;
};

struct graph {
	struct node **nodes;
	size_t n;
	bool spoiled;
	struct graph *next;
};

struct exec {
	struct graph *graph;
	unsigned long long flags;
	struct exec *next;
};

struct node *node_of(hipGraphNode_t h);
/* Adds a node for c, which is freed if that fails. */
hipError_t node_create(hipGraphNode_t *out, hipGraph_t h, const hipGraphNode_t *deps, size_t n, struct cmd *c,
		       struct node **made);
struct exec *exec_of(hipGraphExec_t h);
void node_free(struct node *n);
void node_depend(struct node *n, struct node *on);
bool node_depends(struct node *n, struct node *on);
struct graph *graph_copy(struct graph *g);

#endif
