/* SPDX-License-Identifier: MIT */
/*
 * Random programs against the true order. A program has at most 64 steps, so the steps that come
 * before each one are the bits of a word, and the truth is computed from the rules of HIP, without
 * clocks.
 *
 *   random [--count N] [--seed S]
 *
 * Half of the programs are legal, and nothing may be said of them. Into the others one error is
 * put, as the last step: it has to be found, with its kind, its block and its two streams. Prints
 * how many of each kind were.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check/check.h"
#include "tests/random.h"

enum { STREAMS = 5, EVENTS = 4, BLOCKS = 6, STEPS = 56, LAST_STEP = 63, SIZE = 256 };

/* Rows of a block, of which the first begins at `offset`, that a step has read or written. */
struct access {
	bool writes, whole;
	int offset, width, pitch, rows;
	uint64_t bit;
};

struct block {
	int state;                  /* 0: none, 1: live, 2: freed */
	uint64_t alloc, free, uses; /* bits of steps */
	int alloc_on, free_on;
	uint64_t number;
	struct access access[LAST_STEP + 1];
	int accesses;
};

static struct {
	struct ss_check *check;
	enum ss_check_stream_kind kind[STREAMS];
	int dev[STREAMS];
	uint64_t done[STREAMS]; /* steps on the stream, and what comes before them */
	uint64_t on[STREAMS];   /* steps on it */
	/* It may have waited for anything; the checker may be silent */
	bool wild[STREAMS], unheard[STREAMS];
	/* Steps on a stream that was so, which may come after what is enqueued later */
	uint64_t held;
	uint64_t event[EVENTS], host;
	bool event_wild[EVENTS], event_unheard[EVENTS];
	struct block block[BLOCKS];
	uint64_t blocks;
	int step;
	uint64_t random;
	unsigned found;
	struct ss_finding last;
} p;

static char streams[STREAMS], events[EVENTS], memory[BLOCKS][SIZE];

static uint64_t draw(uint64_t below)
{
	return next_random(&p.random) % below;
}

static void report(const struct ss_finding *f, void *unused)
{
	(void)unused;
	p.found++;
	p.last = *f;
}

/* ---- the truth ----------------------------------------------------------------- */

/* Does each step on s come after those on o? */
static bool joins(int s, int o)
{
	if (p.dev[s] != p.dev[o])
		return false;
	return p.kind[s] == SS_CHECK_NULL ?
		       p.kind[o] == SS_CHECK_BLOCKING :
		       p.kind[s] == SS_CHECK_BLOCKING && p.kind[o] == SS_CHECK_NULL;
}

/* What comes before a step on s that would be made now. */
static uint64_t before(int s)
{
	uint64_t all = p.done[s] | p.host;

	for (int o = 0; o < STREAMS; o++)
		if (joins(s, o))
			all |= p.done[o];
	return all;
}

static bool joins_any(const bool *is, int s)
{
	bool any = is[s];

	for (int o = 0; o < STREAMS; o++)
		if (joins(s, o))
			any |= is[o];
	return any;
}

static bool joins_wild(int s)
{
	return joins_any(p.wild, s);
}

/* A step on s, after what is in `more` as well. Returns its bit. */
static uint64_t step(int s, uint64_t more)
{
	uint64_t bit = 1ull << p.step++;

	p.done[s] = before(s) | more | bit;
	p.on[s] |= bit;
	p.wild[s] = joins_wild(s);
	p.unheard[s] = joins_any(p.unheard, s);
	if (p.wild[s])
		p.held |= bit;
	return bit;
}

/* ---- steps ------------------------------------------------------------------------ */

static void allocate(int s, int b)
{
	ss_check_alloc(p.check, memory[b], SIZE, 0, SIZE, &streams[s], "alloc", 1);
	p.block[b].state = 1;
	p.block[b].alloc = step(s, 0);
	p.block[b].alloc_on = s;
	p.block[b].number = ++p.blocks;
	p.block[b].uses = 0;
	p.block[b].accesses = 0;
}

/* What an access does to each byte of a block: 1 reads, 2 writes. */
static void paint(const struct access *a, unsigned char *byte)
{
	for (int row = 0; row < a->rows; row++)
		for (int i = 0; i < a->width; i++)
			byte[a->offset + row * a->pitch + i] = a->writes ? 2 : 1;
}

static bool conflict(const struct access *x, const struct access *y)
{
	unsigned char one[SIZE] = {0}, other[SIZE] = {0};

	paint(x, one);
	paint(y, other);
	for (int i = 0; i < SIZE; i++)
		if (one[i] && other[i] && one[i] + other[i] > 2)
			return true;
	return false;
}

static struct access draw_access(void)
{
	struct access a = {.writes = draw(2), .rows = 1, .pitch = SIZE};

	switch (draw(4)) {
	case 0: a.width = SIZE; break;
	case 1:
		a.offset = (int)draw(SIZE);
		a.width = 1 + (int)draw((uint64_t)(SIZE - a.offset));
		break;
	default:
		a.pitch = 1 << (3 + draw(4));
		a.width = 1 + (int)draw((uint64_t)a.pitch);
		a.rows = 1 + (int)draw((uint64_t)(SIZE / a.pitch));
		a.offset = (int)draw((uint64_t)(SIZE - (a.rows - 1) * a.pitch - a.width + 1));
	}
	return a;
}

/* Bits of the steps that have to come before it. */
static uint64_t conflicts(const struct block *k, const struct access *a)
{
	uint64_t bits = 0;

	for (int i = 0; i < k->accesses; i++)
		if (conflict(&k->access[i], a))
			bits |= k->access[i].bit;
	return bits;
}

static void reads_or_writes(int s, int b, const struct access *a)
{
	const struct ss_check_rows rows = {.width = (uint64_t)a->width,
					   .pitch = (uint64_t)a->pitch,
					   .rows = (uint64_t)a->rows,
					   .slices = 1};
	const struct ss_check_operand o = {.ptr = memory[b] + a->offset,
					   .bytes = (uint64_t)((a->rows - 1) * a->pitch + a->width),
					   .access = a->writes ? SS_CHECK_WRITES : SS_CHECK_READS,
					   .rows = a->rows > 1 || draw(2) ? &rows : NULL};

	(void)ss_check_use(p.check, &streams[s], &o, a->writes ? "write" : "read", 4);
}

static void accesses(int s, int b)
{
	const struct ss_check_operand o = {.ptr = memory[b], .bytes = SIZE};

	(void)ss_check_use(p.check, &streams[s], &o, "use", 2);
}

static void use(int s, int b)
{
	accesses(s, b);
	p.block[b].uses |= step(s, 0);
}

static void release(int s, int b)
{
	(void)ss_check_free(p.check, memory[b], &streams[s], NULL, "free", 3);
	p.block[b].free = step(s, 0);
	p.block[b].free_on = s;
	p.block[b].state = 2;
}

static void record(int s, int e)
{
	ss_check_record_begin(p.check, &events[e]);
	ss_check_record_end(p.check, &events[e], &streams[s], true);
	(void)step(s, 0);
	p.event[e] = p.done[s];
	p.event_wild[e] = p.wild[s];
	p.event_unheard[e] = p.unheard[s];
}

static void wait_event(int s, int e)
{
	ss_check_wait(p.check, &streams[s], &events[e]);
	ss_check_wait(p.check, &streams[s], &events[e]);
	(void)step(s, p.event[e]);
	p.wild[s] |= p.event_wild[e];
	p.unheard[s] |= p.event_unheard[e];
}

/* A wait ends what made its stream wild, too; if that need not be the host, it may have been
 * anything. */
static void host_wait(int s)
{
	uint64_t since = ss_check_now(p.check);

	p.host |= before(s);
	ss_check_stream_synced(p.check, &streams[s], since);
	if (joins_any(p.unheard, s))
		for (int o = 0; o < STREAMS; o++)
			p.host |= p.done[o];
	p.wild[s] = p.unheard[s] = false;
}

/* For a device, or for all (-1). */
static void host_wait_all(int dev)
{
	uint64_t since = ss_check_now(p.check);
	bool unheard = false;

	for (int s = 0; s < STREAMS; s++) {
		if (dev >= 0 && p.dev[s] != dev)
			continue;
		p.host |= p.done[s];
		unheard |= p.unheard[s];
		p.wild[s] = p.unheard[s] = false;
	}
	for (int s = 0; s < STREAMS && unheard; s++)
		p.host |= p.done[s];
	ss_check_all_synced(p.check, dev, since);
}

static void host_wait_event(int e)
{
	ss_check_event_synced(p.check, &events[e]);
	p.host |= p.event[e];
	if (p.event_unheard[e])
		for (int o = 0; o < STREAMS; o++)
			p.host |= p.done[o];
}

/* The host may know all of s; if s may have waited for anything, not only for the host, that is
 * anything. */
static void tell(int s)
{
	ss_check_tell(p.check, &streams[s]);
	p.host |= before(s);
	for (int o = 0; o < STREAMS && joins_any(p.unheard, s); o++)
		p.host |= p.done[o];
}

static void make_ordered(int s, uint64_t bits);

/* One that comes after all that it conflicts with. */
static void access_in_order(int s, int b)
{
	struct block *k = &p.block[b];
	struct access a = draw_access();
	uint64_t need = k->alloc | conflicts(k, &a);

	if (draw(2))
		make_ordered(s, need);
	if ((need & ~before(s)) || k->accesses > LAST_STEP)
		return;
	reads_or_writes(s, b, &a);
	a.bit = step(s, 0);
	k->uses |= a.bit;
	k->access[k->accesses++] = a;
}

/* x waits for a value that y writes after its use, so the free in between is right. Perhaps the
 * host writes the value, once it has seen y. */
static void held_free(int x, int y, int b)
{
	bool by_host = draw(2);

	if (x == y || p.kind[x] != SS_CHECK_NONBLOCKING || p.kind[y] != SS_CHECK_NONBLOCKING ||
	    (p.block[b].alloc & ~before(y)) || (p.block[b].alloc & ~before(x)) ||
	    (p.block[b].uses & ~(before(x) | before(y))))
		return;
	tell(x);
	by_host ? ss_check_host_holds(p.check, &streams[x]) : ss_check_hold(p.check, &streams[x]);
	(void)step(x, 0);
	p.wild[x] = true;
	p.unheard[x] |= !by_host;
	release(x, b);
	accesses(y, b);
	(void)step(y, 0);
	tell(y);
	p.block[b].state = 0; /* no error is put there */
}

/* Makes s come after `bits`, by an event or the host. */
static void make_ordered(int s, uint64_t bits)
{
	for (int o = 0; o < STREAMS && (bits & ~before(s)) && p.step < LAST_STEP - 4; o++) {
		int e = (int)draw(EVENTS);

		if (!(p.done[o] & bits & ~before(s)))
			continue;
		if (draw(4) == 0) {
			host_wait(o);
		} else {
			record(o, e);
			wait_event(s, e);
		}
	}
}

static void legal_step(void)
{
	int s = (int)draw(STREAMS), b = (int)draw(BLOCKS), e = (int)draw(EVENTS);
	struct block *k = &p.block[b];
	uint64_t need;

	switch (draw(12)) {
	case 0: record(s, e); return;
	case 1: wait_event(s, e); return;
	case 2: host_wait(s); return;
	case 3:
		if (draw(4) == 0)
			host_wait_all((int)draw(3) - 1);
		else
			host_wait_event(e);
		return;
	case 4:
		if (k->state == 1)
			held_free(s, (int)draw(STREAMS), b);
		return;
	default: break;
	}
	if (k->state != 1) {
		allocate(s, b);
		return;
	}
	if (draw(2)) {
		access_in_order(s, b);
		return;
	}
	need = k->alloc;
	if (draw(3) == 0)
		need |= k->uses;
	if (draw(2))
		make_ordered(s, need);
	if (need & ~before(s))
		return;
	if (need & ~k->alloc || (!k->uses && draw(4) == 0))
		release(s, b);
	else
		use(s, b);
	/* A copy to the host, which may see that it has ended. */
	if (draw(12) == 0)
		tell(s);
}

/* ---- errors ------------------------------------------------------------------------- */

static uint64_t put_in[SS_FAULTS], found_of[SS_FAULTS];

/* Does the only finding name this fault, this block and these streams? */
static bool names(enum ss_fault fault, int b, const struct ss_check_site *a, int on_a,
		  const struct ss_check_site *o, int on_o)
{
	return p.found == 1 && p.last.fault == fault && p.last.block == p.block[b].number &&
	       a->stream.number == (uint64_t)on_a + 1 && o->stream.number == (uint64_t)on_o + 1;
}

/* One error, if the program has a place for it. Returns its kind, or SS_FAULTS; *good: it was
 * found. */
static enum ss_fault error(bool *good)
{
	int s = (int)draw(STREAMS), b = (int)draw(BLOCKS);
	struct block *k = &p.block[b];
	uint64_t missing;

	*good = false;
	if (joins_wild(s) || !k->state)
		return SS_FAULTS;
	if (k->state == 2) {
		bool ordered = !(k->free & ~before(s));

		if (p.wild[k->free_on])
			return SS_FAULTS; /* it was so perhaps when it freed */
		accesses(s, b);
		*good = names(ordered ? SS_FAULT_USE_AFTER_FREE : SS_FAULT_USE_FREE_RACE, b,
			      &p.last.use, s, &p.last.free, k->free_on);
		return ordered ? SS_FAULT_USE_AFTER_FREE : SS_FAULT_USE_FREE_RACE;
	}
	if (k->alloc & ~before(s)) {
		if (draw(2) || (k->uses & ~before(s))) {
			accesses(s, b);
			*good = names(SS_FAULT_USE_BEFORE_ALLOC, b, &p.last.use, s, &p.last.alloc,
				      k->alloc_on);
			return SS_FAULT_USE_BEFORE_ALLOC;
		}
		(void)ss_check_free(p.check, memory[b], &streams[s], NULL, "free", 3);
		*good = names(SS_FAULT_FREE_BEFORE_ALLOC, b, &p.last.free, s, &p.last.alloc,
			      k->alloc_on);
		return SS_FAULT_FREE_BEFORE_ALLOC;
	}
	missing = k->uses & ~before(s);
	if (!missing)
		return SS_FAULTS;
	for (int tries = 0; tries < 8 && draw(4); tries++) {
		struct access a = draw_access();
		uint64_t racing = 0;

		for (int i = 0; i < k->accesses; i++)
			if (!(k->access[i].bit & p.held) && conflict(&k->access[i], &a))
				racing |= k->access[i].bit & ~before(s);
		if (!racing)
			continue;
		reads_or_writes(s, b, &a);
		*good = p.found == 1 && p.last.fault == SS_FAULT_RACE &&
			p.last.block == k->number && p.last.use.stream.number == (uint64_t)s + 1 &&
			(p.on[p.last.other.stream.number - 1] & racing);
		return SS_FAULT_RACE;
	}
	(void)ss_check_free(p.check, memory[b], &streams[s], NULL, "free", 3);
	*good = p.found == 1 && p.last.fault == SS_FAULT_FREE_USE_RACE &&
		p.last.block == k->number && p.last.free.stream.number == (uint64_t)s + 1;
	/* Any of the streams that the free does not wait for may be named. */
	*good &= p.last.use.stream.number >= 1 && (p.on[p.last.use.stream.number - 1] & missing);
	return SS_FAULT_FREE_USE_RACE;
}

static void describe(const void *key, struct ss_check_stream *out, void *unused)
{
	(void)unused;
	out->handle = (void *)(uintptr_t)key;
	out->kind = p.kind[(const char *)key - streams];
	out->dev = p.dev[(const char *)key - streams];
}

static void begin(uint64_t seed)
{
	const struct ss_check_options options = {.use_before_alloc = true,
						 .use_after_free = true,
						 .races = true,
						 .frees = true,
						 .describe = describe,
						 .report = report};

	memset(&p, 0, sizeof(p));
	p.random = seed;
	p.check = ss_check_create(&options);
	for (int s = 0; s < STREAMS; s++) {
		p.kind[s] = s == 0 ? SS_CHECK_NULL :
			    s < 3  ? SS_CHECK_NONBLOCKING :
				     SS_CHECK_BLOCKING;
		p.dev[s] = seed & 2 && s % 2 == 0 && s > 0; /* 2 and 4, in every second pair */
		ss_check_stream_add(p.check, &streams[s]);
	}
}

static bool run(uint64_t seed)
{
	enum ss_fault kind;
	bool good;
	int steps;

	begin(seed);
	steps = 8 + (int)draw(STEPS - 16);
	while (p.step < steps)
		legal_step();
	if (p.found) {
		printf("seed %" PRIu64 ": a legal program: %s\n", seed,
		       ss_fault_name(p.last.fault));
		ss_check_destroy(p.check);
		return false;
	}
	for (int tries = 0; tries < 20 && seed % 2; tries++) {
		kind = error(&good);
		if (kind == SS_FAULTS)
			continue;
		put_in[kind]++;
		found_of[kind] += good;
		if (p.found && !good) {
			printf("seed %" PRIu64 ": an error of kind %s is told as %s\n", seed,
			       ss_fault_name(kind), ss_fault_name(p.last.fault));
			ss_check_destroy(p.check);
			return false;
		}
		break;
	}
	ss_check_destroy(p.check);
	return true;
}

int main(int argc, char **argv)
{
	uint64_t count = 20000, seed = 1, bad = 0;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--count"))
			count = strtoull(argv[i + 1], NULL, 0);
		if (!strcmp(argv[i], "--seed"))
			seed = strtoull(argv[i + 1], NULL, 0);
	}
	for (uint64_t i = 0; i < count && bad < 10; i++)
		bad += !run(seed + i);
	printf("%" PRIu64 " programs from seed %" PRIu64 "\n", count, seed);
	for (int k = 0; k < SS_FAULTS; k++) {
		if (!put_in[k])
			continue;
		printf("%-22s %8" PRIu64 " put in, %8" PRIu64 " found (%.2f %%)\n",
		       ss_fault_name((enum ss_fault)k), put_in[k], found_of[k],
		       100.0 * (double)found_of[k] / (double)put_in[k]);
		bad += found_of[k] != put_in[k];
	}
	return bad != 0;
}
