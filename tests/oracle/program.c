/* SPDX-License-Identifier: MIT */
/* Makes a program from a seed, and prints programs. */
#include <string.h>

#include "oracle.h"

uint64_t rnd(uint64_t *s)
{
	uint64_t z = (*s += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static uint64_t below(uint64_t *s, uint64_t n)
{
	return rnd(s) % n;
}

static bool chance(uint64_t *s, int in)
{
	return rnd(s) % (uint64_t)in == 0;
}

/* Weights of the operations; a program scales some of them up or away. */
static const uint16_t weight[OP_COUNT] = {
	[OP_STREAM_CREATE] = 30, [OP_STREAM_DESTROY] = 12,
	[OP_KERNEL] = 150,       [OP_STALL] = 6,
	[OP_RELEASE] = 10,       [OP_ADVANCE] = 60,
	[OP_EVENT_CREATE] = 20,  [OP_EVENT_DESTROY] = 6,
	[OP_RECORD] = 70,        [OP_WAIT] = 80,
	[OP_EVENT_SYNC] = 12,    [OP_EVENT_QUERY] = 12,
	[OP_TAINT] = 5,          [OP_UNSEEN_RECORD] = 5,
	[OP_STREAM_SYNC] = 16,   [OP_STREAM_QUERY] = 12,
	[OP_DEVICE_SYNC] = 5,    [OP_BEGIN] = 24,
	[OP_REAL] = 36,          [OP_END] = 36,
	[OP_ALLOC] = 200,        [OP_FREE] = 170,
	[OP_SWAP] = 14,          [OP_ALLOC_CLASSIC] = 30,
	[OP_FREE_CLASSIC] = 30,  [OP_FREE_BAD] = 3,
	[OP_POOL_CREATE] = 8,    [OP_POOL_DESTROY] = 3,
	[OP_POOL_ATTR] = 8,      [OP_TRIM] = 6,
	[OP_POOL_CURRENT] = 2,   [OP_POOL_ACCESS] = 2,
	[OP_PEERS] = 2,          [OP_HOUSEKEEP] = 3,
	[OP_TICK] = 4,           [OP_FAIL] = 6,
	[OP_CAPTURE] = 4,        [OP_RESET] = 1,
	[OP_DISTRUST] = 1,       [OP_UNSEEN_STREAM] = 2,
	[OP_THREAD_EXIT] = 2,    [OP_HOOK] = 8,
};

static uint64_t some_size(uint64_t *s, const uint64_t *palette)
{
	static const int shift[] = {9, 12, 16, 20, 21, 22};

	if (!chance(s, 6))
		return palette[below(s, 4)];
	return 1 + below(s, 1ull << shift[below(s, 6)]) * (chance(s, 3) ? 2 : 1);
}

static void configure(struct config *c, uint64_t *s)
{
	static const uint64_t vram[] = {16, 32, 48, 96, 256, 1024, 65536};
	static const uint64_t decay[] = {0, 0, 1, 1000};

	c->devices = chance(s, 4) ? 2 : 1;
	c->threads = chance(s, 12) ? THREADS : 1;
	c->vram = vram[below(s, 7)] << 20;
	c->vmm = chance(s, 3);
	c->access_prefix = c->seed % 2;
	c->chunk = (c->seed / 8 % 4 ? 256 : 2048) << 10;
	c->query_spoils = c->seed / 4 % 2;
	c->lazy_query = chance(s, 3);
	c->restless = chance(s, 3);
	c->release_waits[SS_BACKING_HIP] = chance(s, 2);
	c->release_waits[SS_BACKING_VMM] = chance(s, 4);
	ss_options_default(&c->opt);
	c->opt.backing = (int)below(s, c->vmm ? 4 : 3);
	c->opt.fence = (int)below(s, 3);
	c->opt.decay_ms = decay[below(s, 4)];
	c->opt.oom_wait_ms = below(s, 2) * 20;
	/* Not drawn, so that a seed stays the same program */
	c->opt.growth_wait_ms = c->seed / 3 % 3 * 20;
	c->functions = c->seed / 16 % 4 == 2;
	if (chance(s, 3))
		c->opt.threshold[0] = (struct ss_amount){.bytes = below(s, 5) * below(s, 4) << 21,
							 .set = true};
	if (chance(s, 16))
		c->opt.align_large = 2 << 20;
	if (chance(s, 16))
		c->opt.initial = (struct ss_amount){.bytes = 8 << 20, .set = true};
	if (chance(s, 16))
		c->opt.limit = (struct ss_amount){.bytes = 64 << 20, .set = true};
}

/* A program that makes hipMalloc wait: large blocks of hipMalloc, freed without a wait, on a device
 * that lags. */
static void lag(struct program *p)
{
	p->cfg.vram = 65536ull << 20;
	for (int i = 0; i < p->count; i++) {
		struct op *op = &p->op[i];

		if (op->kind == OP_ALLOC)
			op->kind = OP_ALLOC_CLASSIC;
		else if (op->kind == OP_FREE)
			op->kind = OP_FREE_CLASSIC;
		else if (op->kind == OP_ADVANCE || op->kind == OP_STREAM_SYNC ||
			 op->kind == OP_DEVICE_SYNC)
			op->kind = OP_KERNEL;
		if (op->kind == OP_ALLOC_CLASSIC)
			op->n = (4ull << 20) + op->n % (8ull << 20);
		if (op->kind == OP_FREE_CLASSIC)
			op->flags &= (uint8_t)~OPF_WAITED;
	}
}

void program_generate(struct program *p, uint64_t seed, int ops)
{
	uint64_t state = seed * 0x2545f4914f6cdd1dull + 0x1234567, *s = &state;
	uint64_t palette[4];
	uint32_t w[OP_COUNT], total = 0;
	int streams, first, events, blocks, pending = 0, next = 0, idioms;
	struct op queued[16];

	memset(&p->cfg, 0, sizeof(p->cfg));
	p->cfg.seed = seed;
	configure(&p->cfg, s);
	p->count = ops ? ops : 50 + (int)(below(s, 451) * below(s, 451) / 450);
	if (p->count > MAXOPS)
		p->count = MAXOPS;
	for (int i = 0; i < OP_COUNT; i++) {
		w[i] = weight[i];
		if (chance(s, 6))
			w[i] = 0;
		else if (chance(s, 8))
			w[i] *= 4;
	}
	w[OP_ALLOC] = w[OP_ALLOC] ? w[OP_ALLOC] : 100;
	w[OP_KERNEL] = w[OP_KERNEL] ? w[OP_KERNEL] : 100;
	if (!chance(s, 10))
		w[OP_DISTRUST] = w[OP_UNSEEN_STREAM] = w[OP_RESET] = 0;
	if (w[OP_UNSEEN_STREAM]) {
		w[OP_DISTRUST] *= 5;
		w[OP_UNSEEN_STREAM] *= 5;
	}
	if (chance(s, 2))
		w[OP_STALL] = w[OP_CAPTURE] = 0;
	for (int i = 0; i < OP_COUNT; i++)
		total += w[i];
	for (int i = 0; i < 4; i++)
		palette[i] = (512ull << below(s, chance(s, 2) ? 14 : 6)) +
			     (chance(s, 2) ? 0 : 512 * below(s, 9));
	streams = 1 + (int)below(s, SLOTS - FIRST_USER);
	first = chance(s, 2) ? 0 : FIRST_USER - (chance(s, 4) ? 2 : 0);
	events = 1 + (int)below(s, EVENTS);
	blocks = 2 + (int)below(s, chance(s, 3) ? BLOCKS - 1 : 8);

	idioms = chance(s, 3) ? 0 : chance(s, 2) ? 12 : 50;

	for (int i = 0; i < p->count; i++) {
		struct op *op = &p->op[i];
		uint32_t pick = (uint32_t)below(s, total);
		int kind = 0;

		if (next == pending && idioms && i > streams + 2 && chance(s, idioms)) {
			pending = idiom_strew(queued, 16, s, streams, events, blocks,
					      palette[below(s, 4)]);
			next = 0;
		}
		if (next < pending && !chance(s, 6)) {
			*op = queued[next++];
			continue;
		}
		while (pick >= w[kind])
			pick -= w[kind++];
		if (i < streams + 1)
			kind = OP_STREAM_CREATE;
		else if (i < streams + 2)
			kind = OP_EVENT_CREATE;
		memset(op, 0, sizeof(*op));
		op->kind = (uint8_t)kind;
		op->thread = chance(s, 3) ? (uint8_t)below(s, THREADS) : 0;
		op->a = (uint8_t)rnd(s);
		op->b = (uint8_t)rnd(s);
		op->c = (uint8_t)rnd(s);
		op->d = (uint8_t)rnd(s);
		uint8_t stream = (uint8_t)(first +
					   (int)below(s, (uint64_t)(FIRST_USER + streams - first)));
		switch (kind) {
		case OP_STREAM_CREATE:
		case OP_STREAM_DESTROY:
		case OP_UNSEEN_STREAM: op->a = (uint8_t)below(s, (uint64_t)streams); break;
		case OP_KERNEL:
			op->flags = chance(s, 6) ? OPF_INNER : 0;
			if (seed / 16 % 4 == 1 && op->b % 8 == 0) /* nor is this */
				op->flags |= OPF_HOST;
			/* fall through */
		case OP_STALL:
		case OP_CAPTURE: op->a = stream; break;
		case OP_ADVANCE:
			op->a = chance(s, 3) ? 255 : op->a;
			if (p->cfg.functions && op->c % 8 == 0) /* not drawn, as above */
				op->flags = OPF_HOST;
			op->b = 1 + op->b % 8;
			break;
		case OP_EVENT_CREATE:
		case OP_EVENT_DESTROY: op->a = (uint8_t)below(s, (uint64_t)events); break;
		case OP_RECORD:
		case OP_WAIT:
		case OP_EVENT_SYNC:
		case OP_EVENT_QUERY:
		case OP_STREAM_SYNC:
		case OP_STREAM_QUERY:
		case OP_BEGIN:
		case OP_TAINT:
		case OP_UNSEEN_RECORD:
			op->a = (uint8_t)below(s, (uint64_t)events);
			op->b = stream;
			op->flags = chance(s, 12) ? OPF_FAILS : 0;
			op->flags |= chance(s, 4) ? OPF_NOWAIT : 0;
			break;
		case OP_ALLOC:
		case OP_ALLOC_CLASSIC:
			op->a = (uint8_t)below(s, (uint64_t)blocks);
			op->b = kind == OP_ALLOC ? stream : op->b;
			op->n = some_size(s, palette);
			break;
		case OP_FREE:
		case OP_SWAP:
		case OP_FREE_CLASSIC:
		case OP_FREE_BAD:
			op->a = (uint8_t)below(s, (uint64_t)blocks);
			op->b = stream;
			op->flags = chance(s, 2) ? OPF_WAITED : 0;
			op->flags |= chance(s, 12) && kind != OP_SWAP ? OPF_INNER : 0;
			op->n = rnd(s) >> 16;
			break;
		case OP_POOL_CREATE:
			op->flags = chance(s, 4) ? 1 : 0;
			op->n = (1 + below(s, 16)) << 21;
			break;
		case OP_POOL_ATTR:
		case OP_TRIM: op->n = chance(s, 3) ? 0 : below(s, 64) << 20; break;
		case OP_TICK: op->n = 1 + below(s, 1500); break;
		}
	}
	if (seed % 16 == 5)
		lag(p);
}

/* ---- printing ------------------------------------------------------------- */

static const char *const names[OP_COUNT] = {
	"stream_create", "stream_destroy", "kernel",        "stall",         "release",
	"advance",       "event_create",   "event_destroy", "record",        "wait",
	"event_sync",    "event_query",    "taint",         "unseen_record", "stream_sync",
	"stream_query",  "device_sync",    "begin",         "real",          "end",
	"alloc",         "free",           "swap",          "alloc_classic", "free_classic",
	"free_bad",      "pool_create",    "pool_destroy",  "pool_attr",     "trim",
	"pool_current",  "pool_access",    "peers",         "housekeep",     "tick",
	"fail",          "capture",        "reset",         "distrust",      "unseen_stream",
	"thread_exit",   "hook",
};

static const char *slot_name(int slot, char *buf)
{
	slot %= SLOTS;
	if (slot < 2)
		sprintf(buf, "null%d", slot);
	else if (slot < FIRST_USER)
		sprintf(buf, "thread%d", slot - 2);
	else
		sprintf(buf, "s%d", slot - FIRST_USER);
	return buf;
}

void op_print(const struct op *op, FILE *out)
{
	static const char *const pairs[] = {"record",       "wait",        "event_sync",
					    "stream_sync",  "device_sync", "event_query",
					    "stream_query", "record"};
	char s[16];

	fprintf(out, "%s", names[op->kind]);
	switch (op->kind) {
	case OP_STREAM_CREATE:
	case OP_UNSEEN_STREAM:
		fprintf(out, " s%d on device %d, %s", op->a % (SLOTS - FIRST_USER), op->b & 1,
			op->c & 1 ? "blocking" : "non-blocking");
		break;
	case OP_STREAM_DESTROY: fprintf(out, " s%d", op->a % (SLOTS - FIRST_USER)); break;
	case OP_KERNEL:
	case OP_STALL:
	case OP_CAPTURE:
		fprintf(out, " %s%s%s", slot_name(op->a, s),
			op->flags & OPF_INNER ? " (unseen)" : "",
			op->flags & OPF_HOST ? " (host)" : "");
		break;
	case OP_ADVANCE:
		fprintf(out, " %d by %d%s", op->a == 255 ? -1 : op->a, op->b,
			op->flags & OPF_HOST ? ", a host function begins or ends" : "");
		break;
	case OP_EVENT_CREATE:
	case OP_EVENT_DESTROY:
	case OP_EVENT_SYNC:
	case OP_EVENT_QUERY: fprintf(out, " e%d", op->a % EVENTS); break;
	case OP_RECORD:
	case OP_WAIT:
	case OP_TAINT:
	case OP_UNSEEN_RECORD:
		fprintf(out, " e%d, %s%s", op->a % EVENTS, slot_name(op->b, s),
			op->kind == OP_TAINT && op->c & 1 ? " sticky" : "");
		break;
	case OP_STREAM_SYNC:
	case OP_STREAM_QUERY: fprintf(out, " %s", slot_name(op->b, s)); break;
	case OP_BEGIN:
		fprintf(out, " #%d: %s e%d, %s, device %d", op->d % PAIRS, pairs[op->c % 8],
			op->a % EVENTS, slot_name(op->b, s), op->b & 1);
		break;
	case OP_REAL:
	case OP_END: fprintf(out, " #%d", op->d % PAIRS); break;
	case OP_ALLOC:
		fprintf(out, " b%d, %s, pool %d, %lu bytes", op->a % BLOCKS, slot_name(op->b, s),
			op->c % (POOLS + 2), (unsigned long)op->n);
		break;
	case OP_ALLOC_CLASSIC:
		fprintf(out, " b%d, device %d, %lu bytes", op->a % BLOCKS, op->b & 1,
			(unsigned long)op->n);
		break;
	case OP_FREE:
	case OP_SWAP: fprintf(out, " b%d, %s", op->a % BLOCKS, slot_name(op->b, s)); break;
	case OP_FREE_CLASSIC:
		fprintf(out, " b%d%s%s", op->a % BLOCKS, op->flags & OPF_WAITED ? " waited" : "",
			op->flags & OPF_INNER ? " interior" : "");
		break;
	case OP_FAIL: fprintf(out, " %s, call %d", device_ops[op->a % 10], 1 + op->b % 3); break;
	case OP_HOOK:
		fprintf(out, " the next %d operations run %s a driver call of the one after",
			op->a % 4 + 1, op->b & 1 ? "after" : "in");
		break;
	default: fprintf(out, " a=%d b=%d c=%d n=%lu", op->a, op->b, op->c, (unsigned long)op->n);
	}
	fprintf(out, "%s\n", op->flags & OPF_FAILS && op->kind < OP_ALLOC ? " (fails)" : "");
}

void program_print(const struct program *p, FILE *out)
{
	const struct config *c = &p->cfg;

	fprintf(out,
		"seed %lu: %d devices of %lu MiB%s, %d threads, backing %d, fence %d, "
		"decay %lu, threshold %ld, oom wait %lu%s%s%s%s\n",
		(unsigned long)c->seed, c->devices, (unsigned long)(c->vram >> 20),
		!c->vmm          ? "" :
		c->access_prefix ? " with VMM (prefix)" :
				   " with VMM",
		c->threads, c->opt.backing, c->opt.fence, (unsigned long)c->opt.decay_ms,
		c->opt.threshold[0].set ? (long)c->opt.threshold[0].bytes : -1L,
		(unsigned long)c->opt.oom_wait_ms, c->lazy_query ? ", lazy queries" : "",
		c->query_spoils ? ", queries spoil captures" : "",
		c->release_waits[SS_BACKING_HIP] ? ", hip release waits" : "",
		c->release_waits[SS_BACKING_VMM] ? ", vmm release waits" : "");
	for (int i = 0; i < p->count; i++) {
		fprintf(out, "%4d%s ", i, c->threads > 1 ? "" : ":");
		if (c->threads > 1)
			fprintf(out, " t%d:", p->op[i].thread % c->threads);
		op_print(&p->op[i], out);
	}
}
