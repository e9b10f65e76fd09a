/* SPDX-License-Identifier: MIT */
/* A pool of the program's own that divides one block, and says so. */
#include "corpus.h"
#include "examples/marks/somashim_marks.h"

#define PART 1024

static char *arena(void)
{
	char *p = block(a);

	order(a, b);
	order(a, c);
	keep(p);
	return p;
}

static void hand_out(void *p, hipStream_t on)
{
	if (somashim_handed_out)
		somashim_handed_out(p, PART, on);
}

static void give_back(void *p, hipStream_t on)
{
	if (somashim_returned)
		somashim_returned(p, on);
}

static void set(void *p, int value, hipStream_t on)
{
	OK(hipMemsetAsync(p, value, PART, on));
}

/* ---- wrong ones -------------------------------------------------------------- */

static void returned_in_use(void)
{
	char *p = arena();

	hand_out(p + PART, a);
	set(p + PART, 1, a);
	order(a, b);
	set(p + PART, 2, b);
	give_back(p + PART, a);
}

static void used_before_handed_out(void)
{
	char *p = arena();

	hand_out(p + PART, a);
	set(p + PART, 1, b);
	order(b, a);
	give_back(p + PART, a);
}

static void used_after_return(void)
{
	char *p = arena();

	hand_out(p, a);
	give_back(p, a);
	set(p, 1, a);
}

static void returned_twice(void)
{
	char *p = arena();

	hand_out(p, a);
	give_back(p, a);
	give_back(p, a);
}

static void reused_on_another_stream(void)
{
	char *p = arena();

	hand_out(p, a);
	give_back(p, a);
	hand_out(p, b);
	set(p, 1, c);
	order(c, b);
	give_back(p, b);
}

const struct program wrong_marks[] = {
	{"mark-returned-in-use", returned_in_use, "free-before-use hipMemsetAsync 2 1"},
	{"mark-used-before-handed-out", used_before_handed_out,
	 "use-before-alloc hipMemsetAsync 2 1"},
	{"mark-used-after-return", used_after_return, "use-after-free hipMemsetAsync 1 1"},
	{"mark-returned-twice", returned_twice, "double-free somashim_returned 1 1"},
	{"mark-reused", reused_on_another_stream, "use-before-alloc hipMemsetAsync 3 2"},
	{0},
};

/* ---- right ones -------------------------------------------------------------- */

static void in_order(void)
{
	char *p = arena();

	for (int i = 0; i < 8; i++) {
		char *part = p + i % 4 * PART;

		hand_out(part, a);
		set(part, i, a);
		order(a, b);
		set(part, i + 1, b);
		order(b, a);
		give_back(part, a);
	}
}

static void parts_of_two_streams(void)
{
	char *p = arena();

	hand_out(p, a);
	hand_out(p + PART, b);
	set(p, 1, a);
	set(p + PART, 2, b);
	give_back(p, a);
	give_back(p + PART, b);
}

static void whole_block_is_cleared(void)
{
	char *p = arena();

	hand_out(p, a);
	give_back(p, a);
	hand_out(p, a); /* in one piece again */
	OK(hipMemsetAsync(p, 0, BYTES, a));
	give_back(p, a);
	OK(hipMemsetAsync(p, 0, BYTES, a)); /* by the pool */
}

static void other_addresses(void)
{
	char *p = arena(), *h = malloc(PART);

	hand_out(h, a); /* of no block */
	give_back(h, a);
	give_back(p, a); /* never handed out */
	free(h);
}

static void block_is_freed(void)
{
	void *p = block(a);

	hand_out(p, a);
	OK(hipFreeAsync(p, a)); /* with what was handed out */
	p = block(a);
	OK(hipMemsetAsync(p, 0, BYTES, a));
	OK(hipFreeAsync(p, a));
}

static void host_waits(void)
{
	char *p = arena();

	hand_out(p, a);
	set(p, 1, a);
	order(a, b);
	set(p, 2, b);
	OK(hipStreamSynchronize(b));
	give_back(p, c);
	OK(hipStreamSynchronize(c));
	hand_out(p, b);
	set(p, 3, b);
	give_back(p, b);
}

const struct program right_marks[] = {
	{"right-mark-in-order", in_order, NULL},
	{"right-mark-two-streams", parts_of_two_streams, NULL},
	{"right-mark-whole-block", whole_block_is_cleared, NULL},
	{"right-mark-other-addresses", other_addresses, NULL},
	{"right-mark-block-is-freed", block_is_freed, NULL},
	{"right-mark-host-waits", host_waits, NULL},
	{0},
};
