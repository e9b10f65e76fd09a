/* SPDX-License-Identifier: MIT */
/*
 * Blocks that go in turn: one part of a program makes buffers of ever other sizes, another takes
 * them over and frees each when it is done with it, the first first. By best fit a pool of whole
 * segments comes to a quarter more than was ever in use: a small buffer in a large segment keeps
 * that from the large one that comes next, or from going back for it.
 *
 * But of such a program all is known except sizes: at the next allocation but k the k+1 oldest
 * blocks will be gone, and k others there, of a size as before on average. So for each place that
 * a block may have it can be said what the pool is expected to lack until that block goes, and
 * the least of that is where it belongs. A segment of its own, for which idle ones go back, is one
 * of those places. It has a price, which depends on how many calls and misses the pool may have.
 *
 * All functions are called with the pool's lock held.
 */
#include "core/vmm.h"

#define SMALL (64ull << 20)  /* a pool of this size is not worth calls */
#define IN_TURN 32           /* more blocks went in their turn than did not: then they do; */
#define SURE 128             /* of so many at most */
#define TOGETHER 2           /* that go before the next comes: more, and that is no turn */
#define STAYS 16             /* blocks that went before one that is older: that has no turn */
#define RESTS 16             /* allocations until they are looked at again, if they do not; twice */
#define RESTS_MOST 1024      /* as many the next time */
#define SHARE_PART 10        /* of the used peak: in a pool of which less goes in turn it is other
			      * blocks that decide what it lacks */
#define SIZES 256            /* that the average is of */
#define WASTE 1.5            /* lost with each byte that is free in a segment in use: what comes */
#define SPREAD 1.5           /* loses some, too, and differs by more than sizes taken one by one */
#define PRICE_PART 100       /* of the used peak: a call, if none was saved up; it halves with */
#define HALVES 7             /* so many; */
#define MISS_CALLS 8         /* as much as so many calls, a miss, which halves with */
#define MISS_HALVES 4        /* so many, until there are more than there may be */
#define MISSES_OVER 16       /* by so many */
#define LONGER_PART 8192     /* of what is left of a range: only to tell ranges apart */
#define FITS_PART 32         /* of the used peak: a pool that is no more above it fits well as it is */
#define SEGMENTS 128         /* and */
#define BLOCKS 512           /* of them: a pool of more is not looked at */
#define NEVER (SS_TURNS + 2) /* goes what is in none */

struct place {
	const struct ss_segment *seg;
	struct ss_block *range; /* the shortest that is long enough */
	double size;
	unsigned gone;          /* the allocation at which all of it is free; 0: it is */
};

struct view {
	struct place place[SEGMENTS];
	unsigned count;
	unsigned turns;                /* until what is asked for goes */
	double live[SS_TURNS + 2];     /* bytes, so many allocations from now, of what is there now; */
	double busy[SS_TURNS + 2];     /* of the segments that they keep; */
	double spread[SS_TURNS + 2];   /* how much what comes until then may be off its mean */
	double cap, size, mean;
	uint64_t need, align;
};

bool ss_turns(struct ss_pool *pool)
{
	double used;

	if (pool->turns.run < IN_TURN)
		return false;
	used = (double)ss_pool_used_high(pool);
	return used >= SMALL && (pool->turns.count + 1) * pool->turns.mean >= used / SHARE_PART;
}

/* It costs a look at every block in the line, and most programs are not like that. */
static void rest(struct ss_pool *pool)
{
	pool->turns.count = pool->turns.run = 0;
	pool->turns.rests = pool->turns.rests * 2 + RESTS;
	if (pool->turns.rests > RESTS_MOST)
		pool->turns.rests = RESTS_MOST;
	pool->turns.left_out = pool->turns.rests;
}

void ss_turns_asked(struct ss_pool *pool, uint64_t size)
{
	struct ss_turn *line = pool->turns.line;
	unsigned n = pool->turns.count, went = 0, kept = 0, wrong;
	double weight, off = (double)size - pool->turns.mean;
	bool in_turn = true;

	if (pool->turns.sizes < SIZES)
		pool->turns.sizes++;
	weight = 1.0 / pool->turns.sizes;
	pool->turns.mean += off * weight;
	pool->turns.variance += (off * off * (1 - weight) - pool->turns.variance) * weight;

	for (unsigned i = n; i-- > 0;) {
		if (ss_is_state(line[i].block, SS_BLOCK_LIVE)) {
			line[i].passed += went;
			in_turn &= !went;
		} else {
			line[i].passed = STAYS;
			went++;
		}
	}
	if (!went)
		return;
	for (unsigned i = 0; i < n; i++)
		if (line[i].passed < STAYS)
			line[kept++] = line[i];
	pool->turns.count = kept;
	wrong = went > TOGETHER ? went : !in_turn;
	if (pool->lags)
		pool->turns.run = 0;
	else if (wrong > pool->turns.run)
		rest(pool);
	else if (wrong)
		pool->turns.run -= wrong;
	else if (pool->turns.run < SURE && ++pool->turns.run == IN_TURN)
		pool->turns.rests = 0;
}

void ss_turns_got(struct ss_pool *pool, const struct ss_block *b)
{
	if (pool->turns.left_out) {
		pool->turns.left_out--;
		return;
	}
	if (pool->turns.count == SS_TURNS) {
		rest(pool);
		return;
	}
	pool->turns.line[pool->turns.count++] =
		(struct ss_turn){.block = b, .seg = b->seg, .addr = b->addr, .size = b->size};
}

/* Square root of x, of which `most` is no less; without libm, which a library that is preloaded had
 * better not bring along. */
static double root(double x, double most)
{
	double r = most;

	if (x <= 0)
		return 0;
	for (double next = (r + x / r) / 2; next < r; next = (r + x / r) / 2)
		r = next;
	return r;
}

/* By how much a sum exceeds 0 on average (where it does not: by nothing), if it is `mean` more or
 * less than that and normally distributed: the loss function of that at multiples of 1/4. */
static double excess(double mean, double spread)
{
	static const double loss[] = {
		0.398942, 0.286345, 0.197797, 0.131167, 0.083315, 0.050587, 0.029307, 0.016174, 0.008491,
		0.004235, 0.002004, 0.000899, 0.000382, 0.000154, 0.000058, 0.000021, 0};
	double z = spread > 0 ? (mean < 0 ? -mean : mean) / spread * 4 : 99, part, low = 0;

	if (z < 16) {
		part = z - (double)(int)z;
		low = (loss[(int)z] * (1 - part) + loss[(int)z + 1] * part) * spread;
	}
	return mean > 0 ? mean + low : low;
}

/* When will all of seg be free? */
static unsigned gone(const struct ss_pool *pool, const struct ss_segment *seg, unsigned *left)
{
	unsigned live = 0, mine = 0, last = 0;

	for (const struct ss_block *b = seg->first; b && *left; b = b->next, --*left)
		live += ss_is_state(b, SS_BLOCK_LIVE) || ss_is_state(b, SS_BLOCK_LEASED);
	for (unsigned i = 0; i < pool->turns.count; i++)
		if (pool->turns.line[i].seg == seg) {
			mine++;
			last = i + 1;
		}
	/* (What is on its way back from another stream will soon have come.) */
	return live > mine ? NEVER : last ? last :
	       seg->first->size != seg->size || !ss_is_state(seg->first, SS_BLOCK_FREE);
}

static bool look(struct ss_pool *pool, struct view *v)
{
	double live = (double)ss_pool_used(pool), busy = 0, spread;
	unsigned n = pool->turns.count, left = BLOCKS;

	if (pool->segment_count > SEGMENTS)
		return false;
	v->turns = n + 1;
	for (const struct ss_segment *seg = pool->segments; seg; seg = seg->next) {
		struct place *p = &v->place[v->count++];

		*p = (struct place){.seg = seg, .size = (double)seg->size, .gone = gone(pool, seg, &left)};
		if (p->gone > n + 1)
			busy += p->size;
		else if (p->gone)
			v->busy[p->gone - 1] += p->size;
	}
	for (unsigned i = 0; i < n; i++)
		live -= (double)pool->turns.line[i].size;
	spread = (n + 2) * pool->turns.variance * SPREAD;
	spread = spread > 1 ? spread : 1;
	for (unsigned k = n + 1; k > 0; k--) {
		v->busy[k] = busy += v->busy[k];
		live += k < n ? (double)pool->turns.line[k].size : 0;
		v->live[k] = live;
		spread = v->spread[k] = root(k * pool->turns.variance * SPREAD, spread);
	}
	return left != 0;
}

/* What the pool is expected to lack until the block goes, if a segment that would else be free
 * at `gone` is in use until then. */
static double lack(const struct view *v, unsigned gone, double segment)
{
	double sum = 0;

	for (unsigned k = 1; k <= v->turns; k++) {
		bool there = k < v->turns;
		double live = v->live[k] + (there ? v->size : 0);
		double busy = v->busy[k] + (there && k >= gone ? segment : 0);

		sum += excess(live + (busy - live) * WASTE + k * v->mean - v->cap, v->spread[k]);
	}
	return sum;
}

static void consider(struct ss_block *b, void *arg)
{
	struct view *v = arg;

	if (ss_start_in(b, v->align, 0) + v->need > b->addr + b->size)
		return;
	for (unsigned i = 0; i < v->count; i++)
		if (v->place[i].seg == b->seg) {
			if (!v->place[i].range || v->place[i].range->size > b->size)
				v->place[i].range = b;
			return;
		}
}

static double twice(double x, int64_t times)
{
	for (; times > 0 && x < 1e18; times--)
		x *= 2;
	for (; times < 0 && x > 1; times++)
		x /= 2;
	return x;
}

/* What a segment of `want` bytes more costs, in bytes that the pool might lack; < 0: it cannot be
 * had for the others that are idle. */
static double price(struct ss_pool *pool, const struct view *v, double want)
{
	double over = (double)atomic_load(&pool->reserved) + want - v->cap;
	double unit = (double)ss_pool_used_high(pool) / PRICE_PART;
	bool goes[SEGMENTS] = {false};
	unsigned calls = 1;

	if (ss_thrift_misses_left(pool) <= -MISSES_OVER)
		return -1;
	while (over > 0) {
		unsigned best = SEGMENTS;

		for (unsigned i = 0; i < v->count; i++) {
			if (v->place[i].gone || goes[i])
				continue;
			if (best == SEGMENTS || ss_goes_first(v->place[i].seg->size,
							      v->place[best].seg->size,
							      (uint64_t)over))
				best = i;
		}
		if (best == SEGMENTS)
			return -1;
		goes[best] = true;
		over -= v->place[best].size;
		calls++;
	}
	return twice(unit, -ss_thrift(pool) / HALVES) * calls +
	       twice(unit, -ss_thrift_misses_left(pool) / MISS_HALVES) * MISS_CALLS;
}

struct ss_block *ss_turns_best(struct ss_pool *pool, struct ss_queue *q, uint64_t size,
			       uint64_t align, struct ss_block *b, struct ss_fit *fit)
{
	uint64_t used = ss_pool_used_high(pool), want = ss_fit_size(pool, size, 0);
	struct ss_fit may = {
		.beside = atomic_load(&pool->reserved_high) > used + used / FITS_PART};
	struct view v = {.size = (double)size, .need = size, .align = align,
			 .mean = pool->turns.mean, .cap = (double)ss_fit_ceiling(pool, size, &may)};
	double least = 0, cost, more;
	struct place *best = NULL;

	if (!look(pool, &v))
		return b;
	if (q)
		ss_heap_each(&q->own, consider, &v);
	ss_heap_each(&pool->clean, consider, &v);
	for (struct place *p = v.place; p < v.place + v.count; p++) {
		if (!p->range)
			continue;
		cost = lack(&v, p->gone, p->size) + (double)p->range->size / LONGER_PART;
		if (!best || cost < least) {
			best = p;
			least = cost;
		}
	}
	if (!best)
		return b;
	more = fit ? price(pool, &v, (double)want) : -1;
	if (more < 0 || lack(&v, 0, (double)want) + more >= least)
		return best->range;
	*fit = may;
	return NULL;
}

struct ss_block *ss_turns_last(struct ss_pool *pool)
{
	const struct ss_segment *seg = pool->vmm ? pool->vmm->seg : NULL;
	const struct ss_turn *line = pool->turns.line;
	unsigned i = pool->turns.count, left = BLOCKS;
	struct ss_block *b;

	if (!seg || !ss_turns(pool))
		return NULL;
	while (i > 0 && (line[i - 1].seg != seg || !ss_is_state(line[i - 1].block, SS_BLOCK_LIVE)))
		i--;
	/* By address, in the segment's list: the descriptor may be another block's by now, and what a
	 * stream has on lease is not in there, but its own to change. */
	for (b = i > 0 ? seg->first : NULL; b && left; b = b->next, left--)
		if (b->addr == line[i - 1].addr)
			return ss_is_state(b, SS_BLOCK_LIVE) ? b : NULL;
	return NULL;
}

struct ss_block *ss_turns_next(struct ss_pool *pool, const struct ss_queue *q, uint64_t size,
			       uint64_t align, struct ss_block *b)
{
	struct ss_block *last = ss_turns_last(pool), *at = last;

	for (unsigned left = BLOCKS; last && left; left--) {
		at = at->next ? at->next : last->seg->first;
		if (at == last)
			break;
		if (ss_joins(at, q ? q->tl->slot : SS_SLOT_CLEAN) &&
		    ss_start_in(at, align, 0) + size <= at->addr + at->size)
			return at;
	}
	return b;
}
