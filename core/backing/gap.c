/* SPDX-License-Identifier: MIT */
/*
 * Where a pool on virtual memory grows: which holes must be filled so that a run is long enough.
 *
 * A run begins with what is free before a hole, or in the hole if only what lies behind it is
 * free, and may go on over several holes. The one that lacks the fewest bytes is the cheapest, be
 * they new or moved there.
 *
 * Where buffers go in turn (turns.c) all that is free lies between the block that came last and
 * the oldest. A hole in there cuts it in two, and chunks that are taken from where they are most
 * leave one more: each large buffer then moves as many again. So there the run that begins
 * behind the last block comes first, and what it lacks is taken from behind its hole (donor.c):
 * that moves the hole on, and makes no other.
 *
 * All functions are called with the pool's lock held.
 */
#include "core/vmm.h"

#define MOST_HOLES 8    /* of one run; each takes a growth of its own */
#define RECUR_WEIGHT 32 /* of a byte that is new where the program recurs: what is made stays */
#define TURN_TIMES 3    /* as much as the cheapest run may lack the one that is in turn */

struct search {
	const struct ss_vmm *v;
	unsigned weight;     /* of a byte that will be new, beside one that moves; or 0 */
	uint64_t movable;    /* bytes of free chunks that may move there */
	bool in_turn;        /* is what is free in order, to be kept so? */
	struct ss_gap best;
	uint64_t made, cost; /* of its bytes: those that will be new; all, and what those weigh */
};

/* What of the range b could move, were it not part of the run. */
static uint64_t held(const struct search *s, const struct ss_block *b)
{
	return s->weight && b->slot == SS_SLOT_CLEAN ? ss_chunks_movable(s->v, b) : 0;
}

/* New bytes cost memory, and as many calls as those that move. */
static void weigh(struct search *s, const struct ss_gap *run, uint64_t kept)
{
	uint64_t have = s->movable - kept;
	uint64_t made = s->weight && run->total > have ? run->total - have : 0;
	uint64_t cost = run->total + s->weight * made;

	if (s->best.hole &&
	    (cost > s->cost || (cost == s->cost && run->start >= s->best.start)))
		return;
	s->best = *run;
	s->made = made;
	s->cost = cost;
}

/* Bytes of the hole, from its left end, that a run to `end` lacks; all of it where the run goes on
 * behind it. */
static uint64_t lacks(const struct ss_block *hole, uint64_t end, uint64_t step)
{
	uint64_t bytes = end > hole->addr ? ss_round(end - hole->addr, step) : step;

	return bytes < hole->size ? bytes : hole->size;
}

/* The run that begins with what is free before the hole. */
static void from_left(struct search *s, struct ss_block *hole)
{
	struct ss_gap run = s->best;
	struct ss_block *b = hole;
	uint64_t end, kept = 0;

	run.hole = hole;
	run.start = hole->addr;
	run.total = 0;
	run.from = hole->addr - ss_join_before(hole, run.slot);
	end = ss_round(run.from, run.align) + run.size;
	run.bytes = lacks(hole, end, run.step);
	while (b->addr > run.from) {
		b = b->prev;
		kept += held(s, b);
	}
	b = hole;
	for (unsigned holes = 1;; holes++) {
		run.total += lacks(b, end, run.step);
		run.to = b->addr + b->size;
		for (b = b->next; run.to < end && b && ss_joins(b, run.slot); b = b->next) {
			kept += held(s, b);
			run.to += b->size;
		}
		if (run.to >= end)
			break;
		if (!ss_is_gap(b) || holes == MOST_HOLES)
			return;
	}
	weigh(s, &run, kept);
}

/* The run that ends with what is free behind the hole. */
static void from_right(struct search *s, struct ss_block *hole)
{
	uint64_t end = hole->addr + hole->size, kept = 0;
	struct ss_gap run = s->best;

	/* (What stays has its memory for itself.) */
	if (end == ss_stays_from(s->v))
		return;
	run.hole = hole;
	run.to = end;
	for (struct ss_block *b = hole->next; b && ss_joins(b, run.slot); b = b->next) {
		kept += held(s, b);
		run.to += b->size;
	}
	if (run.to == end || run.to - end >= run.size)
		return;
	run.bytes = ss_round(end - ((run.to - run.size) & ~(run.align - 1)), run.step);
	if (run.bytes >= hole->size)
		return;
	run.total = run.bytes;
	run.start = run.from = end - run.bytes;
	weigh(s, &run, kept);
}

static void consider(struct ss_block *hole, void *arg)
{
	struct search *s = arg;

	from_left(s, hole);
	if (!s->in_turn)
		from_right(s, hole);
}

/* For a block that stays. */
static void consider_apart(struct ss_block *hole, void *arg)
{
	struct search *s = arg;

	if (hole->addr >= ss_stays_from(s->v))
		from_left(s, hole);
}

/* Where access is given from the start of the reservation only, the lowest hole
 * must go first: what it lacks for the run, the next growth adds behind it. */
static void lowest(struct ss_block *hole, void *arg)
{
	struct search *s = arg;
	struct ss_gap *g = &s->best;
	uint64_t run = ss_round(hole->addr - ss_join_before(hole, g->slot), g->align);

	if (g->hole && hole->addr > g->start)
		return;
	g->hole = hole;
	g->start = g->from = hole->addr;
	g->to = hole->addr + hole->size;
	g->total = g->bytes = lacks(hole, run + g->size, g->step);
}

/* The run that is in turn rather than the cheapest, if it is not much dearer. */
static void next_in_turn(struct search *s, struct ss_block *b)
{
	struct search turn = *s;

	while (b && ss_joins(b, s->best.slot))
		b = b->next;
	if (!ss_is_gap(b))
		return;
	turn.best.hole = NULL;
	from_left(&turn, b);
	if (turn.best.hole && turn.made <= s->made &&
	    turn.best.total <= TURN_TIMES * s->best.total)
		*s = turn;
}

void ss_gap_find(struct ss_pool *pool, struct ss_gap *gap, enum ss_gap_kind kind)
{
	static void (*const each[])(struct ss_block *, void *) = {
		[SS_GAP_ANY] = consider,
		[SS_GAP_MOVING] = consider,
		[SS_GAP_APART] = consider_apart,
		[SS_GAP_LOWEST] = lowest,
	};
	struct ss_block *last = ss_turns_last(pool);
	struct search s = {.v = pool->vmm, .best = *gap, .in_turn = last != NULL};

	s.best.hole = NULL;
	if (kind == SS_GAP_MOVING) {
		s.weight = ss_recur_places(pool) ? RECUR_WEIGHT : 1;
		s.movable = ss_chunks_movable_all(pool);
	}
	ss_heap_each(&pool->vmm->holes, each[kind], &s);
	if (kind == SS_GAP_MOVING && last && s.best.hole)
		next_in_turn(&s, last->next);
	*gap = s.best;
}

struct ss_block *ss_hole_split(struct ss_pool *pool, struct ss_block *b, uint64_t bytes)
{
	struct ss_vmm *v = pool->vmm;
	struct ss_block *rest;

	if (!bytes)
		return b;
	ss_heap_remove(&v->holes, b);
	rest = ss_block_split(pool->core, b, bytes);
	ss_heap_insert(&v->holes, b);
	if (rest)
		ss_heap_insert(&v->holes, rest);
	return rest;
}
