/* SPDX-License-Identifier: MIT */
/*
 * Graphs: nodes are command templates, an executable is a copy of the graph,
 * a launch enqueues clones on the launching stream in one legal order, chosen
 * by the seed (branches of a graph promise no order).
 *
 * Locks: graph_lock guards the lists of live graphs and executables, and every
 * graph's shape. Commands are enqueued without it.
 */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

static pthread_mutex_t graph_lock = PTHREAD_MUTEX_INITIALIZER;
static struct graph *graphs;
static struct exec *execs;
static uint64_t shuffle;

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

struct exec *exec_of(hipGraphExec_t h)
{
	struct exec *x;

	pthread_mutex_lock(&graph_lock);
	for (x = execs; x; x = x->next)
		if (x == (struct exec *)h)
			break;
	pthread_mutex_unlock(&graph_lock);
	return x;
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

void graph_spoil(struct graph *g)
{
	g->spoiled = true;
}

void node_free(struct node *n)
{
	cmd_free(n->cmd);
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

	/* Duplicates come from joins that meet again: one edge is enough. */
	for (size_t i = 0; i < n->ndeps; i++)
		has |= n->deps[i] == on;
	return has;
}

void node_depend(struct node *n, struct node *on)
{
	if (node_depends(n, on))
		return;
	n->deps = realloc(n->deps, (n->ndeps + 1) * sizeof *n->deps);
	if (!n->deps)
		abort();
	n->deps[n->ndeps++] = on;
}

struct node *node_add(struct graph *g, struct cmd *c, struct node *const *deps, size_t n)
{
	struct node *x = calloc(1, sizeof *x);

	if (!x)
		abort();
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

static bool reaches(struct node *from, struct node *to)
{
	if (from == to)
		return true;
	for (size_t i = 0; i < from->ndeps; i++)
		if (reaches(from->deps[i], to))
			return true;
	return false;
}

/* Every node of other is an ancestor of some leaf. */
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
		struct node *x = node_add(k, cmd_clone(g->nodes[i]->cmd), NULL, 0);

		x->origin = g->nodes[i];
		if (g->nodes[i]->child)
			x->child = graph_copy(g->nodes[i]->child);
		g->nodes[i]->twin = x;
	}
	for (size_t i = 0; i < g->n; i++)
		for (size_t d = 0; d < g->nodes[i]->ndeps; d++)
			node_depend(k->nodes[i], g->nodes[i]->deps[d]->twin);
	return k;
}

static hipError_t launch(struct graph *g, hipStream_t h)
{
	size_t left = g->n;
	bool *done = calloc(g->n + 1, sizeof *done);
	hipError_t e = hipSuccess;

	for (size_t i = 0; i < g->n; i++)
		g->nodes[i]->index = i;
	while (left && !e) {
		size_t ready = 0, pick;
		struct node *n = NULL;

		for (size_t i = 0; i < g->n; i++) {
			bool ok = !done[i];

			for (size_t d = 0; d < g->nodes[i]->ndeps && ok; d++)
				ok = done[g->nodes[i]->deps[d]->index];
			/* Reservoir choice: every ready node is as likely. */
			if (ok && sim_mix(&shuffle) % ++ready == 0)
				n = g->nodes[pick = i];
		}
		if (!n) {
			e = hipErrorInvalidValue;     /* a cycle */
			break;
		}
		done[pick] = true;
		left--;
		if (n->child)
			e = launch(n->child, h);
		else if (n->cmd->kind == C_EVENT_RECORD)
			e = i_hipEventRecord(n->cmd->event, h);
		else if (n->cmd->kind == C_EVENT_WAIT)
			e = i_hipStreamWaitEvent(h, n->cmd->event, 0);
		else
			e = submit(h, cmd_clone(n->cmd), false);
	}
	free(done);
	return e;
}

/* ---- graph memory ---- */

static struct {
	_Atomic uint64_t used, used_high, reserved, reserved_high;
} graph_mem[SIM_MAX_DEVICES];

static void raise_to(_Atomic uint64_t *high, uint64_t v)
{
	uint64_t old = atomic_load(high);

	while (old < v && !atomic_compare_exchange_weak(high, &old, v))
		;
}

static void own(struct sim_alloc *a, void *arg)
{
	a->owner = arg;
	a->ownertype = O_GRAPH;
}

hipError_t graph_alloc_new(size_t size, int device, struct graph_alloc **out)
{
	struct graph_alloc *ga = calloc(1, sizeof *ga);
	uint64_t n;

	if (!ga)
		return hipErrorOutOfMemory;
	ga->ptr = hip_device_memory(device, size, 0);
	if (!ga->ptr) {
		free(ga);
		return hipErrorOutOfMemory;
	}
	atomic_init(&ga->refs, 1);
	ga->size = size;
	ga->device = device;
	sim_update(ga->ptr, own, ga);
	n = atomic_fetch_add(&graph_mem[device].reserved, size) + size;
	raise_to(&graph_mem[device].reserved_high, n);
	n = atomic_fetch_add(&graph_mem[device].used, size) + size;
	raise_to(&graph_mem[device].used_high, n);
	*out = ga;
	return hipSuccess;
}

void graph_alloc_unref(struct graph_alloc *ga)
{
	if (!ga || atomic_fetch_sub(&ga->refs, 1) != 1)
		return;
	atomic_fetch_sub(&graph_mem[ga->device].reserved, ga->size);
	atomic_fetch_sub(&graph_mem[ga->device].used, ga->size);
	hip_device_release(ga->ptr);
	free(ga);
}

/* The program frees what a launched graph allocated. */
hipError_t graph_mem_free(const struct sim_alloc *a)
{
	struct graph_alloc *ga = a->owner;

	wait_owner(a);
	return atomic_exchange(&ga->live, false) ? hipSuccess : hipErrorInvalidValue;
}

hipError_t i_hipDeviceGraphMemTrim(int d)
{
	return check_device(d);
}

hipError_t i_hipDeviceGetGraphMemAttribute(int d, int attr, void *v)
{
	if (check_device(d))
		return hipErrorInvalidDevice;
	if (!v || attr < 0 || attr > 3)
		return hipErrorInvalidValue;
	*(uint64_t *)v = attr == 0 ? graph_mem[d].used : attr == 1 ? graph_mem[d].used_high :
		attr == 2 ? graph_mem[d].reserved : graph_mem[d].reserved_high;
	return hipSuccess;
}

hipError_t i_hipDeviceSetGraphMemAttribute(int d, int attr, void *v)
{
	if (check_device(d))
		return hipErrorInvalidDevice;
	if (!v || (attr != 1 && attr != 3) || *(uint64_t *)v)
		return hipErrorInvalidValue;
	if (attr == 1)
		atomic_store(&graph_mem[d].used_high, 0);
	else
		atomic_store(&graph_mem[d].reserved_high, 0);
	return hipSuccess;
}

/* ---- graphs and executables ---- */

hipError_t i_hipGraphCreate(hipGraph_t *out, unsigned flags)
{
	if (!out || flags)
		return hipErrorInvalidValue;
	*out = (hipGraph_t)graph_new();
	return hipSuccess;
}

hipError_t i_hipGraphDestroy(hipGraph_t h)
{
	if (!graph_of(h))
		return hipErrorInvalidValue;
	graph_free((struct graph *)h);
	return hipSuccess;
}

hipError_t i_hipGraphClone(hipGraph_t *out, hipGraph_t h)
{
	if (!out || !graph_of(h))
		return hipErrorInvalidValue;
	*out = (hipGraph_t)graph_copy((struct graph *)h);
	return hipSuccess;
}

hipError_t i_hipGraphInstantiateWithFlags(hipGraphExec_t *out, hipGraph_t h, unsigned long long flags)
{
	struct graph *g = graph_of(h);
	struct exec *x;

	if (!out || !g || g->spoiled)
		return hipErrorInvalidValue;
	x = calloc(1, sizeof *x);
	if (!x)
		return hipErrorOutOfMemory;
	x->graph = graph_copy(g);
	x->flags = flags;
	pthread_mutex_lock(&graph_lock);
	x->next = execs;
	execs = x;
	if (!shuffle)
		shuffle = sim_opt.seed + 1;
	pthread_mutex_unlock(&graph_lock);
	*out = (hipGraphExec_t)x;
	return hipSuccess;
}

hipError_t i_hipGraphInstantiate(hipGraphExec_t *out, hipGraph_t h, hipGraphNode_t *bad, char *log, size_t n)
{
	return i_hipGraphInstantiateWithFlags(out, h, 0);
}

hipError_t i_hipGraphLaunch(hipGraphExec_t h, hipStream_t stream)
{
	struct exec *x = exec_of(h);

	if (!x)
		return hipErrorInvalidValue;
	return launch(x->graph, stream);
}

hipError_t i_hipGraphLaunch_spt(hipGraphExec_t h, hipStream_t stream)
{
	return i_hipGraphLaunch(h, SPT(stream));
}

hipError_t i_hipGraphExecGetFlags(hipGraphExec_t h, unsigned long long *flags)
{
	struct exec *x = exec_of(h);

	if (!x || !flags)
		return hipErrorInvalidValue;
	*flags = x->flags;
	return hipSuccess;
}

hipError_t i_hipGraphExecDestroy(hipGraphExec_t h)
{
	struct exec *x = exec_of(h);

	if (!x)
		return hipErrorInvalidValue;
	pthread_mutex_lock(&graph_lock);
	for (struct exec **p = &execs; *p; p = &(*p)->next)
		if (*p == x) {
			*p = x->next;
			break;
		}
	pthread_mutex_unlock(&graph_lock);
	graph_free(x->graph);
	free(x);
	return hipSuccess;
}

hipError_t i_hipGraphExecUpdate(hipGraphExec_t h, hipGraph_t graph, hipGraphNode_t *bad, hipGraphExecUpdateResult *result)
{
	struct exec *x = exec_of(h);
	struct graph *g = graph_of(graph), *old;

	if (!x || !g || !bad || !result)
		return hipErrorInvalidValue;
	*bad = NULL;
	*result = hipGraphExecUpdateErrorTopologyChanged;
	if (g->n != x->graph->n)
		return hipErrorGraphExecUpdateFailure;
	for (size_t i = 0; i < g->n; i++)
		if (g->nodes[i]->cmd->kind != x->graph->nodes[i]->cmd->kind) {
			*bad = (hipGraphNode_t)g->nodes[i];
			*result = hipGraphExecUpdateErrorNodeTypeChanged;
			return hipErrorGraphExecUpdateFailure;
		}
	old = x->graph;
	x->graph = graph_copy(g);
	graph_free(old);
	*result = hipGraphExecUpdateSuccess;
	return hipSuccess;
}
