/* SPDX-License-Identifier: MIT */
/* Snapshots of a moment: the call sites that hold memory, the kinds of unused memory, and the
 * contents of a pool's addresses. */
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/pass.h"

#define CELLS 1024
#define MAPS_MAX 512

static int larger_first(const void *a, const void *b)
{
	const struct ss_holder *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return (x->site > y->site) - (x->site < y->site);
}

bool ss_snapshot_take(struct ss_pass *p, struct ss_snapshot *snapshot, int device, size_t most)
{
	size_t sites = p->a->sites.count, n = 0;
	struct ss_holder *held = calloc(sites, sizeof(*held));
	struct ss_ranges_walk walk = {0};
	const struct ss_range *b;

	if (!held)
		return false;
	snapshot->device = device;
	snapshot->level = p->memory.device[device];
	for (b = ss_ranges_from(&p->memory.blocks, 0); b;
	     b = ss_ranges_next(&p->memory.blocks, &walk, b)) {
		if (!b->freed && b->device == device) {
			held[b->site].bytes += b->size;
			held[b->site].blocks++;
		}
	}
	for (size_t i = 0; i < sites; i++) {
		if (held[i].blocks) {
			held[n] = held[i];
			held[n++].site = (uint32_t)i;
		}
	}
	qsort(held, n, sizeof(*held), larger_first);
	snapshot->holders = n < most ? n : most;
	snapshot->holder = realloc(held, (snapshot->holders + 1) * sizeof(*held));
	if (!snapshot->holder)
		snapshot->holder = held;
	return true;
}

/* ---- mapped memory ------------------------------------------------------ */

/* Memory of one pool whose addresses follow each other. */
struct run {
	uint64_t base, end;
	uint16_t pool;
	uint8_t device;
};

/* The first run that ends after `address`. False: there is none. */
static bool next_run(const struct ss_pass *p, uint64_t address, struct run *run)
{
	const struct ss_range *at = ss_ranges_from(&p->memory.mapped, address);

	if (!at)
		return false;
	*run = (struct run){at->base, at->base + at->size, at->pool, at->device};
	while ((at = ss_ranges_from(&p->memory.mapped, run->end)) && at->base == run->end &&
	       at->pool == run->pool && at->device == run->device)
		run->end = at->base + at->size;
	return true;
}

static void add_hole(struct ss_snapshot *snapshot, const struct run *run, uint64_t size)
{
	struct ss_waste *w = &snapshot->waste;

	if (size == 0)
		return;
	if (run->pool != snapshot->pool && snapshot->request) {
		w->other_pools += size;
		return;
	}
	w->largest_hole = size > w->largest_hole ? size : w->largest_hole;
	if (size < snapshot->request)
		w->fragmentation += size;
	else
		w->idle += size;
}

void ss_snapshot_waste(struct ss_pass *p, struct ss_snapshot *snapshot)
{
	const struct ss_range *b;
	struct ss_ranges_walk all = {0};
	struct run run;

	snapshot->waste = (struct ss_waste){.rounding = snapshot->level.used -
							snapshot->level.asked};
	for (uint64_t at = 0; next_run(p, at, &run); at = run.end) {
		uint64_t hole = run.base; /* where it begins, if there is one */
		if (run.device != snapshot->device)
			continue;
		struct ss_ranges_walk walk = {0};
		for (b = ss_ranges_from(&p->memory.blocks, hole); b && b->base < run.end;
		     b = ss_ranges_next(&p->memory.blocks, &walk, b)) {
			add_hole(snapshot, &run, b->base > hole ? b->base - hole : 0);
			hole = b->base + b->size;
		}
		add_hole(snapshot, &run, run.end > hole ? run.end - hole : 0);
	}
	for (b = ss_ranges_from(&p->memory.blocks, 0); b;
	     b = ss_ranges_next(&p->memory.blocks, &all, b)) {
		if (b->freed && b->device == snapshot->device) {
			*(b->stream == snapshot->stream && snapshot->request ?
				  &snapshot->waste.in_flight_own :
				  &snapshot->waste.in_flight_others) += b->size;
		}
	}
}

/* ---- the map of a pool's addresses -------------------------------------- */

struct cells {
	struct ss_address_map map;
	uint64_t live[CELLS], in_flight[CELLS]; /* bytes */
};

/* Adds `size` bytes to the cells, from the position `at` on. */
static void add_bytes(const struct cells *c, uint64_t *cell, uint64_t at, uint64_t size)
{
	while (size) {
		size_t i = (size_t)(at / c->map.cell_bytes);
		uint64_t room = c->map.cell_bytes - at % c->map.cell_bytes;
		uint64_t part = size < room ? size : room;
		cell[i] += part;
		at += part;
		size -= part;
	}
}

static void map_run(const struct ss_pass *p, struct cells *c, const struct run *run,
		    uint64_t position)
{
	struct ss_ranges_walk walk = {0};
	uint64_t hole = run->base;
	const struct ss_range *b;

	for (b = ss_ranges_from(&p->memory.blocks, hole); b && b->base < run->end;
	     b = ss_ranges_next(&p->memory.blocks, &walk, b)) {
		uint64_t base = b->base > run->base ? b->base : run->base;
		uint64_t end = b->base + b->size < run->end ? b->base + b->size : run->end;
		if (base > hole && base - hole > c->map.largest_hole)
			c->map.largest_hole = base - hole;
		add_bytes(c, b->freed ? c->in_flight : c->live, position + base - run->base,
			  end - base);
		hole = b->base + b->size;
	}
	if (run->end > hole && run->end - hole > c->map.largest_hole)
		c->map.largest_hole = run->end - hole;
}

/* The digit 0 is exactly nothing, and 9 is exactly all. */
static char digit(uint64_t bytes, uint64_t all)
{
	if (bytes == 0 || bytes >= all)
		return bytes == 0 ? '0' : '9';
	return (char)('1' + (int)((double)bytes / (double)all * 8));
}

static bool store(struct ss_analysis *a, struct cells *c)
{
	struct ss_address_map *m = &c->map;

	m->live = calloc(1, m->cells + 1);
	m->in_flight = calloc(1, m->cells + 1);
	void *more = realloc(a->map, (a->maps + 1) * sizeof(*a->map));
	a->map = more ? more : a->map;
	if (!m->live || !m->in_flight || !more) {
		free(m->live);
		free(m->in_flight);
		return false;
	}
	for (size_t i = 0; i < m->cells; i++) {
		uint64_t past = i * m->cell_bytes;
		uint64_t all = m->bytes - past < m->cell_bytes ? m->bytes - past : m->cell_bytes;
		m->live[i] = digit(c->live[i], all);
		m->in_flight[i] = digit(c->in_flight[i], all);
	}
	a->map[a->maps++] = *m;
	return true;
}

bool ss_address_map_take(struct ss_pass *p, uint32_t pool, uint64_t time_ns)
{
	struct cells c = {.map = {.time_ns = time_ns, .pool = pool}};
	uint64_t position = 0;
	struct run run;

	c.map.bytes = p->memory.pool[pool].reserved;
	if (c.map.bytes == 0 || c.map.bytes > UINT64_MAX / 2 || p->a->maps == MAPS_MAX)
		return true;
	c.map.cell_bytes = ((c.map.bytes + CELLS - 1) / CELLS + 255) & ~255ull;
	c.map.cells = (size_t)((c.map.bytes + c.map.cell_bytes - 1) / c.map.cell_bytes);
	c.map.gap = calloc(CELLS, sizeof(*c.map.gap));
	if (!c.map.gap)
		return false;
	for (uint64_t at = 0; next_run(p, at, &run); at = run.end) {
		if (run.pool != pool || run.end - run.base > c.map.bytes - position)
			continue;
		if (position && c.map.gaps < CELLS)
			c.map.gap[c.map.gaps++] = (uint32_t)(position / c.map.cell_bytes);
		map_run(p, &c, &run, position);
		position += run.end - run.base;
	}
	if (!store(p->a, &c)) {
		free(c.map.gap);
		return false;
	}
	return true;
}
