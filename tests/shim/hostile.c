/* SPDX-License-Identifier: MIT */
/*
 * Threads that come and go, with streams of their own and shared ones. They hand blocks to each
 * other, free what others allocated, create and destroy streams and pools, trim, capture graphs and
 * pause until idle memory decays. A kernel stamps each block, and another checks the stamp just
 * before the free, in the order of the stream and without a wait of the host. It leaves a wrong
 * stamp behind, which whoever got the block too early finds. At the end nothing is in use.
 *
 *   hostile [seed [seeds]]     a seed replays what each thread does, but not how they meet
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "../random.h"
#include "test.h"

#define MOST_THREADS 6
#define SHARED 5
#define OWN 3 /* the last is the thread's hipStreamPerThread */
#define LIVE 16
#define MAIL 16
#define ROUNDS 3
#define STEPS 200
#define PAGE 4096
#define IDLE_NS 12000000 /* more than twice the decay */

/* Whoever uses a stream or a pool holds its lock for reading, and whoever destroys it for
 * writing. */
struct stream {
	pthread_rwlock_t lock;
	hipStream_t handle;
	unsigned life; /* the handle may come back as another stream's */
};

struct block {
	char *p;
	size_t size;
	uint64_t stamp;
	bool classic;
	/* Where it was stamped; NULL: nobody knows. Others wait for the event. */
	struct stream *last;
	unsigned life;
	hipEvent_t done;
};

struct worker {
	pthread_t thread;
	uint64_t rng;
	struct stream own[OWN];
	struct block live[LIVE];
};

static struct stream shared[SHARED];
static struct {
	pthread_rwlock_t lock;
	hipMemPool_t handle;
} pool;
static struct {
	pthread_mutex_t lock;
	struct block b;
} mail[MAIL];
static atomic_ullong stamps;
static atomic_int wrong;
static uint64_t seed;

static uint64_t below(struct worker *w, uint64_t n)
{
	return next_random(&w->rng) % n;
}

/* ---- kernels -------------------------------------------------------------- */

static char stamp_kernel, check_kernel;

/* The first and the last page. */
static void write_stamp(char *p, size_t size, uint64_t stamp)
{
	size_t n = size < PAGE ? size / 8 : PAGE / 8;
	uint64_t *first = (uint64_t *)p, *last = (uint64_t *)(p + size / 8 * 8) - n;

	for (size_t i = 0; i < n; i++)
		first[i] = last[i] = stamp;
}

static void stamp_body(void **args)
{
	write_stamp(*(char **)args[0], *(size_t *)args[1], *(uint64_t *)args[2]);
}

static void check_body(void **args)
{
	char *p = *(char **)args[0];
	size_t size = *(size_t *)args[1], n = size < PAGE ? size / 8 : PAGE / 8;
	uint64_t stamp = *(uint64_t *)args[2], *first = (uint64_t *)p,
		 *last = (uint64_t *)(p + size / 8 * 8) - n;

	for (size_t i = 0; i < n; i++)
		if (first[i] != stamp || last[i] != stamp) {
			fprintf(stderr,
				"seed %llu: block %p of %zu has %llx and %llx at word %zu, not "
				"%llx\n",
				(unsigned long long)seed, (void *)p, size,
				(unsigned long long)first[i], (unsigned long long)last[i], i,
				(unsigned long long)stamp);
			atomic_fetch_add(&wrong, 1);
			break;
		}
	write_stamp(p, size, ~stamp);
}

static void launch(char *kernel, struct block *b, hipStream_t s)
{
	void *args[] = {&b->p, &b->size, &b->stamp};

	OK(hipLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, s));
}

/* ---- blocks ----------------------------------------------------------------- */

static struct stream *grab(struct worker *w)
{
	struct stream *s = below(w, 3) ? &w->own[below(w, OWN)] : &shared[below(w, SHARED)];

	pthread_rwlock_rdlock(&s->lock);
	return s;
}

static void drop(struct stream *s)
{
	pthread_rwlock_unlock(&s->lock);
}

static void take(struct worker *w, struct block *b)
{
	struct stream *s = grab(w);
	hipError_t err;

	b->size = 8 + below(w, (uint64_t)1 << (below(w, 4) ? 4 + below(w, 14) : 22));
	b->classic = below(w, 4) == 0;
	pthread_rwlock_rdlock(&pool.lock);
	err = b->classic ? hipMalloc((void **)&b->p, b->size) :
	      pool.handle && below(w, 3) == 0 ?
			   hipMallocFromPoolAsync((void **)&b->p, b->size, pool.handle, s->handle) :
			   hipMallocAsync((void **)&b->p, b->size, s->handle);
	pthread_rwlock_unlock(&pool.lock);
	if (err == hipSuccess) {
		b->stamp = atomic_fetch_add(&stamps, 1) + 1;
		b->last = s;
		b->life = s->life;
		launch(&stamp_kernel, b, s->handle);
		OK(hipEventCreateWithFlags(&b->done, hipEventDisableTiming));
		OK(hipEventRecord(b->done, s->handle));
	} else {
		GIVES(hipErrorOutOfMemory, err);
		b->p = NULL;
	}
	drop(s);
}

static void give(struct worker *w, struct block *b)
{
	struct stream *s = grab(w);

	if (b->last != s || b->life != s->life)
		OK(hipStreamWaitEvent(s->handle, b->done, 0));
	launch(&check_kernel, b, s->handle);
	if (below(w, 8) < (b->classic ? 6 : 1))
		OK(hipFree(b->p));
	else
		OK(hipFreeAsync(b->p, s->handle));
	OK(hipEventDestroy(b->done));
	b->p = NULL;
	drop(s);
}

/* Puts b into a box, and takes what lay there. */
static void post(struct worker *w, struct block *b)
{
	int i = (int)below(w, MAIL);
	struct block got;

	pthread_mutex_lock(&mail[i].lock);
	got = mail[i].b;
	mail[i].b = *b;
	mail[i].b.last = NULL;
	pthread_mutex_unlock(&mail[i].lock);
	*b = got;
}

static void make(struct stream *s, uint64_t which)
{
	OK(hipStreamCreateWithFlags(&s->handle, which & 1 ? hipStreamNonBlocking : 0));
	s->life++;
}

static void capture(struct worker *w)
{
	struct block b = {.size = PAGE, .stamp = ~0ull};
	hipStream_t s = w->own[0].handle;
	hipGraphExec_t exec;
	hipGraph_t graph;

	if (hipMallocAsync((void **)&b.p, b.size, s) != hipSuccess)
		return;
	OK(hipStreamBeginCapture(s, hipStreamCaptureModeRelaxed));
	launch(&stamp_kernel, &b, s);
	OK(hipStreamEndCapture(s, &graph));
	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	OK(hipGraphLaunch(exec, s));
	launch(&check_kernel, &b, s);
	OK(hipFreeAsync(b.p, s));
	OK(hipStreamSynchronize(s));
	OK(hipGraphExecDestroy(exec));
	OK(hipGraphDestroy(graph));
}

static void disturb(struct worker *w)
{
	struct timespec nap = {0, IDLE_NS};
	uint64_t what = below(w, 8);
	struct stream *s = what & 1 ? &w->own[below(w, OWN - 1)] :
				      &shared[1 + below(w, SHARED - 1)];
	hipMemPool_t of_device;

	if (what < 3 && !pthread_rwlock_trywrlock(&s->lock)) {
		OK(hipStreamDestroy(s->handle));
		make(s, s == w->own || below(w, 2)); /* own[0] captures, so it does not block */
		drop(s);
	} else if (what == 3 && !pthread_rwlock_trywrlock(&pool.lock)) {
		if (pool.handle)
			OK(hipMemPoolDestroy(pool.handle));
		pool.handle = pool.handle ? NULL : make_pool(0, hipMemHandleTypeNone);
		pthread_rwlock_unlock(&pool.lock);
	} else if (what == 4) {
		OK(hipDeviceGetDefaultMemPool(&of_device, 0));
		OK(hipMemPoolTrimTo(of_device, 0));
	} else if (what == 5) {
		capture(w);
	} else if (what == 6 && below(w, 8) == 0) {
		nanosleep(&nap, NULL);
	} else {
		OK(hipStreamSynchronize(w->own[0].handle));
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < OWN; i++)
		pthread_rwlock_init(&w->own[i].lock, NULL);
	for (int i = 0; i < OWN - 1; i++)
		make(&w->own[i], i == 0 || below(w, 2));
	w->own[OWN - 1].handle = hipStreamPerThread;
	for (int i = 0; i < STEPS; i++) {
		struct block *b = &w->live[below(w, LIVE)];
		uint64_t what = below(w, 16);

		if (what < 3)
			disturb(w);
		else if (!b->p)
			take(w, b);
		else if (what < 7)
			post(w, b);
		else
			give(w, b);
	}
	for (int i = 0; i < LIVE; i++)
		if (w->live[i].p)
			give(w, &w->live[i]);
	for (int i = 0; i < OWN - 1; i++)
		OK(hipStreamDestroy(w->own[i].handle));
	return NULL;
}

static void run(void)
{
	struct worker w[MOST_THREADS], rest = {.rng = seed};
	int count = 2 + (int)below(&rest, MOST_THREADS - 1);
	hipMemPool_t of_device;

	for (int round = 0; round < ROUNDS; round++) {
		memset(w, 0, sizeof(w));
		for (int i = 0; i < count; i++) {
			w[i].rng = next_random(&rest.rng);
			CHECK(!pthread_create(&w[i].thread, NULL, work, &w[i]));
		}
		for (int i = 0; i < count; i++)
			pthread_join(w[i].thread, NULL);
	}
	for (int i = 0; i < OWN; i++)
		rest.own[i] = shared[1];
	for (int i = 0; i < MAIL; i++)
		if (mail[i].b.p)
			give(&rest, &mail[i].b);
	OK(hipDeviceSynchronize());
	OK(hipDeviceGetDefaultMemPool(&of_device, 0));
	CHECK(figure(of_device, hipMemPoolAttrUsedMemCurrent) == 0);
	CHECK(!pool.handle || figure(pool.handle, hipMemPoolAttrUsedMemCurrent) == 0);
}

int main(int argc, char **argv)
{
	void (*reg)(const void *, void (*)(void **),
		    const size_t *) = sim_must("somasim_register_kernel_args");
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	int seeds = argc > 2 ? atoi(argv[2]) : 1;
	static const size_t sizes[] = {sizeof(char *), sizeof(size_t), sizeof(uint64_t), 0};

	CHECK(preloaded());
	reg(&stamp_kernel, stamp_body, sizes);
	reg(&check_kernel, check_body, sizes);
	pthread_rwlock_init(&pool.lock, NULL);
	for (int i = 0; i < MAIL; i++)
		pthread_mutex_init(&mail[i].lock, NULL);
	for (uint64_t i = 0; i < SHARED; i++) {
		pthread_rwlock_init(&shared[i].lock, NULL);
		if (i) /* else the null stream */
			make(&shared[i], i);
	}
	for (seed = first; seed < first + (uint64_t)seeds; seed++) {
		printf("hostile: seed %llu\n", (unsigned long long)seed);
		fflush(stdout);
		run();
	}
	return atomic_load(&wrong) != 0;
}
