/* SPDX-License-Identifier: MIT */
/* Executes a program on the core and on the model; operations on streams and threads. */
#include <stdlib.h>
#include <string.h>

#include "oracle.h"
#include "core/statistics.h"

__thread int cur_thread;

/* ---- model threads ------------------------------------------------------- */

static struct helper {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool started;
	void (*fn)(void *);
	void *arg;
	int id;
} helpers[THREADS];

static void *helper_main(void *arg)
{
	struct helper *h = arg;

	cur_thread = h->id;
	pthread_mutex_lock(&h->lock);
	for (;;) {
		while (!h->fn)
			pthread_cond_wait(&h->cond, &h->lock);
		h->fn(h->arg);
		h->fn = NULL;
		pthread_cond_broadcast(&h->cond);
	}
	return NULL;
}

void on_thread(int thread, void (*fn)(void *), void *arg)
{
	struct helper *h = &helpers[thread];

	if (thread == cur_thread || thread == 0) {
		fn(arg);
		return;
	}
	if (!h->started) {
		h->started = true;
		h->id = thread;
		pthread_mutex_init(&h->lock, NULL);
		pthread_cond_init(&h->cond, NULL);
		pthread_create(&h->thread, NULL, helper_main, h);
	}
	pthread_mutex_lock(&h->lock);
	h->fn = fn;
	h->arg = arg;
	pthread_cond_broadcast(&h->cond);
	while (h->fn)
		pthread_cond_wait(&h->cond, &h->lock);
	pthread_mutex_unlock(&h->lock);
}

/* ---- streams ------------------------------------------------------------- */

/* Where a fence is being recorded on the null stream, the core makes another thread wait before
 * that begins a stream which joins it. Here that thread could not go on, so it begins none. (Nobody
 * can wait for an unseen one.) */
static bool may_begin(const struct world *w, int dev, enum ss_timeline_kind kind)
{
	return kind == SS_TL_NONBLOCKING || !w->s[w->null[dev]].fencing;
}

int stream_at(struct world *w, int slot)
{
	slot %= SLOTS;
	int dev = slot & 1;
	struct ss_timeline *tl;
	int i;

	if (slot < FIRST_USER && dev >= w->cfg.devices)
		return -1;
	if (slot < 2) {
		i = w->null[dev];
		tl = ss_timeline_null(w->core, dev);
	} else if (slot < FIRST_USER) {
		i = w->pt[cur_thread][dev];
		if (i < 0 && !may_begin(w, dev, SS_TL_THREAD))
			return -1;
		tl = ss_timeline_thread(w->core, dev);
		if (i < 0 && tl) {
			i = stream_new(w, dev, SS_TL_THREAD, SS_NATIVE_PER_THREAD);
			if (i < 0) {
				w->full = true;
				return -1;
			}
			w->pt[cur_thread][dev] = i;
			w->thread_used[cur_thread] = true;
			w->s[i].tl = tl;
			for (int t = 0; t < w->nstreams; t++)
				if (t != i && w->s[t].alive && w->s[t].tl == tl &&
				    w->s[t].kind != SS_TL_NULL)
					fail(w, F_STATUS,
					     "a new per-thread stream has the "
					     "timeline of stream %d",
					     t);
		}
	} else {
		i = w->slot[slot];
		if (i < 0 || w->s[i].leaving)
			return -1;
		tl = ss_timeline_find(w->core, w->s[i].native);
	}
	if (i < 0)
		return -1;
	if (!tl || (w->s[i].tl && tl != w->s[i].tl && slot >= 2) ||
	    ss_timeline_device(tl) != w->s[i].dev) {
		fail(w, F_STATUS, "the timeline of stream %d is wrong", i);
		return -1;
	}
	w->s[i].tl = tl;
	return i;
}

static void stream_create(struct world *w, const struct op *op, bool seen)
{
	int slot = FIRST_USER + op->a % (SLOTS - FIRST_USER);
	int dev = op->b % w->cfg.devices;
	enum ss_timeline_kind kind = op->c & 1 ? SS_TL_BLOCKING : SS_TL_NONBLOCKING;

	if (w->slot[slot] >= 0 || w->nstreams > NS - 6 || !may_begin(w, dev, kind))
		return;
	int i = stream_new(w, dev, kind, device_handle(w));
	w->slot[slot] = i;
	if (!seen) {
		w->distrusted = true;
		ss_distrust(w->core);
	}
	w->s[i].tl = ss_timeline_add(w->core, dev, w->s[i].native, kind, seen);
	if (!w->s[i].tl)
		fail(w, F_STATUS, "ss_timeline_add gave nothing");
}

void stream_dies(struct world *w, int i)
{
	struct stream *s = &w->s[i];

	s->alive = false;
	s->capturing = false;
	s->tl = NULL;
	for (int k = FIRST_USER; k < SLOTS; k++)
		if (w->slot[k] == i)
			w->slot[k] = -1;
	for (int t = 0; t < THREADS; t++)
		for (int d = 0; d < DEVS; d++)
			if (w->pt[t][d] == i)
				w->pt[t][d] = -1;
	if (s->kind == SS_TL_BLOCKING || s->kind == SS_TL_NONBLOCKING)
		device_handle_back(w, s->native);
}

static void stream_destroy(struct world *w, int i)
{
	struct stream *s = &w->s[i];

	/* Also inside another call, unless that call uses the stream. */
	if (s->pairs || s->capturing || s->busy)
		return;
	s->busy++;
	s->leaving = true; /* a stream that is being destroyed may not be used */
	w->call.own = (int)(s - w->s) + 1;
	bool must = ss_timeline_retire(w->core, s->tl);
	w->call.own = 0;
	s->busy--;
	if (must) {
		struct clk c = s->vc;
		if (!can_finish(w, &c)) /* the program's own synchronization: it must */
			for (int k = 0; k < w->nstreams; k++)
				w->s[k].stuck = 0;
		finish(w, &c);
		/* HIP promises no wait in a destroy. If the device refused the command that
		 * joins the null stream, nothing more may be relied on. */
		know(w, &c, !w->call.injected);
	}
	stream_dies(w, i);
}

static void thread_exit(struct world *w)
{
	for (int i = 0; i < PAIRS; i++)
		if (w->pair[i].used && w->pair[i].thread == cur_thread)
			return;
	if (w->depth)
		return;
	ss_thread_exit(w->core, false, 0);
	for (int d = 0; d < DEVS; d++)
		if (w->pt[cur_thread][d] >= 0)
			stream_dies(w, w->pt[cur_thread][d]);
}

void host_function(struct world *w, bool runs)
{
	if (runs && !w->in_function)
		ss_host_function_begin();
	if (!runs && w->in_function)
		ss_host_function_end();
	w->in_function = runs;
}

static void kernel(struct world *w, int i, const struct op *op)
{
	bool host = op->flags & OPF_HOST && !w->s[i].unseen;
	struct stream *s = &w->s[i];

	if (host)
		ss_host_begin(w->core);
	enqueue(w, i, CMD_KERNEL, NULL);
	if (op->kind == OP_STALL && !s->stuck)
		s->stuck = s->vc.n[i];
	if (!host)
		return;
	s->host = s->vc.n[i];
	s->busy++;
	ss_host_end(w->core, s->tl, true);
	s->busy--;
}

static void op_stream(struct world *w, const struct op *op)
{
	enum ss_timeline_kind kind = op->c & 1 ? SS_TL_BLOCKING : SS_TL_NONBLOCKING;
	int i;

	switch (op->kind) {
	case OP_STREAM_CREATE: stream_create(w, op, true); return;
	case OP_STREAM_DESTROY:
		i = FIRST_USER + op->a % (SLOTS - FIRST_USER);
		if (w->slot[i] >= 0 && stream_at(w, i) >= 0)
			stream_destroy(w, w->slot[i]);
		return;
	case OP_UNSEEN_STREAM:
		if (w->nstreams > NS - 6)
			return;
		if (!w->distrusted)
			stream_create(w, op, false);
		else if (may_begin(w, op->b % w->cfg.devices, kind) &&
			 (i = stream_new(w, op->b % w->cfg.devices, kind, device_handle(w))) >= 0)
			w->s[i].unseen = true;
		return;
	case OP_THREAD_EXIT: thread_exit(w); return;
	case OP_KERNEL:
	case OP_STALL:
		i = stream_at(w, op->a);
		if (op->flags & OPF_INNER) /* on a stream that nobody saw created */
			for (int k = w->nstreams - 1; k >= 0; k--)
				if (w->s[k].alive && w->s[k].unseen) {
					i = k;
					break;
				}
		if (i < 0 || w->s[i].capturing)
			return;
		kernel(w, i, op);
		return;
	case OP_RELEASE:
		for (i = 0; i < w->nstreams; i++)
			w->s[i].stuck = 0;
		return;
	case OP_ADVANCE:
		for (i = 0; i < w->nstreams; i++)
			if (op->a == 255 || i == op->a % w->nstreams)
				progress(w, i, op->b);
		if (op->flags & OPF_HOST)
			host_function(w, !w->in_function);
		return;
	case OP_CAPTURE:
		i = stream_at(w, op->a);
		if (i < 0 || w->s[i].kind == SS_TL_NULL || w->s[i].pairs || w->s[i].busy)
			return;
		/* The core makes a thread that begins a capture wait for queries of other threads.
		 * Here those could not go on. */
		if (w->querying)
			return;
		w->s[i].capturing = !w->s[i].capturing;
		ss_timeline_set_capturing(w->core, w->s[i].tl, w->s[i].capturing);
		return;
	case OP_DISTRUST:
		w->distrusted = true;
		ss_distrust(w->core);
		return;
	case OP_TICK: w->now_ms += op->n; return;
	case OP_FAIL:
		w->inject[op->a % 10].on = true;
		w->inject[op->a % 10].nth = (uint8_t)(1 + op->b % 3);
		w->inject[op->a % 10].status = SS_ERR_FAILED;
		return;
	}
}

/* ---- programs ------------------------------------------------------------- */

struct job {
	struct world *w;
	const struct op *op;
};

static void run_here(void *arg)
{
	struct job *j = arg;
	struct world *w = j->w;
	struct call saved = w->call;

	memset(&w->call, 0, sizeof(w->call));
	for (int d = 0; w->hook && d < w->cfg.devices; d++)
		device_clock(w, d, true, &w->unhooked[d]);
	if (!op_sync(w, j->op) && !op_memory(w, j->op) && !op_pool(w, j->op))
		op_stream(w, j->op);
	bool hooked = w->call.hooked;
	w->call = saved;
	w->call.hooked |= hooked;
}

void run_op(struct world *w, const struct op *op)
{
	struct job j = {w, op};
	int cur = w->cur;

	if (w->fail_class || w->full)
		return;
	w->cur = (int)(op - w->prog->op);
	w->time++;
	if (w->verbose) {
		fprintf(stderr, "%*s%3d: ", w->depth * 4, "", w->cur);
		op_print(op, stderr);
	}
	on_thread(w->depth || w->cfg.threads <= 1 ? cur_thread : op->thread % w->cfg.threads,
		  run_here, &j);
	w->cur = cur;
}

void run_hook(struct world *w)
{
	int n = w->hook;

	w->hook = 0;
	w->call.hooked = w->nested = true;
	w->depth++;
	for (int i = 0; i < n; i++)
		if (w->prog->op[w->hook_pc + i].kind != OP_HOOK)
			run_op(w, &w->prog->op[w->hook_pc + i]);
	w->depth--;
}

void run_at_nap(struct world *w)
{
	const struct op *op = w->at_nap;

	w->at_nap = NULL;
	if (!op)
		return;
	w->call.hooked = w->nested = true;
	w->depth++;
	run_op(w, op);
	w->depth--;
}

static struct world *cached;

struct world *world_create(const struct program *p, bool verbose)
{
	struct world *w = cached;

	if (!w) {
		w = cached = calloc(1, sizeof(*w));
		w->s = malloc(NS * sizeof(*w->s));
		w->node = malloc(MAXNODES * sizeof(*w->node));
		w->fence = malloc(FENCES * sizeof(*w->fence));
	}
	struct stream *s = w->s;
	struct node *node = w->node;
	struct fence *fence = w->fence;
	memset(w, 0, sizeof(*w));
	w->s = s;
	w->node = node;
	w->fence = fence;
	w->prog = p;
	w->cfg = p->cfg;
	if (oracle_sleeps) {
		w->cfg.vmm = true;
		w->cfg.opt.backing = SS_BACKING_VMM;
	}
	w->verbose = verbose;
	w->rng = p->cfg.seed ^ 0x9e3779b97f4a7c15ull;
	w->next_addr = 0x7f0000000000ull;
	memset(w->slot, -1, sizeof(w->slot));
	memset(w->pt, -1, sizeof(w->pt));
	return w;
}

bool world_start(struct world *w)
{
	struct ss_driver drv = device_driver(w);

	w->core = ss_core_create(&drv, &w->cfg.opt);
	if (!w->core) {
		fail(w, F_STATUS, "ss_core_create gave nothing");
		return false;
	}
	for (int d = 0; d < w->cfg.devices; d++)
		w->null[d] = stream_new(w, d, SS_TL_NULL, NULL);
	pools_fetch(w, -1);
	return w->fail_class == 0;
}

static void exit_here(void *arg)
{
	struct world *w = arg;

	for (int i = 0; i < PAIRS; i++)
		if (w->pair[i].thread == cur_thread)
			pair_finish(w, i);
	if (w->thread_used[cur_thread])
		thread_exit(w);
}

void world_finish(struct world *w)
{
	for (int i = 0; i < w->nstreams; i++) {
		w->s[i].stuck = 0;
		if (w->s[i].alive && w->s[i].capturing && w->s[i].tl) {
			w->s[i].capturing = false;
			ss_timeline_set_capturing(w->core, w->s[i].tl, false);
		}
	}
	memset(w->inject, 0, sizeof(w->inject));
	w->cur = w->prog->count;
	for (int t = 0; t < THREADS; t++)
		if (t < w->cfg.threads || t == 0)
			on_thread(t, exit_here, w);
	if (!w->fail_class && !w->full)
		memory_finish(w);
	const char *broken = w->fail_class ? NULL : ss_check(w->core);
	if (broken)
		fail(w, F_CHECK, "%s", broken);
	w->call.natively_waits = 0;
	host_function(w, false);
	ss_core_destroy(w->core);
	if (!w->fail_class)
		device_check_leaks(w);
}

void run_program(const struct program *p, bool verbose, struct result *out)
{
	struct world *w = world_create(p, verbose);
	int every = 0;

	out->class = 0;
	if (world_start(w)) {
		while (w->pc < p->count && !w->fail_class && !w->full) {
			const struct op *op = &p->op[w->pc++];
			if (op->kind == OP_HOOK) {
				int n = op->a % 4 + 1;
				w->hook_pc = w->pc;
				w->hook_at = op->b & 1;
				if (w->pc + n >= p->count)
					continue;
				w->pc += n;
				w->hook = n;
				op = &p->op[w->pc++];
			}
			run_op(w, op);
			if (w->hook)
				run_hook(w);
			if (!w->fail_class && !w->full)
				sleep_and_wake(w);
			if (w->fail_class || (++every & 7))
				continue;
			const char *broken = ss_check(w->core);
			if (broken)
				fail(w, F_CHECK, "%s", broken);
			check_stats(w);
		}
	}
	if (w->core)
		world_finish(w);
	out->class = w->fail_class;
	memcpy(out->text, w->failed, sizeof(out->text));
}
