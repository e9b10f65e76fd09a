/* SPDX-License-Identifier: MIT */
/*
 * Executes watched calls: records, waits, synchronizations, queries. Each has three steps (begin,
 * the real call, end), and any operation may happen between them.
 */
#include <string.h>

#include "core/order/watched.h"
#include "oracle.h"

static bool on_event(int kind)
{
	return kind == OP_RECORD || kind == OP_WAIT || kind == OP_EVENT_SYNC ||
	       kind == OP_EVENT_QUERY;
}

static bool on_stream(int kind)
{
	return kind == OP_RECORD || kind == OP_WAIT || kind == OP_STREAM_SYNC ||
	       kind == OP_STREAM_QUERY;
}

static bool is_query(int kind)
{
	return kind == OP_EVENT_QUERY || kind == OP_STREAM_QUERY;
}

static bool capturing(const struct world *w, int dev, bool blocking_only)
{
	for (int i = 0; i < w->nstreams; i++)
		if (w->s[i].alive && w->s[i].capturing && w->s[i].dev == dev &&
		    !(blocking_only && w->s[i].kind == SS_TL_NONBLOCKING))
			return true;
	return false;
}

/* What the call would wait for. */
static void target(const struct world *w, const struct pair *p, struct clk *c)
{
	memset(c, 0, sizeof(*c));
	if (p->kind == OP_DEVICE_SYNC)
		device_clock(w, p->dev, true, c);
	else if (on_stream(p->kind))
		if (w->s[p->stream].kind == SS_TL_NULL && p->kind != OP_STREAM_QUERY)
			stream_next(w, p->stream, c);
		else
			*c = w->s[p->stream].vc;
	else if (w->ev[p->event].recorded && !w->ev[p->event].captured)
		*c = w->ev[p->event].vc;
}

/* The application call in progress joins the null stream of a device, or waits. */
static void flags(struct world *w, const struct pair *p)
{
	bool null = on_stream(p->kind) && w->s[p->stream].kind == SS_TL_NULL;

	if (null && !capturing(w, p->dev, true))
		w->call.joining = p->dev + 1;
	if (p->kind == OP_DEVICE_SYNC) {
		w->call.natively_waits = p->dev + 1;
		if (!capturing(w, p->dev, true))
			w->call.joining = p->dev + 1;
	}
}

static bool begin(struct world *w, struct pair *p, const struct op *op, int kind, bool now)
{
	struct clk c;

	memset(p, 0, sizeof(*p));
	p->kind = kind;
	p->thread = cur_thread;
	p->flags = op->flags;
	p->event = p->stream = -1;
	p->dev = op->b % w->cfg.devices;
	if (on_event(kind)) {
		p->event = op->a % EVENTS;
		if (!w->ev[p->event].used)
			return false;
		if (kind != OP_RECORD && w->ev[p->event].captured)
			return false;
	}
	if (on_stream(kind)) {
		if ((p->stream = stream_at(w, op->b)) < 0)
			return false;
		p->dev = w->s[p->stream].dev;
		if (w->s[p->stream].capturing && kind != OP_RECORD)
			return false;
		if (w->s[p->stream].kind == SS_TL_NULL && capturing(w, p->dev, true))
			return false;
	}
	if (kind == OP_DEVICE_SYNC && capturing(w, p->dev, false))
		return false;
	target(w, p, &c);
	if (now && kind != OP_RECORD && kind != OP_WAIT && !is_query(kind) && !can_finish(w, &c))
		return false; /* the program would hang */
	p->used = true;
	p->sure = c;
	for (int d = 0; d < w->cfg.devices; d++)
		device_clock(w, d, true, &p->all[d]);
	if (p->event >= 0)
		w->ev[p->event].pairs++;
	if (p->stream >= 0)
		w->s[p->stream].pairs++;

	void *e = p->event >= 0 ? w->ev[p->event].native : NULL;
	struct ss_timeline *tl = p->stream >= 0 ? w->s[p->stream].tl : NULL;
	struct call saved = w->call;
	flags(w, p);
	w->call.own = kind == OP_STREAM_SYNC || kind == OP_STREAM_QUERY ? p->stream + 1 : 0;
	switch (kind) {
	case OP_RECORD: p->token = ss_record_begin(w->core, e, tl); break;
	case OP_WAIT: p->token = ss_wait_begin(w->core, e, tl); break;
	case OP_EVENT_SYNC: p->token = ss_event_wait_begin(w->core, e); break;
	case OP_EVENT_QUERY: p->token = ss_event_sync_begin(w->core, e); break;
	case OP_STREAM_SYNC: p->token = ss_stream_sync_begin(w->core, tl); break;
	case OP_STREAM_QUERY: p->token = ss_stream_query_begin(w->core, tl); break;
	default: p->token = ss_device_sync_begin(w->core, p->dev);
	}
	if (kind == OP_RECORD) /* it is no wait, and that part of its token is not filled in */
		p->token.waiting = (struct ss_waiting){0};
	clk_join(&p->sure, &w->call.fenced);
	if (w->call.injected) /* a device that records nothing synchronizes nothing */
		p->flags |= OPF_FAILS;
	w->call = saved;
	return true;
}

/* The real call takes effect. */
static void real(struct world *w, struct pair *p)
{
	struct event *ev = p->event >= 0 ? &w->ev[p->event] : NULL;
	struct clk c;

	if (!p->used || p->real)
		return;
	if (p->flags & OPF_FAILS) {
		p->real = true;
		return;
	}
	switch (p->kind) {
	case OP_RECORD:
		ev->captured = w->s[p->stream].capturing;
		if (!ev->captured) {
			enqueue(w, p->stream, CMD_MARKER, NULL);
			ev->vc = w->s[p->stream].vc;
		}
		ev->recorded = p->ok = p->real = true;
		return;
	case OP_WAIT:
		p->real = true;
		p->ok = !ev->captured && !w->s[p->stream].capturing;
		if (p->ok)
			enqueue(w, p->stream, CMD_WAIT, ev->recorded ? &ev->vc : NULL);
		return;
	}
	if (ev && ev->captured) {
		p->real = true;
		return;
	}
	target(w, p, &c);
	if (is_query(p->kind)) {
		p->real = true;
		p->ok = clk_done(w, &c) && !(p->stream >= 0 && w->s[p->stream].capturing);
	} else if (can_finish(w, &c)) {
		p->real = p->ok = true;
		finish(w, &c);
	}
	p->vc = c;
}

/* A threshold that the program set is exact: memory below it does not go back. */
static uint64_t kept(const struct world *w, int pool)
{
	const struct pool *p = &w->pool[pool];
	uint64_t v = 0;

	if (!p->used || p->dying || !p->threshold_set)
		return 0;
	ss_pool_get_attr(p->p, SS_ATTR_RESERVED_CURRENT, &v);
	return v < p->threshold ? v : p->threshold;
}

static void sync_end(struct world *w, const struct pair *p)
{
	struct ss_token token = p->token;
	uint64_t keep[ALLP];

	for (int i = 0; i < ALLP; i++)
		keep[i] = kept(w, i);
	ss_sync_end(w->core, &token, p->ok, !is_query(p->kind) && !(p->flags & OPF_NOWAIT));
	for (int i = 0; i < ALLP && !w->call.hooked; i++)
		if (kept(w, i) < keep[i] && !w->pool[i].trimmed)
			fail(w, F_RELEASE,
			     "a synchronization left pool %d %lu bytes, its threshold "
			     "keeps %lu",
			     i, (unsigned long)kept(w, i), (unsigned long)keep[i]);
}

static void end(struct world *w, struct pair *p)
{
	struct call saved = w->call;
	struct pair ending;

	if (!p->used)
		return;
	real(w, p);
	if (p->ok && p->kind != OP_RECORD && p->kind != OP_WAIT) {
		/* Commands that others enqueued after the call began must not be relied on. */
		for (int i = 0; i < NS; i++)
			if (p->vc.n[i] > p->sure.n[i])
				p->vc.n[i] = p->sure.n[i];
		know(w, &p->vc, true);
	}
	flags(w, p);
	/* An operation that runs in a call of the driver may begin another pair in this place. */
	ending = *p;
	w->call.since = ending.real ? ending.all : NULL;
	if (p->event >= 0)
		w->ev[p->event].pairs--;
	if (p->stream >= 0)
		w->s[p->stream].pairs--;
	p->used = false;
	if (ending.kind == OP_RECORD)
		ss_record_end(w->core, &ending.token, ending.ok);
	else if (ending.kind == OP_WAIT)
		ss_wait_end(w->core, &ending.token, ending.ok);
	else
		sync_end(w, &ending);
	w->call = saved;
}

void pair_finish(struct world *w, int slot)
{
	end(w, &w->pair[slot]);
}

static void event_create(struct world *w, const struct op *op)
{
	struct event *ev = &w->ev[op->a % EVENTS];

	if (ev->used)
		return;
	memset(ev, 0, sizeof(*ev));
	ev->used = true;
	ev->native = device_handle(w);
	ss_event_add(w->core, ev->native);
}

static void event_destroy(struct world *w, const struct op *op)
{
	struct event *ev = &w->ev[op->a % EVENTS];

	if (!ev->used || ev->pairs)
		return;
	ss_event_forget(w->core, ev->native);
	device_handle_back(w, ev->native);
	ev->used = false;
}

/* The event is recorded by a launch, a graph node or another process. */
static void unseen_record(struct world *w, const struct op *op, bool taint)
{
	struct event *ev = &w->ev[op->a % EVENTS];
	int s = ev->used ? stream_at(w, op->b) : -1;

	if (s < 0 || w->s[s].capturing)
		return;
	if (!taint && !ev->sticky && !w->distrusted)
		return;
	if (w->s[s].kind == SS_TL_NULL && capturing(w, w->s[s].dev, true))
		return;
	if (taint) {
		ev->sticky |= op->c & 1;
		ss_event_taint(w->core, ev->native, op->c & 1);
	}
	if (w->fail_class)
		return;
	enqueue(w, s, CMD_KERNEL, NULL);
	ev->vc = w->s[s].vc;
	ev->recorded = true;
	ev->captured = false;
}

bool op_sync(struct world *w, const struct op *op)
{
	static const uint8_t kinds[] = {OP_RECORD,       OP_WAIT,        OP_EVENT_SYNC,
					OP_STREAM_SYNC,  OP_DEVICE_SYNC, OP_EVENT_QUERY,
					OP_STREAM_QUERY, OP_RECORD};
	struct pair now, *p = &w->pair[op->d % PAIRS];

	switch (op->kind) {
	case OP_RECORD:
	case OP_WAIT:
	case OP_EVENT_SYNC:
	case OP_EVENT_QUERY:
	case OP_STREAM_SYNC:
	case OP_STREAM_QUERY:
	case OP_DEVICE_SYNC:
		if (begin(w, &now, op, op->kind, true))
			end(w, &now);
		return true;
	case OP_BEGIN:
		if (!p->used)
			begin(w, p, op, kinds[op->c % 8], false);
		return true;
	case OP_REAL:
		if (p->thread == cur_thread)
			real(w, p);
		return true;
	case OP_END:
		if (p->thread == cur_thread)
			end(w, p);
		return true;
	case OP_EVENT_CREATE: event_create(w, op); return true;
	case OP_EVENT_DESTROY: event_destroy(w, op); return true;
	case OP_TAINT:
	case OP_UNSEEN_RECORD: unseen_record(w, op, op->kind == OP_TAINT); return true;
	}
	return false;
}
