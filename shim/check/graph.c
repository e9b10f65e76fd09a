/* SPDX-License-Identifier: MIT */
/*
 * The operands of the nodes of graphs, and so the operands of a launch of a graph.
 *
 * When a graph is instantiated, its nodes are read: kernels and memsets as the runtime describes
 * them, and copies as the program made them. The runtime describes copies wrongly (releases differ:
 * nothing for copies of hipMemcpyAsync, or their state before a change), so this file notes copies
 * when they are added, captured or changed. From then on each call that changes the executable
 * graph is seen. A node that cannot be read makes the graph unknown.
 *
 * Locks: `lock`; the lock of core/check is taken inside it, and so is the lock of host_memory.c. No
 * call of the runtime is made under `lock`.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "shim/check/init.h"
#include "shim/check/inside.h"
#include "shim/check/kernel_args.h"
#include "shim/check/operand.h"
#include "shim/check/skips.h"
#include "shim/process/graph_nodes.h"
#include "shim/process/real.h"

/* A node, and its operands. */
struct node {
	hipGraphNode_t key;
	bool disabled; /* by hipGraphNodeSetEnabled */
	struct ss_operands uses;
	UT_hash_handle hh;
};

/* A graph, with only its copies, or an executable graph, with all nodes that use memory. */
struct graph {
	const void *key;
	/* Number of the capture that made it, from the runtime; 0: none */
	unsigned long long capture;
	struct node *nodes;
	/* The graph may wait for anything, and tell the host anything */
	bool opaque;
	bool unread; /* some nodes cannot be read */
	/* Stream of the last launch, which may have been destroyed */
	const struct ss_timeline *last;
	UT_hash_handle hh;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct graph *graphs, *execs;

static void nodes_drop(struct node **nodes)
{
	struct node *n, *next;

	HASH_ITER(hh, *nodes, n, next) {
		HASH_DEL(*nodes, n);
		ss_operands_drop(&n->uses);
		free(n);
	}
}

/* The lock is held. */
static struct graph *graph_find(struct graph *list, const void *key)
{
	struct graph *g = NULL;

	HASH_FIND_PTR(list, &key, g);
	return g;
}

static void graph_drop(struct graph **list, const void *key)
{
	struct graph *g = graph_find(*list, key);

	if (!g)
		return;
	HASH_DEL(*list, g);
	nodes_drop(&g->nodes);
	free(g);
}

/* Makes a new record in place of the old facts about this handle. NULL: host memory is out. */
static struct graph *graph_new(struct graph **list, const void *key)
{
	struct graph *g = calloc(1, sizeof(*g));

	graph_drop(list, key);
	if (!g)
		return NULL;
	g->key = key;
	HASH_ADD_PTR(*list, key, g);
	if (SS_HASH_HAS(g))
		return g;
	free(g);
	return NULL;
}

static struct node *node_find(const struct graph *g, hipGraphNode_t key)
{
	struct node *n = NULL;

	if (g)
		HASH_FIND_PTR(g->nodes, &key, n);
	return n;
}

/* Adds a node; replaces the uses of a node that exists already. */
static struct node *node_put(struct graph *g, hipGraphNode_t key, const struct ss_operands *uses)
{
	struct node *n = node_find(g, key);

	if (!n) {
		n = calloc(1, sizeof(*n));
		if (!n)
			return NULL;
		n->key = key;
		HASH_ADD_PTR(g->nodes, key, n);
		if (!SS_HASH_HAS(n)) {
			free(n);
			return NULL;
		}
	}
	ss_operands_copy(&n->uses, uses);
	return n;
}

/* ---- graphs --------------------------------------------------------------------- */

void ss_check_graph_new(hipGraph_t graph)
{
	pthread_mutex_lock(&lock);
	(void)graph_new(&graphs, graph);
	pthread_mutex_unlock(&lock);
}

void ss_check_graph_gone(hipGraph_t graph)
{
	pthread_mutex_lock(&lock);
	graph_drop(&graphs, graph);
	pthread_mutex_unlock(&lock);
}

/* The nodes of a copied graph have the order of the original nodes. */
void ss_check_graph_copied(hipGraph_t from, hipGraph_t to)
{
	size_t count, copies;
	bool good, also_good;
	hipGraphNode_t *nodes = ss_graph_nodes(from, &count, &good);
	hipGraphNode_t *copy = ss_graph_nodes(to, &copies, &also_good);
	const struct graph *old;
	struct graph *g;

	good = good && also_good && count == copies;
	for (size_t i = 0; good && i < count; i++)
		good = ss_graph_node_type(nodes[i]) == ss_graph_node_type(copy[i]);
	pthread_mutex_lock(&lock);
	g = graph_new(&graphs, to);
	old = graph_find(graphs, from);
	for (size_t i = 0; g && good && i < count; i++) {
		const struct node *n = node_find(old, nodes[i]);

		if (n)
			(void)node_put(g, copy[i], &n->uses);
	}
	pthread_mutex_unlock(&lock);
	free(nodes);
	free(copy);
}

void ss_check_child_added(hipGraphNode_t node, hipGraph_t child)
{
	hipGraph_t copy = NULL;

	if (REAL(hipGraphChildGraphNodeGetGraph, node, &copy) == hipSuccess && copy)
		ss_check_graph_copied(child, copy);
}

void ss_check_node_is(hipGraph_t graph, hipGraphNode_t node, const struct ss_operands *uses)
{
	struct graph *g, *next;

	pthread_mutex_lock(&lock);
	if (graph) {
		g = graph_find(graphs, graph);
		if (g)
			(void)node_put(g, node, uses);
	} else {
		HASH_ITER(hh, graphs, g, next)
			if (node_find(g, node))
				(void)node_put(g, node, uses);
	}
	pthread_mutex_unlock(&lock);
}

/* The next captured command will depend on the command that was captured last. */
void ss_check_captured(hipStream_t stream, const struct ss_operands *uses)
{
	hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
	unsigned long long capture = 0;
	const hipGraphNode_t *last = NULL;
	hipGraph_t graph = NULL;
	size_t count = 0;
	struct graph *g;

	if (REAL(hipStreamGetCaptureInfo_v2, stream, &status, &capture, &graph, &last, &count) !=
		    hipSuccess ||
	    status != hipStreamCaptureStatusActive || !graph || count != 1)
		return;
	pthread_mutex_lock(&lock);
	g = graph_find(graphs, graph);
	/* An earlier graph may have had the handle, and nodes at the same addresses. */
	if (!g || g->capture != capture)
		g = graph_new(&graphs, graph);
	if (g) {
		g->capture = capture;
		(void)node_put(g, last[0], uses);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- executable graphs ------------------------------------------------------------- */

/* The function is a host function, or one of a module. */
static void read_kernel(const hipKernelNodeParams *p, struct ss_operands *uses)
{
	ss_operands_of_kernel(uses, p->func, ss_kernel_is_host(p->func), p->kernelParams, p->extra);
}

/* Reads the first row: the runtime does not describe the rest of a captured memset of three
 * dimensions. */
static void read_memset(const hipMemsetParams *p, struct ss_operands *uses)
{
	struct ss_operand o = {
		.ptr = p->dst,
		.size = 1,
		.kind = SS_OPERAND_RANGE,
		.access = SS_WRITES,
		.in_rows = true,
		.rows = {.width = (uint64_t)p->width * p->elementSize, .rows = 1, .slices = 1},
	};

	if (p->width && p->height && p->elementSize) {
		o.origin = ss_check_value_of(p->dst, p->value, p->elementSize);
		ss_operand_add(uses, o);
	}
}

static void read_graph(struct graph *x, hipGraph_t graph);

static void read_node(struct graph *x, hipGraph_t graph, hipGraphNode_t node)
{
	int type = ss_graph_node_type(node);
	struct ss_operands uses = {0};
	hipKernelNodeParams kernel = {0};
	hipMemsetParams fill = {0};
	hipGraph_t child = NULL;
	const struct node *n;
	bool good = true;

	switch (type) {
	case SS_NODE_KERNEL:
		good = REAL(hipGraphKernelNodeGetParams, node, &kernel) == hipSuccess;
		if (good)
			read_kernel(&kernel, &uses);
		break;
	case SS_NODE_FILL:
		good = REAL(hipGraphMemsetNodeGetParams, node, &fill) == hipSuccess;
		if (good)
			read_memset(&fill, &uses);
		break;
	case SS_NODE_GRAPH:
		good = REAL(hipGraphChildGraphNodeGetGraph, node, &child) == hipSuccess;
		if (good)
			read_graph(x, child);
		break;
	case SS_NODE_HOST:
	case SS_NODE_EVENT_WAIT: x->opaque = true; break;
	case SS_NODE_EMPTY:
	case SS_NODE_EVENT_RECORD: /* such an event never has a clock */
	case SS_NODE_ALLOC:
	case SS_NODE_FREE: return;
	default: /* copies, of which there are several kinds */
		pthread_mutex_lock(&lock);
		n = node_find(graph_find(graphs, graph), node);
		good = n != NULL;
		if (n)
			ss_operands_copy(&uses, &n->uses);
		pthread_mutex_unlock(&lock);
	}
	if (!good)
		x->unread = x->opaque = true;
	else if (uses.count || uses.lost)
		x->unread |= !node_put(x, node, &uses);
	ss_operands_drop(&uses);
}

static void read_graph(struct graph *x, hipGraph_t graph)
{
	size_t count;
	bool good;
	hipGraphNode_t *nodes = ss_graph_nodes(graph, &count, &good);

	if (!good)
		x->unread = x->opaque = true;
	for (size_t i = 0; nodes && i < count; i++)
		read_node(x, graph, nodes[i]);
	free(nodes);
}

void ss_check_exec_made(hipGraphExec_t exec, hipGraph_t graph)
{
	struct graph now = {0}, *x;

	read_graph(&now, graph);
	pthread_mutex_lock(&lock);
	x = graph_new(&execs, exec);
	if (x) {
		x->nodes = now.nodes;
		x->opaque = now.opaque;
		x->unread = now.unread;
	} else {
		nodes_drop(&now.nodes);
	}
	pthread_mutex_unlock(&lock);
}

void ss_check_exec_gone(hipGraphExec_t exec)
{
	ss_check_event_end(ss_check_state, exec);
	pthread_mutex_lock(&lock);
	graph_drop(&execs, exec);
	pthread_mutex_unlock(&lock);
}

void ss_check_exec_unknown(hipGraphExec_t exec)
{
	struct graph *x;

	pthread_mutex_lock(&lock);
	x = graph_find(execs, exec);
	if (x)
		x->unread = x->opaque = true;
	pthread_mutex_unlock(&lock);
}

/* The node has other operands from now on. A node that used no memory is not known by its
 * handle. */
void ss_check_exec_node_is(hipGraphExec_t exec, hipGraphNode_t node, const struct ss_operands *uses)
{
	struct graph *x;

	pthread_mutex_lock(&lock);
	x = graph_find(execs, exec);
	if (x && !node_put(x, node, uses))
		x->unread = x->opaque = true;
	pthread_mutex_unlock(&lock);
}

void ss_check_exec_kernel(hipGraphExec_t exec, hipGraphNode_t node, const hipKernelNodeParams *p)
{
	struct ss_operands uses = {0};

	read_kernel(p, &uses);
	ss_check_exec_node_is(exec, node, &uses);
	ss_operands_drop(&uses);
}

void ss_check_exec_enabled(hipGraphExec_t exec, hipGraphNode_t node, bool enabled)
{
	struct node *n;

	pthread_mutex_lock(&lock);
	n = node_find(graph_find(execs, exec), node);
	if (n)
		n->disabled = !enabled;
	pthread_mutex_unlock(&lock);
}

/* The nodes of a launch may run beside each other, and all run between the work before and the work
 * after the launch on its stream. A graph may wait for its own last launch, on any stream. */
void ss_check_graph(struct ss_timeline *tl, hipGraphExec_t exec)
{
	bool opaque = false, talk = false, unread = false;
	struct node *n, *next;
	struct graph *x;

	if (!tl || ss_timeline_capturing(tl))
		return;
	ss_init_launched();
	pthread_mutex_lock(&lock);
	x = graph_find(execs, exec);
	unread = !x || x->unread;
	opaque = !x || x->opaque;
	if (x)
		HASH_ITER(hh, x->nodes, n, next) {
			if (n->disabled)
				continue;
			talk |= ss_operands_talk(&n->uses);
			unread |= n->uses.lost;
		}
	if (unread)
		ss_check_skip_graph();
	if (opaque)
		ss_check_stream_opaque(tl, true, false);
	else if (talk)
		ss_check_stream_held(tl);
	if (x && x->last != tl)
		ss_check_wait(ss_check_state, tl, exec);
	if (x)
		HASH_ITER(hh, x->nodes, n, next)
			if (!n->disabled)
				ss_operands_use(tl, &n->uses);
	ss_check_record_begin(ss_check_state, exec);
	ss_check_record_end(ss_check_state, exec, tl, true);
	if (x)
		x->last = tl;
	if (opaque || talk)
		ss_check_stream_opaque(tl, false, true);
	pthread_mutex_unlock(&lock);
}
