/* SPDX-License-Identifier: MIT */
/*
 * Short sequences of operations in which the ordering rules decide, because random operations
 * seldom form them. A program scatters them among other operations and leaves parts of them out.
 */
#include <string.h>

#include "oracle.h"

enum arg { NO, S1, S2, S3, E, B1, B2 };

struct step {
	uint8_t kind, a, b; /* a: event or block; b: stream */
	uint8_t c, d;       /* OP_BEGIN: which call; the pair */
};

#define ALLOC(b, s) { OP_ALLOC, b, s, 0, 0 }
#define FREE(b, s) { OP_FREE, b, s, 0, 0 }
#define KERNEL(s) { OP_KERNEL, NO, s, 0, 0 }
#define RECORD(s) { OP_RECORD, E, s, 0, 0 }
#define WAIT(s) { OP_WAIT, E, s, 0, 0 }
#define BEGIN_RECORD(d, s) { OP_BEGIN, E, s, 0, d }
#define BEGIN_WAIT(d, s) { OP_BEGIN, E, s, 1, d }
#define BEGIN_EVENT(d) { OP_BEGIN, E, S1, 2, d }
#define BEGIN_STREAM(d, s) { OP_BEGIN, NO, s, 3, d }
#define REAL(d) { OP_REAL, NO, NO, 0, d }
#define END(d) { OP_END, NO, NO, 0, d }
#define CLASSIC(b) { OP_ALLOC_CLASSIC, b, NO, 0, 0 }
#define ADVANCE { OP_ADVANCE, NO, NO, 0, 0 }
#define STEPS 12

static const struct step idiom[][STEPS] = {
	/* reuse by an event, and its near misses */
	{ALLOC(B1, S1), KERNEL(S1), FREE(B1, S1), RECORD(S1), WAIT(S2), ALLOC(B2, S2)},
	{ALLOC(B1, S1), KERNEL(S1), RECORD(S1), FREE(B1, S1), WAIT(S2), ALLOC(B2, S2)},
	{ALLOC(B1, S1), KERNEL(S1), BEGIN_RECORD(0, S1), REAL(0), KERNEL(S1), FREE(B1, S1), END(0),
	 WAIT(S2), ALLOC(B2, S2)},
	{ALLOC(B1, S1), RECORD(S1), BEGIN_WAIT(0, S2), REAL(0), KERNEL(S1), FREE(B1, S1),
	 RECORD(S1), END(0), ALLOC(B2, S2)},
	{ALLOC(B1, S1), KERNEL(S1), FREE(B1, S1), BEGIN_RECORD(0, S1), BEGIN_RECORD(1, S3), REAL(0),
	 REAL(1), END(1), END(0), WAIT(S2), ALLOC(B2, S2)},
	{ALLOC(B1, S1), KERNEL(S1), FREE(B1, S1), RECORD(S1), BEGIN_RECORD(1, S3), REAL(1),
	 WAIT(S2), END(1), ALLOC(B2, S2)},
	{ALLOC(B1, S1),
	 KERNEL(S1),
	 FREE(B1, S1),
	 RECORD(S1),
	 {OP_EVENT_DESTROY, E, NO, 0, 0},
	 {OP_EVENT_CREATE, E, NO, 0, 0},
	 WAIT(S2),
	 ALLOC(B2, S2)},
	{ALLOC(B1, S1),
	 KERNEL(S1),
	 FREE(B1, S1),
	 RECORD(S1),
	 {OP_TAINT, E, S3, 0, 0},
	 WAIT(S2),
	 ALLOC(B2, S2)},
	{ALLOC(B1, S1), KERNEL(S1), FREE(B1, S1), RECORD(S3), RECORD(S1), WAIT(S3), WAIT(S2),
	 ALLOC(B2, S2)},
	/* transitivity: S3 records before it is ordered after S1 */
	{ALLOC(B1, S1), KERNEL(S1), FREE(B1, S1), RECORD(S1), WAIT(S3), KERNEL(S3), RECORD(S3),
	 WAIT(S2), ALLOC(B2, S2)},
	{ALLOC(B1, S1),
	 KERNEL(S1),
	 FREE(B1, S1),
	 {OP_EVENT_CREATE, E + 3, NO, 0, 0},
	 RECORD(S1),
	 {OP_RECORD, E + 3, S3, 0, 0},
	 WAIT(S3),
	 {OP_WAIT, E + 3, S2, 0, 0},
	 ALLOC(B2, S2)},
	/* a stream that comes back */
	{ALLOC(B1, S1),
	 KERNEL(S1),
	 FREE(B1, S1),
	 RECORD(S1),
	 WAIT(S2),
	 {OP_STREAM_DESTROY, NO, S2, 0, 0},
	 {OP_STREAM_CREATE, NO, S2, 0, 0},
	 ALLOC(B2, S2)},
	{ALLOC(B1, S1),
	 KERNEL(S1),
	 FREE(B1, S1),
	 {OP_STREAM_DESTROY, NO, S1, 0, 0},
	 {OP_STREAM_CREATE, NO, S1, 0, 0},
	 ALLOC(B2, S1)},
	/* the host waits while others go on */
	{ALLOC(B1, S1), KERNEL(S1), BEGIN_STREAM(0, S1), REAL(0), KERNEL(S1), FREE(B1, S1), END(0),
	 ALLOC(B2, S2)},
	{ALLOC(B1, S1), KERNEL(S1), RECORD(S1), BEGIN_EVENT(0), REAL(0), KERNEL(S1), FREE(B1, S1),
	 RECORD(S1), END(0), ALLOC(B2, S2)},
	{ALLOC(B1, S1), KERNEL(S1), FREE(B1, S1), ALLOC(B2, S2), ADVANCE, FREE(B2, S2),
	 ALLOC(B2, S3)},
	{ALLOC(B1, S1),
	 KERNEL(S1),
	 FREE(B1, S1),
	 BEGIN_STREAM(0, 0),
	 {OP_STREAM_DESTROY, NO, S1, 0, 0},
	 REAL(0),
	 END(0),
	 ALLOC(B2, S2)},
	{ALLOC(B1, S1), KERNEL(S1), FREE(B1, S1), BEGIN_STREAM(0, 0), REAL(0), END(0),
	 ALLOC(B2, S2)},
	/* after a bypass; does nothing before */
	{ALLOC(B1, S1),
	 KERNEL(S1),
	 FREE(B1, S1),
	 RECORD(S1),
	 {OP_UNSEEN_RECORD, E, S3, 0, 0},
	 WAIT(S2),
	 ALLOC(B2, S2)},
	/* hipMalloc */
	{CLASSIC(B1), KERNEL(S1), KERNEL(S2), {OP_FREE_CLASSIC, B1, NO, 0, 0}, CLASSIC(B2)},
	{ALLOC(B1, S1), KERNEL(S1), {OP_FREE_CLASSIC, B1, NO, 0, 0}, ALLOC(B2, S1)},
	{CLASSIC(B1),
	 KERNEL(S1),
	 {OP_FREE_CLASSIC, B1, NO, 0, 0},
	 RECORD(S1),
	 WAIT(S2),
	 {OP_WAIT, E, 0, 0, 0},
	 CLASSIC(B2)},
	/* the null stream: slot 0 */
	{ALLOC(B1, S1), KERNEL(S1), {OP_FREE, B1, 0, 0, 0}, {OP_ALLOC, B2, 0, 0, 0}, KERNEL(S2)},
	{ALLOC(B1, S1),
	 KERNEL(S1),
	 FREE(B1, S1),
	 {OP_ALLOC, B2, 0, 0, 0},
	 {OP_STREAM_DESTROY, NO, S1, 0, 0},
	 {OP_KERNEL, NO, 0, 0, 0}},
};

#define NIDIOMS (sizeof(idiom) / sizeof(idiom[0]))

/* A slot number below FIRST_USER in a step is that slot itself (the null stream); others are
 * chosen. */
static uint8_t stream(uint8_t arg, const uint8_t s[3])
{
	return arg == 0 ? 0 : s[(arg - S1) % 3];
}

int idiom_strew(struct op *out, int room, uint64_t *state, int streams, int events, int blocks,
		uint64_t size)
{
	const struct step *step = idiom[rnd(state) % NIDIOMS];
	uint8_t s[3], block, event = (uint8_t)(rnd(state) % (uint64_t)events);
	bool any = rnd(state) % 4 == 0;
	uint8_t pool = (uint8_t)rnd(state);
	int n = 0;

	for (int i = 0; i < 3; i++)
		s[i] = (uint8_t)(FIRST_USER + rnd(state) % (uint64_t)streams);
	if (any) /* also a null or per-thread stream */
		s[rnd(state) % 3] = (uint8_t)(rnd(state) % FIRST_USER);
	block = (uint8_t)(rnd(state) % (uint64_t)blocks);
	for (int i = 0; i < STEPS && n < room; i++) {
		const struct step *t = &step[i];
		struct op *op = &out[n];
		if (!t->kind && !t->a && !t->b)
			break;
		if (rnd(state) % 24 == 0)
			continue;
		memset(op, 0, sizeof(*op));
		op->kind = t->kind;
		op->a = t->a >= E && t->a != B1 && t->a != B2 ? event + t->a - E :
			t->a                                  ? (uint8_t)(block + t->a - B1) :
								0;
		op->b = stream(t->b, s);
		op->c = t->kind == OP_ALLOC ? pool : t->c;
		op->d = t->d;
		op->n = size;
		if (t->kind == OP_KERNEL || t->kind == OP_STREAM_DESTROY ||
		    t->kind == OP_STREAM_CREATE) {
			op->a = t->kind == OP_KERNEL ? op->b : (uint8_t)(op->b - FIRST_USER);
			op->b = 0;
			op->c = (uint8_t)rnd(state);
		} else if (t->kind == OP_ADVANCE) {
			op->a = op->b = 255;
		} else if (t->kind == OP_ALLOC_CLASSIC) {
			op->b = 0;
		}
		n++;
	}
	return n;
}
