/* SPDX-License-Identifier: MIT */
/* A sample of the processes that have a live page. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/top.h"
#include "core/base/deadline.h"

struct scan {
	const struct ss_top_filter *filter;
	struct ss_top_sample *sample;
	bool out_of_memory;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static bool is_wanted(const struct ss_top_filter *f, uint32_t pid)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->pid[i] == pid)
			return true;
	return f->count == 0;
}

static void add(const char *path, const struct ss_live_name *name, enum ss_live_process state,
		void *arg)
{
	struct scan *s = arg;
	struct ss_top_sample *to = s->sample;

	if (!is_wanted(s->filter, name->pid))
		return;
	struct ss_top_process **more = realloc(to->process, (to->count + 1) * sizeof(*more));
	if (more) {
		to->process = more;
		more[to->count] = calloc(1, sizeof(**more));
	}
	if (!more || !more[to->count]) {
		s->out_of_memory = true;
		return;
	}
	struct ss_top_process *p = more[to->count++];
	p->name = *name;
	p->state = state;
	snprintf(p->path, sizeof(p->path), "%s", path);
}

static int by_pid(const void *a, const void *b)
{
	const struct ss_top_process *x = *(struct ss_top_process *const *)a;
	const struct ss_top_process *y = *(struct ss_top_process *const *)b;

	if (x->name.pid != y->name.pid)
		return x->name.pid < y->name.pid ? -1 : 1;
	return x->name.space < y->name.space ? -1 : x->name.space > y->name.space;
}

static void read_page(struct ss_top_process *p)
{
	p->result = p->state == SS_LIVE_RUNS ?
			    ss_live_read_process(p->path, p->name.pid, &p->page) :
			    ss_live_read(p->path, &p->page);
}

#define NAP_MS 2

/* Asks all processes, then looks again and again at those that have not answered. */
static void refresh(struct ss_top_sample *s, unsigned wait_ms)
{
	static const struct timespec nap = {.tv_nsec = NAP_MS * 1000000};
	struct ss_deadline end = ss_deadline_in(ss_monotonic_ns(), wait_ms * 1000000ull,
						wait_ms / NAP_MS + 1);
	/* Differs from that of the last sample, also where the clock stands still */
	static uint32_t samples;
	uint32_t request = ((uint32_t)(now_ns() >> 10) + 2 * samples++) | 1;
	size_t open = 0;

	for (size_t i = 0; i < s->count; i++)
		if (!ss_live_ask_refresh(s->process[i]->path, request))
			s->process[i]->result = SS_LIVE_GONE;
		else
			open++;
	for (;;) {
		bool last = !open || ss_deadline_over(&end, ss_monotonic_ns());
		for (size_t i = 0; i < s->count; i++) {
			struct ss_top_process *p = s->process[i];
			if (p->result == SS_LIVE_GONE || p->current)
				continue;
			read_page(p);
			/* Another reader may have asked since; its answer will do as well. */
			p->current = p->result == SS_LIVE_OK &&
				     p->page.refresh_done == p->page.refresh_wanted;
			open -= p->current || p->result == SS_LIVE_GONE;
		}
		if (last)
			return;
		ss_deadline_take(&end, 1);
		nanosleep(&nap, NULL);
	}
}

static const struct ss_live_pool *find_pool(const struct ss_top_process *p,
					    const struct ss_live_pool *like)
{
	for (uint32_t i = 0; i < p->page.figures.pool_count; i++) {
		const struct ss_live_pool *pool = &p->page.figures.pool[i];
		if (pool->device == like->device && strcmp(pool->name, like->name) == 0)
			return pool;
	}
	return NULL;
}

static double rate(uint64_t now, uint64_t before, double seconds)
{
	return now < before || seconds <= 0 ? -1 : (double)(now - before) / seconds;
}

static void set_rates(struct ss_top_process *p, const struct ss_top_process *before, double seconds)
{
	for (uint32_t i = 0; i < p->page.figures.pool_count; i++) {
		const struct ss_live_pool *now = &p->page.figures.pool[i];
		const struct ss_live_pool *then = before ? find_pool(before, now) : NULL;
		p->allocation_rate[i] = p->free_rate[i] = -1;
		if (then) {
			p->allocation_rate[i] = rate(now->counts.allocations,
						     then->counts.allocations, seconds);
			p->free_rate[i] = rate(now->counts.frees, then->counts.frees, seconds);
		}
	}
}

/* Rates are over the time between the two updates that the process made; no update means 0. */
static void compare(struct ss_top_process *p, const struct ss_top_sample *before)
{
	const struct ss_top_process *old = NULL;
	uint64_t updated = p->page.figures.updated_ns;

	for (size_t i = 0; before && i < before->count; i++)
		if (strcmp(before->process[i]->path, p->path) == 0 &&
		    before->process[i]->result == SS_LIVE_OK)
			old = before->process[i];
	p->age = ss_live_age(&p->page);
	double seconds = old ? (double)(updated - old->page.figures.updated_ns) / 1e9 : 0;
	set_rates(p, old, old && updated == old->page.figures.updated_ns ? 1 : seconds);
}

void ss_top_drop(struct ss_top_sample *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->process[i]);
	free(s->process);
	*s = (struct ss_top_sample){0};
}

/* Removes processes that ended while they were looked at. */
static void compact(struct ss_top_sample *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->count; i++)
		if (s->process[i]->result == SS_LIVE_GONE || s->process[i]->result == SS_LIVE_LEFT)
			free(s->process[i]);
		else
			s->process[kept++] = s->process[i];
	s->count = kept;
}

bool ss_top_take(const char *directory, const struct ss_top_filter *filter, unsigned wait_ms,
		 const struct ss_top_sample *before, struct ss_top_sample *out)
{
	struct scan scan = {.filter = filter, .sample = out};

	*out = (struct ss_top_sample){0};
	if (!ss_live_scan(directory, add, &scan))
		return false;
	if (scan.out_of_memory) {
		ss_top_drop(out);
		errno = ENOMEM;
		return false;
	}
	if (out->count)
		qsort(out->process, out->count, sizeof(*out->process), by_pid);
	refresh(out, wait_ms);
	compact(out);
	for (size_t i = 0; i < out->count; i++)
		if (out->process[i]->result == SS_LIVE_OK)
			compare(out->process[i], before);
	return true;
}

/* ---- devices -------------------------------------------------------------- */

const struct ss_live_device *ss_top_device(const struct ss_live_figures *f, uint32_t ordinal)
{
	for (uint32_t i = 0; i < f->device_count; i++)
		if (f->device[i].ordinal == ordinal)
			return &f->device[i];
	return NULL;
}

static void add_device(struct ss_top_device *out, size_t room, size_t *count,
		       const struct ss_live_device *d, uint64_t asleep)
{
	char pci[sizeof(out->pci)];
	size_t i = 0;

	if (d->pci[0])
		snprintf(pci, sizeof(pci), "%s", d->pci);
	else
		snprintf(pci, sizeof(pci), "device %u", d->ordinal);
	while (i < *count && strcmp(out[i].pci, pci) != 0)
		i++;
	if (i == room)
		return;
	if (i == *count) {
		out[(*count)++] = (struct ss_top_device){.total = d->total};
		memcpy(out[i].pci, pci, sizeof(pci));
	}
	out[i].processes++;
	out[i].used += d->used;
	out[i].reserved += d->reserved;
	out[i].in_flight += d->in_flight;
	out[i].asleep += asleep;
	out[i].kernel += d->kernel;
	out[i].rest += d->rest;
}

uint64_t ss_top_asleep(const struct ss_top_process *p, const struct ss_live_device *d)
{
	return d->ordinal < SS_LIVE_DEVICES ? atomic_load(&p->page.sleep.asleep[d->ordinal]) : 0;
}

size_t ss_top_devices(const struct ss_top_sample *s, struct ss_top_device *out, size_t room)
{
	size_t count = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct ss_live_figures *f = &s->process[i]->page.figures;
		for (uint32_t k = 0; s->process[i]->result == SS_LIVE_OK && k < f->device_count;
		     k++)
			add_device(out, room, &count, &f->device[k],
				   ss_top_asleep(s->process[i], &f->device[k]));
	}
	return count;
}

/* ---- text ------------------------------------------------------------------- */

const char *ss_top_problem(enum ss_live_result result)
{
	return result == SS_LIVE_NEWER ? "its somashim is of another version" :
					 "its page is being written all the time";
}
