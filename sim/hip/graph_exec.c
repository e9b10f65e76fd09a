/* SPDX-License-Identifier: MIT */
/*
 * Graphs as handles, executable graphs, and their launches. An executable is a copy of its graph;
 * a launch submits clones of the nodes' commands.
 *
 * Locks: exec_lock guards the list of executables. Nothing is taken inside it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "device/command.h"
#include "device/options.h"
#include "device/random.h"
#include "hip/entry_points.h"
#include "hip/graph.h"
#include "hip/graph_exec.h"
#include "hip/submit.h"
#include "hip/virtual_memory.h"

struct exec {
	struct graph *graph;
	unsigned long long flags;
	unsigned long long maps; /* when it was instantiated */
	struct exec *next;
};

static pthread_mutex_t exec_lock = PTHREAD_MUTEX_INITIALIZER;
static struct exec *execs;
static atomic_ullong launches; /* so far; each has an order of its own */

static struct exec *exec_of(hipGraphExec_t h)
{
	struct exec *x;

	pthread_mutex_lock(&exec_lock);
	for (x = execs; x; x = x->next)
		if (x == (struct exec *)h)
			break;
	pthread_mutex_unlock(&exec_lock);
	return x;
}

struct node *node_in_exec(hipGraphExec_t h, hipGraphNode_t node)
{
	struct exec *x = exec_of(h);

	for (size_t i = 0; x && i < x->graph->n; i++)
		if (x->graph->nodes[i]->origin == (struct node *)node)
			return x->graph->nodes[i];
	return NULL;
}

static hipError_t launch(struct graph *g, hipStream_t h, bool spoiled);

static hipError_t launch_node(struct node *n, hipStream_t h, bool spoiled)
{
	struct sim_command *c;

	switch (n->type) {
	case NODE_GRAPH: return launch(n->child, h, spoiled);
	case NODE_EVENT_RECORD: return i_hipEventRecord(n->event, h);
	case NODE_EVENT_WAIT: return i_hipStreamWaitEvent(h, n->event, 0);
	default:
		if (n->disabled)
			return hipSuccess;
		c = sim_command_clone(n->cmd);
		if (n->type == NODE_FILL && spoiled)
			c->fill.value = 0;
		return submit(h, c, false);
	}
}

/* Submits the nodes in one legal order, which the seed chooses, since the branches of a graph
 * promise no order. */
static hipError_t launch(struct graph *g, hipStream_t h, bool spoiled)
{
	uint64_t shuffle = sim_opt.seed + ((uint64_t)atomic_fetch_add(&launches, 1) << 32) + 1;
	size_t left = g->n;
	bool *done = calloc(g->n + 1, sizeof *done);
	hipError_t e = hipSuccess;

	for (size_t i = 0; i < g->n; i++)
		g->nodes[i]->index = i;
	while (left && !e) {
		size_t ready = 0;
		struct node *n = NULL;

		for (size_t i = 0; i < g->n; i++) {
			bool ok = !done[i];

			for (size_t d = 0; d < g->nodes[i]->dep_count && ok; d++)
				ok = done[g->nodes[i]->deps[d]->index];
			/* Reservoir sampling: every ready node is equally likely. */
			if (ok && sim_random(&shuffle) % ++ready == 0)
				n = g->nodes[i];
		}
		if (!n) {
			e = hipErrorInvalidValue; /* a cycle */
			break;
		}
		done[n->index] = true;
		left--;
		e = launch_node(n, h, spoiled);
	}
	free(done);
	return e;
}

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

hipError_t i_hipGraphInstantiateWithFlags(hipGraphExec_t *out, hipGraph_t h,
					  unsigned long long flags)
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
	x->maps = virtual_memory_maps();
	pthread_mutex_lock(&exec_lock);
	x->next = execs;
	execs = x;
	pthread_mutex_unlock(&exec_lock);
	*out = (hipGraphExec_t)x;
	return hipSuccess;
}

hipError_t i_hipGraphInstantiate(hipGraphExec_t *out, hipGraph_t h, hipGraphNode_t *bad, char *log,
				 size_t n)
{
	return i_hipGraphInstantiateWithFlags(out, h, 0);
}

hipError_t i_hipGraphLaunch(hipGraphExec_t h, hipStream_t stream)
{
	struct exec *x = exec_of(h);

	if (!x)
		return hipErrorInvalidValue;
	return launch(x->graph, stream,
		      sim_opt.quirk[SIM_Q_MAP_SPOILS_GRAPHS] && x->maps != virtual_memory_maps());
}

hipError_t i_hipGraphExecDestroy(hipGraphExec_t h)
{
	struct exec *x = exec_of(h);

	if (!x)
		return hipErrorInvalidValue;
	pthread_mutex_lock(&exec_lock);
	for (struct exec **p = &execs; *p; p = &(*p)->next)
		if (*p == x) {
			*p = x->next;
			break;
		}
	pthread_mutex_unlock(&exec_lock);
	graph_free(x->graph);
	free(x);
	return hipSuccess;
}

hipError_t i_hipGraphExecUpdate(hipGraphExec_t h, hipGraph_t graph, hipGraphNode_t *bad,
				hipGraphExecUpdateResult *result)
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
		if (g->nodes[i]->type != x->graph->nodes[i]->type) {
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
