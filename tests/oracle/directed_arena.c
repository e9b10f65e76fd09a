/* SPDX-License-Identifier: MIT */
/* Tests the shelf of a stream: how it divides memory, and what other streams get of it. */
#include "directed.h"

#define MIB (1ull << 20)
#define CHECK(cond) d_check((cond), #cond, __LINE__)

/* A segment is split and merged as sizes change; all allocations but the first are hits. */
static void arena_divides(void)
{
	D(stream(0, NB), alloc(0, S(0), MIB));
	uint64_t p = at(0);

	D(alloc(1, S(0), 2 * MIB), alloc(2, S(0), MIB / 2), free_(0, S(0)), free_(2, S(0)));
	D(alloc(3, S(0), MIB / 4), alloc(4, S(0), MIB / 4), free_(1, S(0)), free_(3, S(0)));
	D(free_(4, S(0)), alloc(5, S(0), 4 * MIB));
	CHECK(at(5) == p && given() == 4 * MIB);
	CHECK(d_stats().misses == 1 && d_stats().allocations == 6);
}

/* Other streams can get memory of a shelf. */
static void arena_ends_for_others(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), MIB), alloc(1, S(0), MIB));
	uint64_t p = at(0);

	D(free_(0, S(0)), alloc(2, S(0), MIB / 2), free_(1, S(0)), free_(2, S(0)), ssync(S(0)));
	D(alloc(3, S(1), 4 * MIB));
	CHECK(at(3) == p && given() == 4 * MIB);
}

/* A stream keeps its shelf when another stream needs one block of it. */
static void arena_ends_for_one(void)
{
	D(stream(0, NB), stream(1, NB), stream(2, NB), alloc(0, S(0), 4 * MIB));
	D(alloc(1, S(1), 4 * MIB), free_(0, S(0)), free_(1, S(1)), ssync(S(0)), ssync(S(1)));
	D(alloc(2, S(2), 2 * MIB));
	D(alloc(3, S(0), MIB), alloc(4, S(1), MIB));
	CHECK(given() == 8 * MIB);
}

/* One block of a shelf goes to another stream, and the shelf serves the rest as before. */
static void arena_gives(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), MIB), alloc(1, S(0), MIB));
	D(alloc(2, S(0), MIB / 2), alloc(3, S(0), MIB / 2), alloc(9, S(0), MIB));
	uint64_t p = at(1);

	D(free_(1, S(0)), free_(3, S(0)), ssync(S(0)), alloc(4, S(1), MIB / 2));
	CHECK(at(4) == p + MIB + MIB / 2 && given() == 4 * MIB);
	D(alloc(5, S(1), MIB / 2), alloc(6, S(0), MIB / 4), free_(6, S(0)),
	  alloc(7, S(0), MIB / 2));
	CHECK(at(5) == p && at(6) == p + MIB / 2 && at(7) == p + MIB / 2);
	CHECK(given() == 4 * MIB);
	/* The block merges with its former neighbours once both are free. */
	D(free_(4, S(1)), free_(5, S(1)), free_(7, S(0)), free_(0, S(0)), free_(2, S(0)));
	D(free_(9, S(0)));
	D(ssync(S(0)), ssync(S(1)), alloc(8, S(1), 4 * MIB));
	CHECK(given() == 4 * MIB);
}

/* Memory that has not completed does not go to another stream. */
static void arena_gives_completed(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), MIB), alloc(2, S(0), 2 * MIB));
	D(alloc(1, S(0), MIB));
	uint64_t p = at(1);

	D(free_(1, S(0)), ssync(S(0)), stall(S(0)), kernel(S(0)));
	D(free_(0, S(0)), alloc(3, S(1), MIB));
	CHECK(at(3) == p && given() == 4 * MIB);
	D(alloc(4, S(1), MIB));
	CHECK(given() == 8 * MIB);
	D((struct op){.kind = OP_RELEASE});
}

/* With sizes that are never repeated, freed blocks merge at once, and none is lost. */
static void arena_merges(void)
{
	struct op half = alloc(0, S(0), MIB / 2);

	D(stream(0, NB), half);
	for (unsigned i = 1; i < 40; i++)
		D(alloc(1, S(0), i * 3072), alloc(2, S(0), i * 5120), free_(1, S(0)),
		  free_(2, S(0)));
	uint64_t own = d_stats().reuse_same_stream;

	D(alloc(1, S(0), 700 << 10), alloc(2, S(0), 900 << 10), free_(1, S(0)), free_(2, S(0)));
	D(alloc(3, S(0), 1600 << 10), alloc(4, S(0), 1 << 20));
	CHECK(d_stats().reuse_same_stream == own + 4 && given() == 4 * MIB);
}

/* An address inside a block is found while its stream splits and merges the ranges beside it. */
static void arena_interior(void)
{
	struct op inner = cfree(0, true);

	inner.flags |= OPF_INNER;
	inner.n = 12345;
	D(stream(0, NB), alloc(0, S(0), 2 * MIB), alloc(1, S(0), MIB), alloc(2, S(0), MIB));
	D(free_(1, S(0)), inner, alloc(3, S(0), 3 * MIB));
	CHECK(given() == 4 * MIB);
}

/* Two ranges merge, of which the upper was freed later: the result keeps the later mark. */
static void arena_keeps_marks(void)
{
	D(stream(0, NB), stream(1, NB), event(0), alloc(0, S(0), MIB), alloc(1, S(0), MIB),
	  alloc(2, S(0), 2 * MIB), stall(S(0)), free_(0, S(0)), record(0, S(0)), kernel(S(0)),
	  free_(1, S(0)));
	uint64_t p = at(0);

	D(alloc(3, S(0), MIB + MIB / 2));
	CHECK(at(3) == p && given() == 4 * MIB);
	D(wait_(S(1), 0), alloc(4, S(1), MIB / 2));
	CHECK(given() == 8 * MIB); /* the merged range was freed after the event */
	D((struct op){.kind = OP_RELEASE});
}

/* What an event lets a stream have is that stream's alone: the rest has not completed. */
static void arena_keeps_ordered(void)
{
	D(stream(0, NB), stream(1, NB), stream(2, NB), event(0), alloc(0, S(0), 4 * MIB),
	  stall(S(0)), kernel(S(0)), free_(0, S(0)), record(0, S(0)), wait_(S(1), 0));
	uint64_t p = at(0);

	D(alloc(1, S(1), MIB));
	CHECK(at(1) == p && given() == 4 * MIB);
	D(alloc(2, S(2), MIB));
	CHECK(given() == 8 * MIB);
	D((struct op){.kind = OP_RELEASE});
}

/* What a stream frees beside another stream's ranges does not merge with those. */
static void arena_not_others(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(1), MIB), alloc(1, S(1), 3 * MIB));
	D(alloc(2, S(0), MIB), alloc(3, S(0), MIB), alloc(4, S(0), 2 * MIB), stall(S(0)));
	D(free_(3, S(0)), alloc(5, S(0), 4 * MIB)); /* the MiB between them is free now */
	CHECK(given() == 12 * MIB);
	D(free_(2, S(1)), free_(0, S(1)), alloc(6, S(1), 2 * MIB));
	CHECK(given() == 16 * MIB);
	D((struct op){.kind = OP_RELEASE});
}

/* What another stream freed and has completed joins the ranges of the shelf that it lies between,
 * though those have not completed. */
static void arena_adopts_between(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), MIB), alloc(1, S(0), MIB),
	  alloc(2, S(0), MIB), alloc(3, S(0), MIB));
	uint64_t p = at(0);

	D(ssync(S(0)), free_(1, S(1)), ssync(S(1)), stall(S(0)), kernel(S(0)), free_(0, S(0)),
	  free_(2, S(0)));
	D(alloc(4, S(0), 3 * MIB));
	CHECK(at(4) == p && given() == 4 * MIB);
	D((struct op){.kind = OP_RELEASE});
}

/* The same on one side only. */
static void arena_adopts_beside(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), MIB), alloc(1, S(0), MIB),
	  alloc(2, S(0), MIB), alloc(3, S(0), MIB));
	uint64_t p = at(0);

	D(ssync(S(0)), free_(3, S(1)), free_(0, S(1)), ssync(S(1)), stall(S(0)), kernel(S(0)),
	  free_(1, S(0)));
	D(alloc(4, S(0), 2 * MIB));
	CHECK(at(4) == p && given() == 4 * MIB);
	D(free_(2, S(0)), alloc(5, S(0), 2 * MIB));
	CHECK(at(5) == p + 2 * MIB && given() == 4 * MIB);
	D((struct op){.kind = OP_RELEASE});
}

const struct d_test directed_arena[] = {
	T(arena_divides),    T(arena_ends_for_others), T(arena_ends_for_one),
	T(arena_gives),      T(arena_gives_completed), T(arena_merges),
	T(arena_interior),   T(arena_keeps_marks),     T(arena_keeps_ordered),
	T(arena_not_others), T(arena_adopts_between),  T(arena_adopts_beside),
	{.name = NULL},
};
