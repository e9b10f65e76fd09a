/* SPDX-License-Identifier: MIT */
/*
 * Threads allocate, copy, hand blocks to another stream and free, while the process sleeps and
 * wakes at moments that nobody chose. Every byte of every block is looked at. Requests are written
 * into the page, as the command writes them.
 *
 *   shim_sleep_random SOMASHIM SEED SLEEPS
 */
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

#include "sleep.h"

#define THREADS 4
#define HELD 6
#define MOST (2 * MIB)

static atomic_bool over;
static atomic_uint rounds;
static uint64_t seed;

struct own {
	uint32_t *p;
	size_t words;
	uint32_t value;
};

static uint64_t draw(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* By a copy that waits or one that does not, or by a memset. */
static void take(struct own *h, uint64_t *x, hipStream_t on, uint32_t *host)
{
	h->words = 1 + draw(x) % (draw(x) % 8 ? 4096 : MOST / 4);
	h->value = (uint32_t)draw(x) & 0x7f;
	h->value |= h->value << 8;
	h->value |= h->value << 16;
	OK(hipMallocAsync((void **)&h->p, h->words * 4, on));
	if (draw(x) % 2) {
		OK(hipMemsetAsync(h->p, (int)(h->value & 0xff), h->words * 4, on));
		return;
	}
	for (size_t i = 0; i < h->words; i++)
		host[i] = h->value;
	OK(hipMemcpyAsync(h->p, host, h->words * 4, hipMemcpyHostToDevice, on));
	OK(hipStreamSynchronize(on));
}

static void check(const struct own *h, hipStream_t on, uint32_t *host)
{
	OK(hipMemcpyAsync(host, h->p, h->words * 4, hipMemcpyDeviceToHost, on));
	OK(hipStreamSynchronize(on));
	for (size_t i = 0; i < h->words; i++)
		CHECK(host[i] == h->value);
}

static void *work(void *arg)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15 + (uint64_t)(uintptr_t)arg;
	uint32_t *host = malloc(MOST);
	struct own held[HELD] = {0};
	hipStream_t mine, other;
	hipEvent_t event;

	CHECK(host);
	/* One of them is blocking. */
	OK(hipStreamCreateWithFlags(&mine, arg == (void *)1 ? 0 : hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
	OK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
	while (!atomic_load(&over)) {
		struct own *h = &held[draw(&x) % HELD];

		if (!h->p) {
			take(h, &x, mine, host);
		} else if (draw(&x) % 2) {
			check(h, mine, host);
		} else {
			/* Looked at and freed on another stream, in order. */
			OK(hipEventRecord(event, mine));
			OK(hipStreamWaitEvent(other, event, 0));
			check(h, other, host);
			OK(hipFreeAsync(h->p, other));
			h->p = NULL;
		}
		atomic_fetch_add(&rounds, 1);
	}
	for (int i = 0; i < HELD; i++)
		if (held[i].p)
			check(&held[i], mine, host);
	free(host);
	return NULL;
}

static void request(uint32_t command)
{
	struct ss_live_sleep *page = &page_of_ours()->sleep;
	uint32_t word = (atomic_load(&page->wanted) / SS_LIVE_COMMANDS + 1) * SS_LIVE_COMMANDS +
			command;

	page->patience_ms = 20000;
	atomic_store(&page->wanted, word);
	atomic_fetch_add(&page->bell, 1);
	syscall(SYS_futex, &page->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
	while (atomic_load(&page->done) != word)
		usleep(200);
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	uint32_t slept = 0, sleeps, before;
	uint64_t x;

	sleep_test_begin(argc, argv);
	CHECK(argc == 4);
	seed = strtoull(argv[2], NULL, 0);
	sleeps = (uint32_t)strtoul(argv[3], NULL, 0);
	x = seed | 1;
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, (void *)(i + 1)));
	for (uint32_t i = 0; i < sleeps; i++) {
		bool hold = draw(&x) % 2;

		request(hold ? SS_LIVE_HOLD : SS_LIVE_NAP);
		if (page_of_ours()->sleep.slept.error)
			printf("not asleep: %s\n", page_of_ours()->sleep.slept.why);
		else
			slept++;
		if (hold)
			request(SS_LIVE_WAKE);
		before = atomic_load(&rounds);
		while (atomic_load(&rounds) < before + draw(&x) % 40)
			usleep(200);
	}
	atomic_store(&over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	printf("%u of %u sleeps, %u rounds, seed %llu\n", slept, sleeps, atomic_load(&rounds),
	       (unsigned long long)seed);
	CHECK(slept > 0);
	return 0;
}
