/* SPDX-License-Identifier: MIT */
/*
 * Prints the figures of each pool in a trace, as a program reads them from the pool's attributes
 * and as SOMASHIM_STATS prints them: trace_figures FILE. Fails if an event contradicts those before
 * it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/reader.h"

#define POOLS 64
#define LIVE 65536 /* most blocks that are live at once; a power of two */
#define MIB ((double)(1 << 20))

struct figures {
	uint64_t used, used_high, reserved, reserved_high, allocations, frees, failed;
};

static struct figures pool[POOLS];
static struct block {
	uint64_t address, rounded;
	uint32_t pool;
} live[LIVE];
static uint64_t live_count;

static void fail(const struct ss_trace_item *e, const char *what)
{
	printf("offset %" PRIu64 ", %s of %#" PRIx64 ": %s\n", e->offset,
	       ss_trace_kind_name(e->kind), e->address, what);
	exit(1);
}

/* The live block at the address, or a free place for it. */
static struct block *find(uint64_t address)
{
	uint64_t i = address * 0x9e3779b97f4a7c15ull >> 48;

	while (live[i % LIVE].address && live[i % LIVE].address != address)
		i++;
	return &live[i % LIVE];
}

/* Closes the gap that the block leaves in its chain. */
static void forget(struct block *b)
{
	uint64_t i = (uint64_t)(b - live);

	b->address = 0;
	while (live[i = (i + 1) % LIVE].address) {
		struct block moved = live[i];
		live[i].address = 0;
		*find(moved.address) = moved;
	}
}

static void raise(uint64_t *high, uint64_t now)
{
	*high = now > *high ? now : *high;
}

static void take_event(const struct ss_trace_item *e)
{
	struct figures *f = &pool[e->pool % POOLS];
	struct block *b;

	switch ((int)e->kind) {
	case SS_TRACE_ALLOC:
		b = find(e->address);
		if (b->address)
			fail(e, "is live already");
		*b = (struct block){e->address, e->rounded, e->pool};
		live_count++;
		f->allocations++;
		f->used += e->rounded;
		raise(&f->used_high, f->used);
		break;
	case SS_TRACE_FREE:
		b = find(e->address);
		if (!b->address || b->pool != e->pool)
			fail(e, "is not live");
		live_count--;
		f->frees++;
		f->used -= b->rounded;
		forget(b);
		break;
	case SS_TRACE_SEGMENT_ALLOC:
	case SS_TRACE_MAP:
		f->reserved += e->flags & SS_TRACE_S_RESERVED ? 0 : e->size;
		raise(&f->reserved_high, f->reserved);
		break;
	case SS_TRACE_SEGMENT_FREE:
	case SS_TRACE_UNMAP: f->reserved -= e->flags & SS_TRACE_S_RESERVED ? 0 : e->size; break;
	case SS_TRACE_OOM:
	case SS_TRACE_LIMIT:
		if (e->reserved != f->reserved || e->used != f->used)
			printf("note: others were at work\n");
		f->failed++;
		break;
	default: return;
	}
	if (f->used > f->reserved)
		fail(e, "more is used than reserved");
	if (e->pool == 0)
		fail(e, "belongs to no pool");
}

int main(int argc, char **argv)
{
	const char *path = argv[1];
	struct ss_trace_item e;
	char err[512];
	size_t count;

	if (argc != 2)
		return 2;
	struct ss_trace_reader *r = ss_trace_reader_open(path, err, sizeof(err));
	if (!r) {
		printf("error: %s\n", err);
		return 1;
	}
	while (ss_trace_reader_next(r, &e))
		take_event(&e);
	const struct ss_trace_pool_def *p = ss_trace_reader_pools(r, &count);
	for (size_t i = 0; i < count; i++) {
		const struct figures *f = &pool[p[i].id % POOLS];
		printf("0x%" PRIx64 " used %" PRIu64 " high %" PRIu64 " reserved %" PRIu64
		       " high %" PRIu64 "\n",
		       p[i].handle, f->used, f->used_high, f->reserved, f->reserved_high);
		printf("device %d %s pool allocations %" PRIu64 ", frees %" PRIu64
		       ", out of memory %" PRIu64
		       ", reserved %.1f MiB (high %.1f), used %.1f MiB (high %.1f)\n",
		       p[i].device, p[i].name, f->allocations, f->frees, f->failed,
		       (double)f->reserved / MIB, (double)f->reserved_high / MIB,
		       (double)f->used / MIB, (double)f->used_high / MIB);
	}
	const struct ss_trace_process_def *process = ss_trace_reader_process(r);
	const char *problem = ss_trace_reader_problem(r, &count);
	printf("live %" PRIu64 "\nend %s\nlost %" PRIu64 "\nproblems %zu%s%s\n", live_count,
	       ss_trace_end_name(process->end), process->lost_events, count, problem ? ": " : "",
	       problem ? problem : "");
	ss_trace_reader_close(r);
	return 0;
}
