/* SPDX-License-Identifier: MIT */
/*
 * Graphs and nodes as objects, and what depends on what.
 *
 * Locks: graph_lock guards the list of live graphs and the lists of their nodes. Nothing is taken
 * inside it.
 */
#include <pthread.h>
#include <stdlib.h>

#include "device/command.h"
#include "hip/graph.h"

static pthread_mutex_t graph_lock = PTHREAD_MUTEX_INITIALIZER;
static struct graph *graphs;

struct graph *graph_new(void)
{
	struct graph *g = calloc(1, sizeof *g);

	if (!g)
		abort();
	pthread_mutex_lock(&graph_lock);
	g->next = graphs;
	graphs = g;
	pthread_mutex_unlock(&graph_lock);
	return g;
}

struct graph *graph_of(hipGraph_t h)
{
	struct graph *g;

	pthread_mutex_lock(&graph_lock);
	for (g = graphs; g; g = g->next)
		if (g == (struct graph *)h)
			break;
	pthread_mutex_unlock(&graph_lock);
	return g;
}

struct node *node_of(hipGraphNode_t h)
{
	struct graph *g;
	struct node *n = NULL;

	pthread_mutex_lock(&graph_lock);
	for (g = graphs; g && !n; g = g->next)
		for (size_t i = 0; i < g->n && !n; i++)
			if (g->nodes[i] == (struct node *)h)
				n = g->nodes[i];
	pthread_mutex_unlock(&graph_lock);
	return n;
}

void node_free(struct node *n)
{
	if (n->cmd)
		sim_command_free(n->cmd);
	if (n->child)
		graph_free(n->child);
	free(n->deps);
	free(n);
}

void graph_free(struct graph *g)
{
	pthread_mutex_lock(&graph_lock);
	for (struct graph **p = &graphs; *p; p = &(*p)->next)
		if (*p == g) {
			*p = g->next;
			break;
		}
	pthread_mutex_unlock(&graph_lock);
	for (size_t i = 0; i < g->n; i++)
		node_free(g->nodes[i]);
	free(g->nodes);
	free(g);
}

bool node_depends(struct node *n, struct node *on)
{
	bool has = false;

	/* Joins may name a node twice, but one edge is enough. */
	for (size_t i = 0; i < n->dep_count; i++)
		has |= n->deps[i] == on;
	return has;
}

void node_depend(struct node *n, struct node *on)
{
	if (node_depends(n, on))
		return;
	n->deps = realloc(n->deps, (n->dep_count + 1) * sizeof *n->deps);
	if (!n->deps)
		abort();
	n->deps[n->dep_count++] = on;
}

struct node *node_add(struct graph *g, enum node_type type, struct sim_command *c,
		      struct node *const *deps, size_t n)
{
	struct node *x = calloc(1, sizeof *x);

	if (!x)
		abort();
	x->type = type;
	x->graph = g;
	x->cmd = c;
	for (size_t i = 0; i < n; i++)
		node_depend(x, deps[i]);
	pthread_mutex_lock(&graph_lock);
	g->nodes = realloc(g->nodes, (g->n + 1) * sizeof *g->nodes);
	if (!g->nodes)
		abort();
	g->nodes[g->n++] = x;
	pthread_mutex_unlock(&graph_lock);
	return x;
}

enum node_type node_type_of(const struct sim_command *c)
{
	switch (c->kind) {
	case SIM_CMD_KERNEL: return NODE_KERNEL;
	case SIM_CMD_COPY: return NODE_COPY;
	case SIM_CMD_FILL: return NODE_FILL;
	case SIM_CMD_HOST: return NODE_HOST;
	case SIM_CMD_WRITE_VALUE:
	case SIM_CMD_WAIT_VALUE: return NODE_VALUE;
	default: return NODE_EMPTY;
	}
}

static bool reaches(struct node *from, struct node *to)
{
	if (from == to)
		return true;
	for (size_t i = 0; i < from->dep_count; i++)
		if (reaches(from->deps[i], to))
			return true;
	return false;
}

bool graph_joined(struct node *const *leaf, size_t n, struct node *const *other, size_t m)
{
	for (size_t j = 0; j < m; j++) {
		bool ok = false;

		for (size_t i = 0; i < n && !ok; i++)
			ok = reaches(leaf[i], other[j]);
		if (!ok)
			return false;
	}
	return true;
}

struct graph *graph_copy(struct graph *g)
{
	struct graph *k = graph_new();

	for (size_t i = 0; i < g->n; i++) {
		struct node *n = g->nodes[i];
		struct node *x = node_add(k, n->type, n->cmd ? sim_command_clone(n->cmd) : NULL,
					  NULL, 0);

		x->event = n->event;
		x->alloc = n->alloc;
		x->origin = n;
		if (n->child)
			x->child = graph_copy(n->child);
		n->copy_of_it = x;
	}
	for (size_t i = 0; i < g->n; i++)
		for (size_t d = 0; d < g->nodes[i]->dep_count; d++)
			node_depend(k->nodes[i], g->nodes[i]->deps[d]->copy_of_it);
	return k;
}
