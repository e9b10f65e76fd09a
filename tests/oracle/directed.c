/* SPDX-License-Identifier: MIT */
/*
 * Tests the rules of reuse one by one, in both directions: memory that must be reused is reused,
 * and counted under its rule; memory that must not be reused is not. They run on the oracle's
 * device, so the truth is checked as well.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "oracle.h"
#include "directed.h"
#include "core/statistics.h"

#define BIG (32ull << 20) /* fills a segment of its own */

static struct world *w;
static struct program prog;
static const char *test;
static int failures, line;

#define CHECK(cond) (line = __LINE__, check((cond), #cond))

static void check(bool ok, const char *what)
{
	if (ok && (!w || !w->fail_class))
		return;
	if (w && w->fail_class)
		printf("%s:%d: %s\n", test, line, w->failed);
	else
		printf("%s:%d: not true: %s\n", test, line, what);
	failures++;
	if (w)
		w->fail_class = F_CRASH;
}

static void d_start(const struct d_test *t)
{
	int backing = t->prefix || t->vmm ? SS_BACKING_VMM : SS_BACKING_HSA;

	memset(&prog.cfg, 0, sizeof(prog.cfg));
	prog.cfg.devices = prog.cfg.threads = 1;
	prog.cfg.vram = (t->vram ? t->vram : 4096) << 20;
	prog.cfg.release_waits[backing] = t->release_waits;
	prog.cfg.vmm = backing == SS_BACKING_VMM;
	prog.cfg.access_prefix = t->prefix;
	prog.cfg.chunk = 2 << 20;
	ss_options_default(&prog.cfg.opt);
	prog.cfg.opt.backing = backing;
	prog.cfg.opt.oom_wait_ms = 20;
	if (!t->waits)
		prog.cfg.opt.growth_wait_ms = 0;
	prog.count = 0;
	w = world_create(&prog, getenv("DIRECTED_VERBOSE") != NULL);
	CHECK(world_start(w));
}

void d_op(struct op op)
{
	if (prog.count == MAXOPS)
		abort();
	prog.op[prog.count] = op;
	run_op(w, &prog.op[prog.count++]);
	CHECK(true);
}

void d_beside(const struct op *others, int count, struct op op)
{
	w->hook = count;
	w->hook_at = 1;
	w->hook_pc = prog.count;
	for (int i = 0; i < count; i++, prog.count++) {
		if (prog.count == MAXOPS)
			abort();
		prog.op[prog.count] = others[i];
	}
	d_op(op);
	d_check(!w->hook, "the driver was called", __LINE__);
}

void d_in_nap(struct op nap, struct op op)
{
	if (prog.count == MAXOPS)
		abort();
	prog.op[prog.count] = nap;
	w->at_nap = &prog.op[prog.count++];
	d_op(op);
	d_check(!w->at_nap, "the host waited", __LINE__);
}

struct world *d_world(void)
{
	return w;
}

void d_end(void)
{
	CHECK(true);
	world_finish(w);
	CHECK(true);
	w = NULL;
}

void d_check(bool ok, const char *what, int at)
{
	line = at;
	check(ok, what);
}

static void stats_one(const struct ss_pool_stats *st, void *arg)
{
	struct ss_pool_stats *sum = arg;

	if (strcmp(st->kind, "default") == 0)
		*sum = *st;
}

struct ss_pool_stats d_stats(void)
{
	struct ss_pool_stats st = {0};

	ss_stats(w->core, &(struct ss_stats_visitor){.pool = stats_one}, &st);
	return st;
}

/* ---- order -------------------------------------------------------------- */

static void same_stream(void)
{
	D(stream(0, NB), alloc(0, S(0), BIG), kernel(S(0)));
	uint64_t p = at(0), calls = given();
	D(free_(0, S(0)), alloc(1, S(0), BIG));
	CHECK(at(1) == p && given() == calls);
	D(free_(1, S(0)), alloc(1, S(0), BIG / 2), alloc(2, S(0), BIG / 2));
	CHECK(given() == calls && (at(1) == p || at(2) == p));
	CHECK(d_stats().hits == 3 && d_stats().misses == 1);
}

static void event_position(void)
{
	D(stream(0, NB), stream(1, NB), event(0), alloc(0, S(0), BIG), kernel(S(0)));
	D(record(0, S(0)), kernel(S(0)), free_(0, S(0)), wait_(S(1), 0));
	uint64_t before = given();
	D(alloc(1, S(1), BIG));
	CHECK(given() == before + BIG); /* the record is older than the free */
}

static void event_order(void)
{
	D(stream(0, NB), stream(1, NB), event(0), alloc(0, S(0), BIG), kernel(S(0)));
	uint64_t p = at(0), before = given();
	D(free_(0, S(0)), record(0, S(0)), wait_(S(1), 0), alloc(1, S(1), BIG));
	CHECK(at(1) == p && given() == before && d_stats().reuse_event == 1);
}

static void event_order_off(void)
{
	D(attr(1, 0), stream(0, NB), stream(1, NB), event(0), alloc(0, S(0), BIG));
	D(kernel(S(0)), free_(0, S(0)), record(0, S(0)), wait_(S(1), 0));
	uint64_t before = given();
	D(alloc(1, S(1), BIG));
	CHECK(given() == before + BIG && d_stats().reuse_event == 0);
}

static void transitive(void)
{
	D(stream(0, NB), stream(1, NB), stream(2, NB), event(0), event(1));
	D(alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)), record(0, S(0)));
	uint64_t p = at(0), before = given();
	D(wait_(S(1), 0), record(1, S(1)), wait_(S(2), 1), alloc(1, S(2), BIG));
	CHECK(at(1) == p && given() == before);
}

static void transitive_too_early(void)
{
	D(stream(0, NB), stream(1, NB), stream(2, NB), event(0), event(1));
	D(alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)), record(0, S(0)));
	uint64_t before = given();
	D(record(1, S(1)), wait_(S(1), 0), wait_(S(2), 1), alloc(1, S(2), BIG));
	CHECK(given() == before + BIG);
}

static void rerecord(void)
{
	D(stream(0, NB), stream(1, NB), event(0), alloc(0, S(0), BIG), kernel(S(0)));
	D(record(0, S(0)), wait_(S(1), 0), free_(0, S(0)), record(0, S(0)));
	uint64_t p = at(0), before = given();
	D(alloc(1, S(1), BIG)); /* waited for the first record */
	CHECK(given() == before + BIG);
	D(wait_(S(1), 0), alloc(2, S(1), BIG));
	CHECK(at(2) == p);
}

static void host_sync(void)
{
	D(attr(2, 0), stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), kernel(S(0)));
	D(attr(4, 1ull << 40), free_(0, S(0)), ssync(S(0)));
	uint64_t before = given();
	D(alloc(1, S(1), BIG)); /* the application knows: no policy forbids it */
	CHECK(given() == before);
}

static void opportunistic(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)));
	uint64_t before = given();
	D(alloc(1, S(1), BIG)); /* still running; a fence is recorded */
	CHECK(given() == before + BIG);
	D(advance(), alloc(2, S(1), BIG));
	CHECK(given() == before + BIG && d_stats().reuse_completed == 1);
}

static void opportunistic_off(void)
{
	D(attr(2, 0), stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), kernel(S(0)));
	D(free_(0, S(0)), alloc(1, S(1), BIG), advance());
	uint64_t before = given();
	D(alloc(2, S(1), BIG));
	CHECK(given() == before + BIG && d_stats().reuse_completed == 0);
}

static void tainted(void)
{
	D(stream(0, NB), stream(1, NB), stream(2, NB), event(0), alloc(0, S(0), BIG));
	D(kernel(S(0)), free_(0, S(0)), record(0, S(0)));
	d_op((struct op){.kind = OP_TAINT, .a = 0, .b = S(2), .c = 1});
	uint64_t before = given();
	D(wait_(S(1), 0), alloc(1, S(1), BIG));
	CHECK(given() == before + BIG);
	D(record(0, S(0)));
	D(wait_(S(1), 0), alloc(2, S(1), BIG)); /* sticky */
	CHECK(given() == before + 2 * BIG);
}

/* ---- streams ------------------------------------------------------------ */

static void null_takes_blocking(void)
{
	D(stream(0, BL), alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)));
	uint64_t before = given();
	D(alloc(1, NUL, BIG));
	CHECK(given() == before && d_stats().reuse_implicit == 1);
	D(kernel(NUL), sdestroy(0), kernel(NUL));
}

static void null_not_nonblocking(void)
{
	D(stream(0, NB), alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)));
	uint64_t before = given();
	D(alloc(1, NUL, BIG));
	CHECK(given() == before + BIG);
}

static void null_grants_only_itself(void)
{
	D(stream(0, BL), stream(1, NB), event(0), alloc(0, NUL, BIG), kernel(NUL));
	D(free_(0, NUL), kernel(S(0)), ssync(S(0))); /* synchronizes the blocking stream only */
	D(alloc(1, S(1), BIG), free_(1, S(1)));
	D(kernel(S(0)), alloc(2, NUL, BIG), kernel(NUL), free_(2, NUL));
	D(record(0, NUL), wait_(S(1), 0), alloc(3, S(1), BIG), kernel(S(1)));
}

/* The null stream's kernel is not covered by synchronizing a blocking stream
 * on which nothing was enqueued. */
static void free_on_blocking_after_null(void)
{
	D(stream(0, BL), stream(1, NB), alloc(0, NUL, BIG), kernel(NUL), free_(0, S(0)));
	D(ssync(S(0)), alloc(1, S(1), BIG), kernel(S(1)), alloc(2, S(0), BIG));
	D(ssync(S(0)), kernel(S(1)));
}

static void handle_reuse(void)
{
	D(stream(0, NB), stream(1, NB), event(0), alloc(0, S(1), BIG), kernel(S(1)));
	D(free_(0, S(1)), record(0, S(1)), wait_(S(0), 0), sdestroy(0), stream(0, NB));
	uint64_t before = given();
	D(alloc(1, S(0), BIG));
	CHECK(given() == before + BIG);
}

static void destroyed_stream_hands_back(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)));
	D(sdestroy(0));
	uint64_t before = given();
	D(alloc(1, S(1), BIG));
	CHECK(given() == before + BIG);
	D(advance(), alloc(2, S(1), BIG));
	CHECK(given() == before + BIG);
}

static void two_threads(void)
{
	w->cfg.threads = 2;
	D(alloc(0, PT, BIG), kernel(PT), free_(0, PT));
	uint64_t before = given();
	struct op other = alloc(1, PT, BIG);
	other.thread = 1;
	D(other);
	CHECK(given() == before + BIG);
	D(alloc(2, PT, BIG));
	CHECK(given() == before + BIG);
}

/* ---- classic ------------------------------------------------------------- */

static void classic_epoch(void)
{
	D(stream(0, NB), stream(1, BL), calloc_(0, BIG), kernel(S(0)), kernel(S(1)));
	D(cfree(0, false));
	uint64_t before = given();
	D(calloc_(1, BIG));
	CHECK(given() == before + BIG);
	D(kernel(S(0)), advance(), ssync(NUL), ssync(S(0)), calloc_(2, BIG));
	CHECK(given() == before + BIG);
}

/* A free that is only ordered before the null stream has not finished, but a program may touch
 * memory of hipMalloc on any stream at once. */
static void classic_ordered(void)
{
	D(stream(0, NB), event(0), calloc_(0, BIG), kernel(S(0)), cfree(0, false));
	uint64_t before = given();
	D(record(0, S(0)), wait_(NUL, 0), calloc_(1, BIG));
	CHECK(given() == before + BIG);
}

static void classic_waited(void)
{
	D(stream(0, NB), calloc_(0, BIG), kernel(S(0)), kernel(NUL), cfree(0, true));
	uint64_t before = given();
	D(calloc_(1, BIG));
	CHECK(given() == before);
}

static void classic_interior(void)
{
	D(calloc_(0, BIG));
	struct op f = cfree(0, true);
	f.flags |= OPF_INNER;
	f.n = 12345;
	D(f);
	CHECK(!w->blk[0].used);
}

/* One stream is destroyed while another thread waits for the null stream. */
static void destroyed_meanwhile(void)
{
	D(stream(0, BL), stream(1, NB), alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)));
	D((struct op){.kind = OP_BEGIN, .b = NUL, .c = 3}, sdestroy(0));
	D((struct op){.kind = OP_REAL}, (struct op){.kind = OP_END});
	uint64_t before = given();
	D(alloc(1, S(1), BIG));
	CHECK(given() == before + BIG);
}

static void null_sync_not_nonblocking(void)
{
	D(stream(0, NB), stream(1, NB), alloc(0, S(0), BIG), kernel(S(0)), free_(0, S(0)));
	D(ssync(NUL));
	uint64_t before = given();
	D(alloc(1, S(1), BIG));
	CHECK(given() == before + BIG);
}

/* ---- after a bypass was seen --------------------------------------------- */

static void distrusted_clock(void)
{
	D(stream(0, NB), stream(1, NB), stream(2, NB), event(0), alloc(0, S(0), BIG));
	D(kernel(S(0)), free_(0, S(0)), record(0, S(0)), (struct op){.kind = OP_DISTRUST});
	D((struct op){.kind = OP_UNSEEN_RECORD, .b = S(2)}, wait_(S(1), 0));
	uint64_t before = given();
	D(alloc(1, S(1), BIG));
	CHECK(given() == before + BIG);
}

static void distrusted_epoch(void)
{
	struct op unseen = kernel(NUL);

	unseen.flags = OPF_INNER; /* on a stream that nobody saw created */
	D((struct op){.kind = OP_DISTRUST}, (struct op){.kind = OP_UNSEEN_STREAM});
	D(calloc_(0, BIG), unseen, cfree(0, false), ssync(NUL));
	uint64_t before = given();
	D(calloc_(1, BIG));
	CHECK(given() == before + BIG);
	D(cfree(1, true), dsync(), calloc_(2, BIG), calloc_(3, BIG));
	CHECK(given() == before + BIG);
}

/* After a bypass the device is not known to be idle when the known streams are. */
static void distrusted_idle(void)
{
	struct op unseen = kernel(NUL);

	unseen.kind = OP_STALL;
	unseen.flags = OPF_INNER;
	D(attr(4, 0), alloc(0, NUL, BIG), free_(0, NUL), (struct op){.kind = OP_DISTRUST});
	D((struct op){.kind = OP_UNSEEN_STREAM}, unseen, ssync(NUL));
	CHECK(given() == BIG);
	D((struct op){.kind = OP_RELEASE}, dsync());
	CHECK(given() == 0);
}

static const struct d_test tests[] = {
	T(same_stream),
	T(event_position),
	T(event_order),
	T(event_order_off),
	T(transitive),
	T(transitive_too_early),
	T(rerecord),
	T(host_sync),
	T(opportunistic),
	T(opportunistic_off),
	T(tainted),
	T(null_takes_blocking),
	T(null_not_nonblocking),
	T(null_grants_only_itself),
	T(free_on_blocking_after_null),
	T(handle_reuse),
	T(destroyed_stream_hands_back),
	T(two_threads),
	T(classic_epoch),
	T(classic_waited),
	T(classic_ordered),
	T(classic_interior),
	T(destroyed_meanwhile),
	T(null_sync_not_nonblocking),
	T(distrusted_clock),
	T(distrusted_epoch),
	{"distrusted_idle", distrusted_idle, .release_waits = true},
};

static void run(const struct d_test *t)
{
	test = t->name;
	alarm(60); /* SIGALRM ends a test that never does */
	d_start(t);
	t->fn();
	d_end();
}

int main(int argc, char **argv)
{
	static const struct d_test *const more[] = {directed_memory, directed_calls, directed_arena,
						    directed_waits};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (argc < 2 || strcmp(argv[1], tests[i].name) == 0)
			run(&tests[i]), n++;
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		for (const struct d_test *t = more[i]; t->name; t++)
			if (argc < 2 || strcmp(argv[1], t->name) == 0)
				run(t), n++;
	printf("%zu directed tests, %d failures\n", n, failures);
	return failures ? 1 : 0;
}
