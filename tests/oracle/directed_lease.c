/* SPDX-License-Identifier: MIT */
/* Directed tests of what a stream divides by itself: pools that are steady at once. */
#include "directed.h"

#define MIB (1ull << 20)
#define CHECK(cond) d_check((cond), #cond, __LINE__)

/* A segment is cut and put together again as sizes change, all hits but the first. */
static void lease_divides(void)
{
	D(stream(0, NB), alloc(0, S(0), MIB));
	uint64_t p = at(0);

	D(alloc(1, S(0), 2 * MIB), alloc(2, S(0), MIB / 2), free_(0, S(0)), free_(2, S(0)));
	D(alloc(3, S(0), MIB / 4), alloc(4, S(0), MIB / 4), free_(1, S(0)), free_(3, S(0)));
	D(free_(4, S(0)), alloc(5, S(0), 4 * MIB));
	CHECK(at(5) == p && given() == 4 * MIB);
	CHECK(d_stats().misses == 1 && d_stats().allocations == 6);
}

/* What others may have of it is not lost to them. */
static void lease_ends_for_others(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), MIB), alloc(1, S(0), MIB));
	uint64_t p = at(0);

	D(free_(0, S(0)), alloc(2, S(0), MIB / 2), free_(1, S(0)), free_(2, S(0)), ssync(S(0)));
	D(alloc(3, S(1), 4 * MIB));
	CHECK(at(3) == p && given() == 4 * MIB);
}

/* Nor do all streams lose what they divide because one of them has what another needs. */
static void lease_ends_for_one(void)
{
	D(stream(0, NB), stream(1, NB), stream(2, NB), alloc(0, S(0), 4 * MIB));
	D(alloc(1, S(1), 4 * MIB), free_(0, S(0)), free_(1, S(1)), ssync(S(0)), ssync(S(1)));
	D(alloc(2, S(2), 2 * MIB));
	uint64_t own = d_stats().reuse_same_stream;

	D(alloc(3, S(0), MIB), alloc(4, S(1), MIB));
	CHECK(d_stats().reuse_same_stream == own + 1 && given() == 8 * MIB);
}

/* An address inside a block is known while its stream divides what lies round it. */
static void lease_interior(void)
{
	struct op inner = cfree(0, true);

	inner.flags |= OPF_INNER;
	inner.n = 12345;
	D(stream(0, NB), alloc(0, S(0), 2 * MIB), alloc(1, S(0), MIB), alloc(2, S(0), MIB));
	D(free_(1, S(0)), inner, alloc(3, S(0), 3 * MIB));
	CHECK(given() == 4 * MIB);
}

/* The upper of two ranges that become one was freed later, and that stays known. */
static void lease_keeps_marks(void)
{
	D(stream(0, NB), stream(1, NB), event(0), alloc(0, S(0), MIB), alloc(1, S(0), MIB),
	  alloc(2, S(0), 2 * MIB), stall(S(0)), free_(0, S(0)), record(0, S(0)), kernel(S(0)),
	  free_(1, S(0)));
	uint64_t p = at(0);

	D(alloc(3, S(0), MIB + MIB / 2));
	CHECK(at(3) == p && given() == 4 * MIB);
	D(wait_(S(1), 0), alloc(4, S(1), MIB / 2));
	CHECK(given() == 8 * MIB); /* what is left lies behind the event */
	D((struct op){ .kind = OP_RELEASE });
}

/* A block that was freed on another stream is not that stream's to merge. */
static void lease_not_others(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(1), MIB), alloc(1, S(1), 3 * MIB));
	D(alloc(2, S(0), MIB), alloc(3, S(0), MIB), alloc(4, S(0), 2 * MIB), stall(S(0)));
	D(free_(3, S(0)), alloc(5, S(0), 4 * MIB)); /* the MiB between them is free now */
	CHECK(given() == 12 * MIB);
	D(free_(2, S(1)), free_(0, S(1)), alloc(6, S(1), 2 * MIB));
	CHECK(given() == 16 * MIB);
	D((struct op){ .kind = OP_RELEASE });
}

const struct d_test directed_lease[] = {
	T(lease_divides), T(lease_ends_for_others), T(lease_ends_for_one),
	T(lease_interior), T(lease_keeps_marks), T(lease_not_others), { .name = NULL },
};
