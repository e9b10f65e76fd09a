/* SPDX-License-Identifier: MIT */
/* The truth: streams, commands, their order, and what has really finished. */
#include <stdarg.h>
#include <string.h>

#include "oracle.h"

void fail(struct world *w, int class, const char *fmt, ...)
{
	va_list ap;

	/* A model without room no longer knows what is true. */
	if (w->fail_class || w->full)
		return;
	w->fail_class = class;
	va_start(ap, fmt);
	int n = snprintf(w->failed, sizeof(w->failed), "op %d: ", w->cur);
	vsnprintf(w->failed + n, sizeof(w->failed) - (size_t)n, fmt, ap);
	va_end(ap);
}

int stream_new(struct world *w, int dev, enum ss_timeline_kind kind, void *native)
{
	if (w->nstreams == NS)
		return -1;
	struct stream *s = &w->s[w->nstreams];
	memset(s, 0, offsetof(struct stream, kern));
	s->used = s->alive = true;
	s->dev = dev;
	s->kind = kind;
	s->native = native;
	s->thread = cur_thread;
	s->kern[0] = s->node[0] = 0;
	return w->nstreams++;
}

static bool joins_null(const struct stream *s)
{
	return s->kind == SS_TL_BLOCKING || s->kind == SS_TL_THREAD;
}

static void implicit(const struct world *w, const struct stream *s, struct clk *vc)
{
	if (s->kind == SS_TL_NULL) {
		for (int i = 0; i < w->nstreams; i++)
			if (w->s[i].alive && w->s[i].dev == s->dev && joins_null(&w->s[i]))
				clk_join(vc, &w->s[i].vc);
	} else if (joins_null(s)) {
		clk_join(vc, &w->s[w->null[s->dev]].vc);
	}
}

void stream_next(const struct world *w, int s, struct clk *out)
{
	*out = w->s[s].vc;
	implicit(w, &w->s[s], out);
}

void device_clock(const struct world *w, int dev, bool dead, struct clk *out)
{
	memset(out, 0, sizeof(*out));
	for (int i = 0; i < w->nstreams; i++)
		if (w->s[i].dev == dev && (dead || w->s[i].alive))
			clk_join(out, &w->s[i].vc);
}

int enqueue(struct world *w, int i, enum cmd cmd, const struct clk *after)
{
	struct stream *s = &w->s[i];
	int pos = s->vc.n[i] + 1;

	if (pos >= MAXPOS || w->nodes >= MAXNODES) {
		w->full = true;
		return s->vc.n[i];
	}
	if (after)
		clk_join(&s->vc, after);
	if (cmd == CMD_KERNEL || cmd == CMD_MARKER)
		implicit(w, s, &s->vc);
	s->vc.n[i] = (uint16_t)pos;
	s->kern[pos] = cmd == CMD_KERNEL ? (uint16_t)pos : s->kern[pos - 1];
	s->node[pos] = s->node[pos - 1];
	if (cmd != CMD_VIRTUAL) {
		struct node *n = &w->node[++w->nodes - 1];
		n->vc = s->vc;
		n->time = ++w->time;
		s->node[pos] = (uint16_t)w->nodes;
	}
	if (cmd == CMD_KERNEL)
		kernel_touches(w, i);
	return pos;
}

bool clk_done(const struct world *w, const struct clk *c)
{
	int late = 0;

	for (int i = 0; i < NS; i++)
		late |= c->n[i] > w->done.n[i];
	return !late;
}

bool can_finish(const struct world *w, const struct clk *c)
{
	for (int i = 0; i < w->nstreams; i++) {
		uint16_t stuck = w->s[i].stuck;
		if (stuck && w->done.n[i] < stuck && c->n[i] >= stuck)
			return false;
	}
	return true;
}

void finish(struct world *w, const struct clk *c)
{
	clk_join(&w->done, c);
}

void know(struct world *w, const struct clk *c, bool app)
{
	clk_join(&w->H, c);
	if (app)
		clk_join(&w->app, c);
	for (int i = 0; i < BLOCKS; i++) {
		struct block *b = &w->blk[i];
		if (b->used && b->stream >= 0 && !b->host_time && w->app.n[b->stream] >= b->pos)
			b->host_time = ++w->time;
	}
}

void progress(struct world *w, int i, int k)
{
	struct stream *s = &w->s[i];
	int end = s->vc.n[i];

	for (int pos = w->done.n[i] + 1; pos <= end && k > 0; pos++) {
		if (s->node[pos] != s->node[pos - 1]) {
			const struct clk *vc = &w->node[s->node[pos] - 1].vc;
			if (!can_finish(w, vc))
				return;
			finish(w, vc);
			k--;
		}
		w->done.n[i] = (uint16_t)pos;
	}
}

bool kernels_only(const struct world *w, struct clk *c)
{
	bool any = false;

	for (int i = 0; i < w->nstreams; i++) {
		uint16_t k = c->n[i] ? w->s[i].kern[c->n[i]] : 0;
		c->n[i] = k > w->H.n[i] ? k : 0;
		any |= c->n[i] != 0;
	}
	return any;
}
