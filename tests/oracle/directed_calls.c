/* SPDX-License-Identifier: MIT */
/*
 * Tests calls that fail, and operations between the two halves of a watched call. Positions must
 * have been read before the real call.
 */
#include <stdlib.h>
#include <string.h>

#include "directed.h"

#define BIG (32ull << 20)
#define CHECK(cond) d_check((cond), #cond, __LINE__)

enum { RECORD, WAIT, EVENT_SYNC, STREAM_SYNC, DEVICE_SYNC, EVENT_QUERY, STREAM_QUERY };

DOP(begin)(int pair, int call, int e, int s)
{
	return (struct op){.kind = OP_BEGIN,
			   .a = (uint8_t)e,
			   .b = (uint8_t)s,
			   .c = (uint8_t)call,
			   .d = (uint8_t)pair};
}
DOP(real)(int pair)
{
	return (struct op){.kind = OP_REAL, .d = (uint8_t)pair};
}
DOP(end)(int pair)
{
	return (struct op){.kind = OP_END, .d = (uint8_t)pair};
}
DOP(fails)(struct op op)
{
	op.flags |= OPF_FAILS;
	return op;
}
/* The driver's next call of this kind fails. */
DOP(refuse)(int call)
{
	return (struct op){.kind = OP_FAIL, .a = (uint8_t)call};
}

/* Is block b new memory, not memory that was freed before? */
static bool grows(int b, int s)
{
	uint64_t before = given();

	D(alloc(b, s, BIG));
	return given() == before + BIG;
}

static void freed_in_record(void)
{
	D(stream(0, NB), stream(1, NB), event(0), alloc(0, S(0), BIG));
	D(begin(0, RECORD, 0, S(0)), real(0), kernel(S(0)), free_(0, S(0)), end(0));
	D(wait_(S(1), 0));
	CHECK(grows(1, S(1)));
}

static void recorded_in_wait(void)
{
	D(stream(0, NB), stream(1, NB), event(0), alloc(0, S(0), BIG), record(0, S(0)));
	D(begin(0, WAIT, 0, S(1)), real(0), kernel(S(0)), free_(0, S(0)));
	D(record(0, S(0)), end(0));
	CHECK(grows(1, S(1)));
}

/* The real calls end in another order than they began, so the event does not hold the record that
 * began last. */
static void records_overlap(void)
{
	D(stream(0, NB), stream(1, NB), stream(2, NB), event(0), alloc(0, S(0), BIG));
	D(kernel(S(0)), free_(0, S(0)), begin(0, RECORD, 0, S(2)), begin(1, RECORD, 0, S(0)));
	D(real(1), real(0), end(0), end(1), wait_(S(1), 0));
	CHECK(grows(1, S(1)));
	D(record(0, S(0)), wait_(S(1), 0)); /* the next record gives a clock again */
	CHECK(!grows(2, S(1)));
}

static void freed_in_sync(void)
{
	for (int call = STREAM_SYNC; call <= STREAM_QUERY; call++) {
		if (call == EVENT_QUERY)
			continue;
		D(stream(0, NB), stream(1, NB), alloc(0, S(0), BIG));
		D(begin(0, call, 0, S(0)), real(0), kernel(S(0)), free_(0, S(0)), end(0));
		CHECK(grows(1, S(1)));
		D(dsync(), free_(1, S(1)), dsync(), trim(0), sdestroy(0), sdestroy(1));
	}
}

static void recorded_in_sync(void)
{
	D(stream(0, NB), stream(1, NB), event(0), alloc(0, S(0), BIG), record(0, S(0)));
	D(begin(0, EVENT_SYNC, 0, 0), real(0), kernel(S(0)), free_(0, S(0)));
	D(record(0, S(0)), end(0));
	CHECK(grows(1, S(1)));
}

static void failed_calls(void)
{
	D(stream(0, NB), stream(1, NB), event(0), alloc(0, S(0), BIG), kernel(S(0)));
	D(free_(0, S(0)), fails(record(0, S(0))), wait_(S(1), 0));
	CHECK(grows(1, S(1)));
	D(record(0, S(0)), fails(wait_(S(1), 0)));
	CHECK(grows(2, S(1)));
	D(fails(ssync(S(0))), fails(dsync()));
	CHECK(grows(3, S(1)));
	D(wait_(S(1), 0)); /* the earlier record, which succeeded, still counts */
	CHECK(!grows(4, S(1)));
}

static void event_reborn(void)
{
	D(stream(0, NB), stream(1, NB), event(0), alloc(0, S(0), BIG), kernel(S(0)));
	D(free_(0, S(0)), record(0, S(0)), (struct op){.kind = OP_EVENT_DESTROY}, event(0),
	  wait_(S(1), 0));
	CHECK(grows(1, S(1)));
}

/* No fence tells when a destroyed stream has finished, so its slot is not reused. */
static void slot_waits(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)));
	D(refuse(D_RECORD), sdestroy(0), stream(0, NB));
	CHECK(grows(1, S(0)));
	CHECK(grows(2, S(1)));
	D(dsync());
	CHECK(!grows(3, S(1)));
}

/* ---- the null stream ------------------------------------------------------- */

/* S(1) is busy with what the null stream freed: S(0) comes after the null stream,
 * but no command stands there that comes after S(1). */
static void null_free_is_for_null(void)
{
	D(stream(0, BL), stream(1, BL), event(0), alloc(0, NUL, BIG), kernel(S(1)), free_(0, NUL));
	CHECK(grows(1, S(0)));
	D(ssync(S(0)));
	CHECK(grows(2, S(0)));
	D(record(0, NUL), wait_(S(0), 0));
	CHECK(!grows(3, S(0)));
}

/* The null stream's order is passed on to nobody: a record on S(0) joins what is on
 * the null stream by then. */
static void null_not_transitive(void)
{
	D(stream(0, BL), stream(1, NB), event(0), alloc(0, NUL, BIG), record(0, S(0)));
	D(kernel(NUL), free_(0, NUL), wait_(S(1), 0));
	CHECK(grows(1, S(1)));
}

/* The same within the null stream: it joins before it hands out what it freed. */
static void null_joins(void)
{
	D(stream(0, BL), stream(1, BL), alloc(0, NUL, BIG), kernel(S(0)), free_(0, NUL));
	CHECK(!grows(1, NUL));
	D(kernel(S(1)));
}

/* It joins even if an earlier attempt failed. */
static void null_joins_after_failure(void)
{
	D(stream(0, BL), stream(1, BL), event(0), alloc(0, NUL, BIG), kernel(S(0)));
	D(free_(0, NUL), fails(record(0, NUL)), alloc(1, NUL, BIG), kernel(S(1)));
}

/* A stream that the null stream must still join cannot be destroyed without a wait. */
static void null_waits_after_failure(void)
{
	D(stream(0, BL), event(0), alloc(0, NUL, BIG), kernel(S(0)), free_(0, NUL));
	D(fails(record(0, NUL)), sdestroy(0));
	CHECK(!grows(1, NUL));
}

/* After a bypass a query proves nothing to us, and still enqueues the command that
 * makes its answer true for the program. (The sync has reached the end of S(0), where
 * there is no command.) */
static void distrusted_query(void)
{
	D(stream(0, BL), stream(1, NB), alloc(0, NUL, BIG));
	D(begin(0, STREAM_SYNC, 0, S(0)), kernel(NUL), free_(0, S(0)));
	D((struct op){.kind = OP_DISTRUST}, alloc(1, S(0), BIG), real(0), end(0));
	D((struct op){.kind = OP_STREAM_QUERY, .b = S(0)}, kernel(S(1)));
}

/* ---- marks of ranges -------------------------------------------------------- */

static void split_keeps_marks(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)));
	D(alloc(1, S(0), BIG / 2));
	uint64_t before = given();
	D(alloc(2, S(1), BIG / 2));
	CHECK(given() > before);
	D(alloc(3, S(0), BIG / 2));
	CHECK(given() == before + BIG / 2 && at(3) == at(1) + BIG / 2);
}

/* Two neighbours are freed, one before and one after an event: merged they carry the later mark. */
static void merge_keeps_marks(void)
{
	D(stream(0, NB), stream(1, NB), event(0), alloc(0, S(0), BIG), free_(0, S(0)));
	D(alloc(1, S(0), BIG / 2), alloc(2, S(0), BIG / 2), kernel(S(0)));
	D(free_(1, S(0)), record(0, S(0)), kernel(S(0)), free_(2, S(0)), wait_(S(1), 0));
	CHECK(grows(3, S(1)));
	CHECK(!grows(4, S(0)));
}

static void epoch_of_all(void)
{
	D(ssync(NUL), stream(0, NB), stream(1, BL), stream(2, NB), calloc_(0, BIG));
	D(kernel(S(2)));
	D(cfree(0, false), ssync(NUL), ssync(S(0)), ssync(S(1)));
	uint64_t before = given();
	D(calloc_(1, BIG));
	CHECK(given() == before + BIG);
	D(ssync(S(2)), calloc_(2, BIG));
	CHECK(given() == before + BIG);
}

/* A null stream that nothing joins may have a fence in a call that joins nothing. Not so if another
 * thread begins a stream that joins it before that. */
static void null_fence_beside_new_stream(void)
{
	const struct op finish = {.kind = OP_ADVANCE, .a = 1, .b = 255}; /* S(0) */

	D(stream(0, NB), calloc_(0, (4 << 20) + 2048), calloc_(1, (4 << 20) + 1536));
	D(kernel(S(0)), kernel(NUL));
	BESIDE(calloc_(2, 5 << 20), kernel(PT), finish);
	D(ssync(S(0)));
}

/* If the free of one family meets a block of the other, the stricter rule holds: every stream of
 * the device gates the reuse. */
static void mixed_frees(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), calloc_(1, BIG));
	D(kernel(S(0)), kernel(S(1)));
	D(cfree(0, false), free_(1, S(0))); /* hipFree, and hipFreeAsync of a hipMalloc block */
	CHECK(grows(2, S(0)));
	uint64_t before = given();
	D(calloc_(3, BIG));
	CHECK(given() == before + BIG);
	D(ssync(NUL), ssync(S(0)));
	CHECK(grows(4, S(0)));
	D(ssync(S(1)), calloc_(5, BIG));
	CHECK(!grows(6, S(0)));
	CHECK(given() == before + 2 * BIG);
}

/* A pool that must not use completions does not use those that another pool's fence has shown. */
static void opportunistic_elsewhere(void)
{
	struct op other = alloc(1, S(0), BIG);

	other.c = 0;
	D((struct op){.kind = OP_POOL_CREATE, .c = 7}, stream(0, NB), stream(1, NB));
	D(attr(2, 0), other, alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)), free_(1, S(0)));
	for (int i = 2; i < 4; i++) {
		other = alloc(i, S(1), BIG);
		other.c = 0;
		D(other, advance()); /* asks for a fence; learns of it */
	}
	CHECK(at(3) != 0 && d_stats().reuse_completed == 0);
	CHECK(grows(4, S(1)));
	D(attr(2, 1));
	CHECK(!grows(5, S(1)));
}

/* While a thread is inside a wait for a stream, nobody asks how far that is (the model sees to
 * that). The end of the wait tells. */
static void asked_beside_wait(void)
{
	for (int call = STREAM_SYNC; call <= DEVICE_SYNC; call++) {
		int s = call - STREAM_SYNC, b = 4 * s;

		D(stream(s, NB), stream(2, NB), alloc(b, S(s), BIG), kernel(S(s)), free_(b, S(s)));
		D(begin(0, call, 0, S(s)));
		CHECK(grows(b + 1, S(2)));
		D(advance());
		CHECK(grows(b + 2, S(2)));
		D(real(0), end(0));
		CHECK(!grows(b + 3, S(2)));
	}
}

/* Of an event, too. Without a clock nobody knows which stream that is. */
static void asked_beside_event_wait(void)
{
	D(stream(0, NB), stream(1, NB), event(0), alloc(0, S(0), BIG), kernel(S(0)),
	  free_(0, S(0)));
	D(record(0, S(0)), begin(0, EVENT_SYNC, 0, 0));
	CHECK(grows(1, S(1)));
	D(real(0), end(0));
	CHECK(!grows(2, S(1)));
}

const struct d_test directed_calls[] = {
	T(asked_beside_wait),
	T(asked_beside_event_wait),
	T(freed_in_record),
	T(recorded_in_wait),
	T(records_overlap),
	T(freed_in_sync),
	T(recorded_in_sync),
	T(failed_calls),
	T(event_reborn),
	T(slot_waits),
	T(null_free_is_for_null),
	T(null_not_transitive),
	T(null_joins),
	T(null_joins_after_failure),
	T(null_waits_after_failure),
	T(distrusted_query),
	{"null_fence_beside_new_stream", null_fence_beside_new_stream, .release_waits = true},
	T(split_keeps_marks),
	T(merge_keeps_marks),
	T(epoch_of_all),
	T(mixed_frees),
	T(opportunistic_elsewhere),
	{.name = NULL},
};
