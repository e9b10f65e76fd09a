/* SPDX-License-Identifier: MIT */
/*
 * Threads that allocate, free, record, wait, synchronize and trim at random, most of the time in
 * loops. Between the rounds they stand still and the structures of the core are checked. After some
 * rounds most blocks end and idle memory is given back, so that ranges move between streams.
 *
 *   concurrent [--seed N] [--count M]     programs N, N + 1, ..; without a seed it is drawn
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "worker.h"
#include "core/statistics.h"

#define ROUNDS 48
#define STEPS 150   /* of each thread in a round */
#define BURST 8     /* rounds, after which most blocks end */

struct worker worker[MOST_THREADS];
int threads, shared_streams;
struct ss_core *core;
struct ss_timeline *_Atomic timeline[STREAMS];
uint64_t sizes;
bool failures;
static uint64_t seed, device_rng;
static unsigned loops; /* of 100 steps, those of loops */

void wrong(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "seed %llu: ", (unsigned long long)seed);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	abort();
}

static void step(struct worker *w)
{
	unsigned r = below(w, 1000);

	if (below(w, 100) < loops) {
		loop(w);
		return;
	}
	if (r < 480)
		take_any(w);
	else if (r < 850)
		w->count ? give(w, pick(w)) : (void)0;
	else if (r < 880)
		w->count ? pass_on(w, pick(w)) : (void)0;
	else if (r < 920)
		read_mail(w);
	else if (r < 950)
		w->count ? move_to(w, w->held[0], any_stream(w)) : (void)0;
	else if (r < 970)
		synchronize(w);
	else if (r < 990)
		look(w);
	else
		control(w);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int round = 0; round < ROUNDS; round++) {
		schedule_wait(w->index);
		if (round % BURST == 0)
			draw_loop(w);
		for (int i = 0; i < STEPS && !schedule_long(); i++)
			step(w);
		for (int i = w->count; (round + 1) % BURST == 0 && i-- > 0;)
			if (below(w, 8)) {
				struct block *b = w->held[i];

				w->held[i] = w->held[--w->count];
				give(w, b);
			}
	}
	schedule_wait(w->index);
	ss_thread_exit(core, false, 0);
	return NULL;
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = ((const struct ss_block_entry *)a)->address;
	uint64_t y = ((const struct ss_block_entry *)b)->address;

	return x < y ? -1 : x > y;
}

static void check_block(const struct block *b, const struct ss_block_entry *list, size_t count)
{
	struct ss_block_entry key = {.address = (uintptr_t)b->p};
	const struct ss_block_entry *e = count ? bsearch(&key, list, count, sizeof(*list),
							 by_address) :
						 NULL;

	if (!e || e->size != b->size)
		wrong("the live block of %zu bytes at %p is not in the list", b->size,
		      (void *)b->p);
}

/* All threads stand still. */
static void check(void)
{
	const char *broken = ss_check(core);
	struct ss_block_entry *list;
	size_t count, own = 0;

	if (broken)
		wrong("%s", broken);
	count = ss_blocks_list(core, &list);
	if (count)
		qsort(list, count, sizeof(*list), by_address);
	for (int i = 0; i < threads; i++) {
		for (int k = 0; k < worker[i].count; k++, own++)
			check_block(worker[i].held[k], list, count);
		for (int k = 0; k < SLOTS; k++)
			if (worker[i].slot[k] && ++own)
				check_block(worker[i].slot[k], list, count);
		for (const struct block *b = worker[i].mail; b; b = b->next, own++)
			check_block(b, list, count);
	}
	if (own != count)
		wrong("the core has %zu live blocks, the program %zu", count, own);
	free(list);
}

/* What the main thread does during a round. */
static void meanwhile(void)
{
	uint64_t random = next_random(&device_rng);

	device_work(random);
	if (random >> 61 == 0)
		ss_fake_advance_ms(fake, 1);
}

static void join(int index)
{
	struct worker *w = &worker[index];

	pthread_join(w->thread, NULL);
	read_mail(w);
	while (w->count)
		give(w, pick(w));
	end_loop(w);
	pthread_mutex_destroy(&w->lock);
}

static void run(void)
{
	struct worker root = {.rng = seed}; /* for what is drawn here */
	static const int backings[] = {SS_BACKING_HIP, SS_BACKING_HSA, SS_BACKING_VMM};
	struct ss_fake_config config = {.devices = 2,
					.vram = (uint64_t)16 << 20 << below(&root, 6)};
	struct ss_options opt;
	struct ss_driver drv;

	device_rng = next_random(&root.rng);
	ss_options_default(&opt);
	opt.backing = backings[below(&root, 3)];
	config.vmm = opt.backing == SS_BACKING_VMM;
	config.hip_release_waits = below(&root, 2);
	opt.decay_ms = (uint64_t)1 << below(&root, 8);
	opt.oom_wait_ms = below(&root, 20);
	opt.growth_wait_ms = opt.oom_wait_ms;
	opt.oom_reports = SS_OOM_REPORTS_NONE;
	sizes = next_random(&root.rng) | 1 << 8 | 1 << 14;
	failures = below(&root, 3) == 0;
	/* What could neither be opened nor unmapped is set aside for good. */
	config.may_leave = failures && config.vmm;
	loops = 25 * below(&root, 4) + 20;
	threads = 2 + (int)below(&root, MOST_THREADS - 1);
	shared_streams = 1 + (int)below(&root, 6);
	shadow_create();
	drv = device_create(&config);
	core = ss_core_create(&drv, &opt);
	schedule_create(threads, next_random(&device_rng));
	for (int s = 0; s < shared_streams + threads; s++)
		new_stream(&root, s);
	timeline[NULL_STREAM] = ss_timeline_null(core, 0);
	for (int i = 0; i < threads; i++) {
		worker[i] = (struct worker){
			.rng = next_random(&root.rng), .index = i, .own = shared_streams + i};
		pthread_mutex_init(&worker[i].lock, NULL);
		if (pthread_create(&worker[i].thread, NULL, work, &worker[i]))
			wrong("no thread");
		schedule_began();
	}
	for (int round = 0; round < ROUNDS; round++) {
		schedule_round(meanwhile);
		check();
		if ((round + 1) % BURST == 0 && below(&root, 2)) {
			device_drain_all();
			ss_fake_advance_ms(fake, 2 * opt.decay_ms);
			ss_decay_run(core, 0, below(&root, 2));
			check();
		}
	}
	ss_fake_fail_clear(fake);
	schedule_destroy(join);
	check();
	device_drain_all();
	ss_core_destroy(core);
	device_destroy();
	shadow_destroy();
}

/* Each program has a process of its own, so that its seed alone shows the same. */
static bool passes(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		run();
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},
		{"count", required_argument, NULL, 'c'},
		{NULL, 0, NULL, 0},
	};
	uint64_t count = 1;
	struct timespec now;
	int c;

	clock_gettime(CLOCK_REALTIME, &now);
	seed = (uint64_t)now.tv_sec * 1000000;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (c == 'c')
			count = strtoull(optarg, NULL, 0);
		else
			return 2;
	printf("seeds %llu to %llu\n", (unsigned long long)seed,
	       (unsigned long long)(seed + count - 1));
	fflush(stdout);
	for (; count--; seed++)
		if (!passes())
			return 1;
	return 0;
}
