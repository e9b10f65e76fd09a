/* SPDX-License-Identifier: MIT */
/*
 * A program of one of twelve kinds works while it is put to sleep and woken at moments that nobody
 * chose. Each block has a stamp of its own in every byte, and every byte of every live block is
 * looked at, by kernels (which die at memory that is not mapped) and by copies. Requests are
 * written into the page, as the command writes them; now and then the command itself asks.
 *
 *   shim_sleep_random SOMASHIM KIND SEED SLEEPS
 *
 * A line at the end says how many of the sleeps had memory of the device come back.
 */
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

#include "sleep.h"

#define MOST_THREADS 4
#define HELD 8
#define MOST (MIB + 4096)
/* Requests, of which one is made by the command. Its words are not seen by ThreadSanitizer, so that
 * reading an answer would be a race with the next one. */
#ifdef __SANITIZE_THREAD__
#define COMMAND_EVERY UINT64_MAX
#else
#define COMMAND_EVERY 16
#endif

static atomic_bool over;
static atomic_uint rounds;
static atomic_uint serials; /* of blocks */
static uint64_t seed;

struct thread {
	uint64_t x; /* random numbers */
	unsigned index;
	char *host; /* MOST bytes */
	uint64_t round;
};

static uint64_t draw(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* ---- stamps ------------------------------------------------------------------------- */

struct own {
	char *p;
	size_t bytes;
	uint64_t serial; /* no two blocks have one, and no block has one twice */
};

static uint64_t stamp_of(uint64_t serial, size_t word)
{
	return serial << 32 ^ (word * UINT64_C(0x9E3779B97F4A7C15) & 0xffffffff) ^ serial;
}

static uint64_t new_serial(void)
{
	return atomic_fetch_add(&serials, 1) + 1;
}

static void stamp(char *p, size_t bytes, uint64_t serial)
{
	uint64_t word;

	for (size_t i = 0; i < bytes; i += 8) {
		word = stamp_of(serial, i / 8);
		memcpy(p + i, &word, bytes - i < 8 ? bytes - i : 8);
	}
}

static void look(const char *p, size_t bytes, uint64_t serial, const void *where)
{
	uint64_t word;

	for (size_t i = 0; i < bytes; i += 8) {
		size_t n = bytes - i < 8 ? bytes - i : 8;

		word = stamp_of(serial, i / 8);
		if (!memcmp(p + i, &word, n))
			continue;
		memcpy(&word, p + i, n);
		fprintf(stderr, "byte %zu of %zu at %p is wrong: 0x%llx, serial %llu; seed %llu\n",
			i, bytes, where, (unsigned long long)word, (unsigned long long)serial,
			(unsigned long long)seed);
		fflush(NULL);
		_exit(1);
	}
}

/* ---- kernels ------------------------------------------------------------------------- */

static char fill_kernel, look_kernel, follow_kernel; /* names */

static void fill_body(void **args)
{
	stamp(*(char **)args[0], *(size_t *)args[1], *(uint64_t *)args[2]);
}

static void look_body(void **args)
{
	look(*(char **)args[0], *(size_t *)args[1], *(uint64_t *)args[2], *(char **)args[0]);
}

/* A list in device memory: a node begins with the address of the next one, its size and serial. */
struct node {
	struct node *next;
	uint64_t bytes, serial;
};

static void follow_body(void **args)
{
	for (struct node *n = *(struct node **)args[0]; n; n = n->next)
		look((char *)(n + 1), n->bytes - sizeof(*n), n->serial, n);
}

static void launch(const void *kernel, hipStream_t on, char *p, size_t bytes, uint64_t serial)
{
	void *args[] = {&p, &bytes, &serial};

	OK(hipLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args, 0, on));
}

static void kernels_register(void)
{
	static const size_t three[] = {8, 8, 8, 0}, one[] = {8, 0};

	kernel_register(&fill_kernel, fill_body, three);
	kernel_register(&look_kernel, look_body, three);
	kernel_register(&follow_kernel, follow_body, one);
}

/* ---- blocks --------------------------------------------------------------------------- */

static size_t some_bytes(uint64_t *x)
{
	return 1 + draw(x) % (draw(x) % 4 ? 9000 : MOST);
}

/* By a kernel, or by a copy. */
static void write_block(struct thread *t, struct own *b, hipStream_t on)
{
	b->serial = new_serial();
	if (draw(&t->x) % 3) {
		launch(&fill_kernel, on, b->p, b->bytes, b->serial);
		return;
	}
	stamp(t->host, b->bytes, b->serial);
	OK(hipMemcpyAsync(b->p, t->host, b->bytes, hipMemcpyHostToDevice, on));
	OK(hipStreamSynchronize(on));
}

static void take(struct thread *t, struct own *b, hipStream_t on)
{
	b->bytes = some_bytes(&t->x);
	OK(hipMallocAsync((void **)&b->p, b->bytes, on));
	write_block(t, b, on);
}

static void check_by_copy(struct thread *t, const struct own *b, hipStream_t on)
{
	OK(hipMemcpyAsync(t->host, b->p, b->bytes, hipMemcpyDeviceToHost, on));
	OK(hipStreamSynchronize(on));
	look(t->host, b->bytes, b->serial, b->p);
}

static void check(struct thread *t, const struct own *b, hipStream_t on)
{
	if (draw(&t->x) % 3)
		launch(&look_kernel, on, b->p, b->bytes, b->serial);
	else
		check_by_copy(t, b, on);
}

static void give(struct own *b, hipStream_t on)
{
	OK(hipFreeAsync(b->p, on));
	b->p = NULL;
}

/* One of the blocks is made, looked at, written again or freed, on one stream. */
static void churn(struct thread *t, struct own *held, hipStream_t on)
{
	struct own *b = &held[draw(&t->x) % HELD];

	if (!b->p)
		return take(t, b, on);
	check(t, b, on);
	if (draw(&t->x) % 3 == 0)
		give(b, on);
	else if (draw(&t->x) % 3 == 0)
		write_block(t, b, on);
}

static void give_all(struct thread *t, struct own *held, hipStream_t on)
{
	for (int i = 0; i < HELD; i++) {
		if (!held[i].p)
			continue;
		check_by_copy(t, &held[i], on);
		give(&held[i], on);
	}
}

static bool goes_on(struct thread *t)
{
	t->round++;
	atomic_fetch_add(&rounds, 1);
	return !atomic_load(&over);
}

/* ---- the kinds --------------------------------------------------------------------------- */

static void one(struct thread *t)
{
	struct own held[HELD] = {0};

	while (goes_on(t))
		churn(t, held, NULL);
	give_all(t, held, NULL);
}

/* Blocks go from stream to stream, in order by events. */
static void events(struct thread *t)
{
	enum { STREAMS = 6 };
	struct own held[HELD] = {0};
	hipStream_t on[STREAMS];
	hipEvent_t event;

	for (int i = 0; i < STREAMS; i++)
		OK(hipStreamCreateWithFlags(&on[i], i % 3 ? hipStreamNonBlocking : 0));
	OK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
	while (goes_on(t)) {
		hipStream_t from = on[draw(&t->x) % STREAMS], to = on[draw(&t->x) % STREAMS];
		struct own b;

		take(t, &b, from);
		OK(hipEventRecord(event, from));
		if (draw(&t->x) % 2)
			(void)hipEventQuery(event);
		OK(hipStreamWaitEvent(to, event, 0));
		check(t, &b, to);
		give(&b, to);
		churn(t, held, on[0]);
	}
	give_all(t, held, on[0]);
	for (int i = 0; i < STREAMS; i++)
		OK(hipStreamDestroy(on[i]));
	OK(hipEventDestroy(event));
}

static void per_thread(struct thread *t)
{
	struct own held[HELD] = {0};

	while (goes_on(t))
		churn(t, held, hipStreamPerThread);
	give_all(t, held, hipStreamPerThread);
}

static void pools(struct thread *t)
{
	hipStream_t on;

	OK(hipStreamCreateWithFlags(&on, hipStreamNonBlocking));
	while (goes_on(t)) {
		hipMemPool_t pool = make_pool(0, hipMemHandleTypeNone);
		struct own b[HELD] = {0};
		int n = 1 + (int)(draw(&t->x) % HELD);
		bool first = draw(&t->x) % 2;

		for (int i = 0; i < n; i++) {
			b[i].bytes = some_bytes(&t->x);
			OK(hipMallocFromPoolAsync((void **)&b[i].p, b[i].bytes, pool, on));
			write_block(t, &b[i], on);
		}
		/* A pool goes when its last block goes. */
		if (first)
			OK(hipMemPoolDestroy(pool));
		goes_on(t);
		give_all(t, b, on);
		if (!first)
			OK(hipMemPoolDestroy(pool));
	}
	OK(hipStreamDestroy(on));
}

/* A graph writes a block by a kernel, copies it, and looks at both. Another one allocates. */
static void graphs(struct thread *t)
{
	enum { GRAPHS = 4 };
	struct own held[HELD] = {0}, from[GRAPHS], to[GRAPHS];
	hipGraphExec_t exec[GRAPHS];
	hipGraph_t graph;
	hipStream_t on;
	void *inside;

	OK(hipStreamCreateWithFlags(&on, hipStreamNonBlocking));
	while (goes_on(t)) {
		for (int i = 0; i < GRAPHS; i++) {
			take(t, &from[i], on);
			to[i] = from[i];
			OK(hipMallocAsync((void **)&to[i].p, to[i].bytes, on));
			OK(hipMemcpyAsync(to[i].p, from[i].p, to[i].bytes, hipMemcpyDeviceToDevice,
					  on));
			OK(hipStreamBeginCapture(on, hipStreamCaptureModeRelaxed));
			launch(&look_kernel, on, to[i].p, to[i].bytes, to[i].serial);
			launch(&fill_kernel, on, from[i].p, from[i].bytes, from[i].serial);
			OK(hipMemcpyAsync(to[i].p, from[i].p, to[i].bytes, hipMemcpyDeviceToDevice,
					  on));
			launch(&look_kernel, on, to[i].p, to[i].bytes, to[i].serial);
			if (i == 0) {
				OK(hipMallocAsync(&inside, 70000, on));
				launch(&fill_kernel, on, inside, 70000, 1);
				launch(&look_kernel, on, inside, 70000, 1);
				OK(hipFreeAsync(inside, on));
			}
			OK(hipStreamEndCapture(on, &graph));
			OK(hipGraphInstantiate(&exec[i], graph, NULL, NULL, 0));
			OK(hipGraphDestroy(graph));
		}
		for (int i = 0; i < 12; i++) {
			goes_on(t);
			OK(hipGraphLaunch(exec[draw(&t->x) % GRAPHS], on));
			churn(t, held, on);
		}
		for (int i = 0; i < GRAPHS; i++) {
			check(t, &to[i], on);
			check(t, &from[i], on);
			give(&from[i], on);
			give(&to[i], on);
			OK(hipStreamSynchronize(on));
			OK(hipGraphExecDestroy(exec[i]));
		}
	}
	give_all(t, held, on);
	OK(hipStreamDestroy(on));
}

/* The host function takes a lock that the thread has during calls. */
static pthread_mutex_t both = PTHREAD_MUTEX_INITIALIZER;

struct arrived {
	const char *bytes;
	struct own block;
	int times;
};

static void arrives(hipStream_t on, hipError_t error, void *arg)
{
	struct arrived *a = arg;

	(void)on;
	CHECK(error == hipSuccess);
	look(a->bytes, a->block.bytes, a->block.serial, a->block.p);
	pthread_mutex_lock(&both);
	a->times++;
	pthread_mutex_unlock(&both);
}

static void functions(struct thread *t)
{
	struct own held[HELD] = {0};
	struct arrived a = {.times = 0};
	hipStream_t on;
	char *bytes;

	OK(hipStreamCreateWithFlags(&on, hipStreamNonBlocking));
	OK(hipHostMalloc((void **)&bytes, MOST, 0));
	while (goes_on(t)) {
		take(t, &a.block, on);
		a.bytes = bytes;
		OK(hipMemcpyAsync(bytes, a.block.p, a.block.bytes, hipMemcpyDeviceToHost, on));
		OK(hipStreamAddCallback(on, arrives, &a, 0));
		pthread_mutex_lock(&both);
		churn(t, held, NULL);
		pthread_mutex_unlock(&both);
		OK(hipStreamSynchronize(on));
		give(&a.block, on);
	}
	give_all(t, held, NULL);
	OK(hipStreamDestroy(on));
	OK(hipHostFree(bytes));
}

/* Two threads in turns, each of which waits on the device for what the other writes there. */
static hipStream_t turn_stream[2];
static uint32_t *turn; /* pinned */
static struct own passed;
static pthread_barrier_t meets;
static atomic_bool ends;

static void values(struct thread *t)
{
	struct own held[HELD] = {0}, b;
	hipStream_t on = turn_stream[t->index];
	bool last = false;

	for (uint32_t n = 0; !last; n++) {
		(void)goes_on(t);
		if (t->index == 0) {
			take(t, &b, on);
			passed = b;
			atomic_store(&ends, atomic_load(&over));
		}
		pthread_barrier_wait(&meets);
		if (t->index == 1) {
			b = passed;
			/* The work is there before what it waits for. */
			OK(hipStreamWaitValue32(on, turn, n + 1, hipStreamWaitValueGte, ~0u));
			launch(&look_kernel, on, b.p, b.bytes, b.serial);
			OK(hipStreamWriteValue32(on, turn + 1, n + 1, 0));
			churn(t, held, NULL);
		} else {
			churn(t, held, hipStreamPerThread);
			OK(hipStreamWriteValue32(on, turn, n + 1, 0));
			OK(hipStreamWaitValue32(on, turn + 1, n + 1, hipStreamWaitValueGte, ~0u));
			give(&b, on);
		}
		OK(hipStreamSynchronize(on));
		last = atomic_load(&ends); /* of both threads in the same round */
		pthread_barrier_wait(&meets);
	}
	give_all(t, held, t->index ? NULL : hipStreamPerThread);
}

static void values_begin(void)
{
	for (int i = 0; i < 2; i++)
		OK(hipStreamCreateWithFlags(&turn_stream[i], hipStreamNonBlocking));
	OK(hipHostMalloc((void **)&turn, 4096, 0));
	memset(turn, 0, 4096);
	CHECK(!pthread_barrier_init(&meets, NULL, 2));
}

/* Copies between the devices, and kernels of each on memory of the other. */
static void peers(struct thread *t)
{
	struct own held[2][HELD] = {0}, b[2];
	hipMemAccessDesc access = {.flags = hipMemAccessFlagsProtReadWrite};
	hipStream_t on[2];
	hipMemPool_t pool;

	for (int dev = 0; dev < 2; dev++) {
		OK(hipSetDevice(dev));
		OK(hipStreamCreateWithFlags(&on[dev], hipStreamNonBlocking));
		access.location.type = hipMemLocationTypeDevice;
		access.location.id = !dev;
		OK(hipDeviceGetDefaultMemPool(&pool, dev));
		OK(hipMemPoolSetAccess(pool, &access, 1));
	}
	while (goes_on(t)) {
		int dev = (int)(draw(&t->x) % 2);

		OK(hipSetDevice(dev));
		take(t, &b[0], on[dev]);
		OK(hipStreamSynchronize(on[dev]));
		OK(hipSetDevice(!dev));
		b[1] = b[0];
		OK(hipMallocAsync((void **)&b[1].p, b[1].bytes, on[!dev]));
		OK(hipMemcpyPeerAsync(b[1].p, !dev, b[0].p, dev, b[0].bytes, on[!dev]));
		launch(&look_kernel, on[!dev], b[0].p, b[0].bytes, b[0].serial);
		launch(&look_kernel, on[!dev], b[1].p, b[1].bytes, b[1].serial);
		OK(hipStreamSynchronize(on[!dev]));
		give(&b[1], on[!dev]);
		OK(hipSetDevice(dev));
		give(&b[0], on[dev]);
		churn(t, held[dev], on[dev]);
	}
	for (int dev = 0; dev < 2; dev++) {
		OK(hipSetDevice(dev));
		give_all(t, held[dev], on[dev]);
		OK(hipStreamDestroy(on[dev]));
	}
}

static void pointers(struct thread *t)
{
	enum { NODES = 12 };
	struct own node[NODES] = {0}, held[HELD] = {0};
	struct node head;
	hipStream_t on;
	void *first, *args[] = {&first};

	OK(hipStreamCreateWithFlags(&on, hipStreamNonBlocking));
	while (goes_on(t)) {
		first = NULL;
		for (int i = 0; i < NODES; i++) {
			node[i].bytes = sizeof(head) + some_bytes(&t->x) % (MOST / 4);
			OK(hipMallocAsync((void **)&node[i].p, node[i].bytes, on));
			head = (struct node){first, node[i].bytes, new_serial()};
			launch(&fill_kernel, on, node[i].p + sizeof(head),
			       node[i].bytes - sizeof(head), head.serial);
			OK(hipMemcpyAsync(node[i].p, &head, sizeof(head), hipMemcpyHostToDevice,
					  on));
			OK(hipStreamSynchronize(on));
			first = node[i].p;
		}
		for (int i = 0; i < 10; i++) {
			goes_on(t);
			OK(hipLaunchKernel(&follow_kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args,
					   0, on));
			churn(t, held, on);
		}
		for (int i = 0; i < NODES; i++)
			give(&node[i], on);
	}
	give_all(t, held, on);
	OK(hipStreamDestroy(on));
}

/* (SOMASHIM_DECAY_MS=20) */
static void trims(struct thread *t)
{
	struct own held[HELD] = {0};
	hipMemPool_t pool;
	hipStream_t on;
	uint64_t keep;

	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipStreamCreateWithFlags(&on, hipStreamNonBlocking));
	while (goes_on(t)) {
		churn(t, held, on);
		switch (draw(&t->x) % 24) {
		case 0: OK(hipMemPoolTrimTo(pool, draw(&t->x) % (4 * MIB))); break;
		case 1:
			keep = draw(&t->x) % 3 ? draw(&t->x) % (8 * MIB) : UINT64_MAX;
			OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &keep));
			break;
		case 2: OK(hipDeviceSynchronize()); break;
		case 3: usleep(25000); break; /* memory decays */
		case 4: give_all(t, held, on); break;
		}
	}
	give_all(t, held, on);
	OK(hipStreamDestroy(on));
}

static void classic(struct thread *t)
{
	struct own held[HELD] = {0}, old[HELD] = {0};

	while (goes_on(t)) {
		struct own *b = &old[draw(&t->x) % HELD];

		churn(t, held, hipStreamPerThread);
		if (!b->p) {
			b->bytes = some_bytes(&t->x);
			OK(hipMalloc((void **)&b->p, b->bytes));
			write_block(t, b, NULL);
		} else {
			check(t, b, NULL);
			if (draw(&t->x) % 2) {
				OK(hipFree(b->p));
				b->p = NULL;
			}
		}
	}
	give_all(t, held, hipStreamPerThread);
	for (int i = 0; i < HELD; i++) {
		if (!old[i].p)
			continue;
		check_by_copy(t, &old[i], NULL);
		OK(hipFree(old[i].p));
	}
}

/* One thread resets the device, the other one asks for figures. */
static void resets(struct thread *t)
{
	struct own held[HELD] = {0};
	size_t left, total;

	while (goes_on(t)) {
		if (t->index) {
			OK(hipMemGetInfo(&left, &total));
			CHECK(left <= total);
			usleep(500);
			continue;
		}
		churn(t, held, NULL);
		if (t->round % 40 == 0) {
			for (int i = 0; i < HELD; i++)
				if (held[i].p)
					check_by_copy(t, &held[i], NULL);
			OK(hipDeviceReset());
			memset(held, 0, sizeof(held));
		}
	}
	if (!t->index)
		give_all(t, held, NULL);
}

static const struct kind {
	const char *name;
	void (*work)(struct thread *t);
	unsigned threads;
	void (*begin)(void);
} kinds[] = {
	{"one", one, 1, NULL},
	{"events", events, 2, NULL},
	{"per-thread", per_thread, 4, NULL},
	{"pools", pools, 2, NULL},
	{"graphs", graphs, 1, NULL},
	{"functions", functions, 1, NULL},
	{"values", values, 2, values_begin},
	{"peers", peers, 1, NULL},
	{"pointers", pointers, 1, NULL},
	{"trims", trims, 2, NULL},
	{"classic", classic, 2, NULL},
	{"resets", resets, 2, NULL},
};

/* ---- requests ---------------------------------------------------------------------------- */

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

static uint64_t held_bytes, gone_bytes;

/* Did it sleep? */
static bool put_to_sleep(bool hold, bool by_command)
{
	const struct ss_live_slept *slept = &page_of_ours()->sleep.slept;

	if (by_command)
		(void)(hold ? command("sleep", "--hold", own_pid(), NULL) :
			      command("sleep", own_pid(), NULL));
	else
		request(hold ? SS_LIVE_HOLD : SS_LIVE_NAP);
	if (slept->error) {
		if (strcmp(slept->why, "its pools hold no memory in use") != 0)
			printf("not asleep: %s\n", slept->why);
		return false;
	}
	/* No more comes back than there was, and it is said how much stays. */
	CHECK(slept->gone <= slept->held && slept->stays == slept->held - slept->gone);
	held_bytes += slept->held;
	gone_bytes += slept->gone;
	return true;
}

static void wake(bool by_command)
{
	if (by_command)
		COMMAND(0, "wake", own_pid());
	else
		request(SS_LIVE_WAKE);
}

static const struct kind *kind;

static void *work(void *arg)
{
	struct thread t = {.index = (unsigned)(uintptr_t)arg};

	t.x = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15) + t.index;
	t.host = malloc(MOST);
	CHECK(t.host);
	kind->work(&t);
	free(t.host);
	return NULL;
}

static void goes_to_sleep_and_wakes(uint64_t *x, uint32_t *slept)
{
	bool hold = draw(x) % 2, by_command = draw(x) % COMMAND_EVERY == 0;
	uint32_t before;

	*slept += put_to_sleep(hold, by_command);
	if (hold) {
		if (draw(x) % 4 == 0)
			usleep((unsigned)(draw(x) % 3000)); /* threads arrive and are held */
		wake(by_command);
	}
	before = atomic_load(&rounds);
	for (uint32_t n = (uint32_t)(draw(x) % 20); atomic_load(&rounds) - before < n;)
		usleep(100);
}

int main(int argc, char **argv)
{
	pthread_t thread[MOST_THREADS];
	uint32_t slept = 0, sleeps;
	uint64_t x;

	CHECK(argc == 5);
	sleep_test_begin(argc, argv);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(argv[2], kinds[i].name))
			kind = &kinds[i];
	CHECK(kind);
	seed = strtoull(argv[3], NULL, 0);
	sleeps = (uint32_t)strtoul(argv[4], NULL, 0);
	x = seed * 2 + 1;
	kernels_register();
	if (kind->begin)
		kind->begin();
	for (uintptr_t i = 0; i < kind->threads; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, (void *)i));
	for (uint32_t i = 0; i < sleeps; i++)
		goes_to_sleep_and_wakes(&x, &slept);
	atomic_store(&over, true);
	for (unsigned i = 0; i < kind->threads; i++)
		pthread_join(thread[i], NULL);
	printf("%s: %u of %u sleeps, %.3f came back, %u rounds, seed %llu\n", kind->name, slept,
	       sleeps, held_bytes ? (double)gone_bytes / (double)held_bytes : 0.0,
	       atomic_load(&rounds), (unsigned long long)seed);
	CHECK(slept > 0);
	return 0;
}
