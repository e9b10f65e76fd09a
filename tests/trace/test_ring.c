/* SPDX-License-Identifier: MIT */
/*
 * Rings: a recording that is a ring has, from its beginning on, the figures and the blocks of the
 * whole recording of the same events, however often its beginning moved, and never grows past its
 * bounds.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "cli/analysis/analysis.h"
#include "cli/ring/dump.h"
#include "cli/ring/fold.h"
#include "cli/ring/size.h"
#include "trace_test.h"

#define EVENTS 600000
#define ADDRESSES 3000
#define THREADS 3
#define RING ((uint64_t)SS_TRACE_RING_LEAST * SS_TRACE_BLOCK_SIZE)
#define MIB 1048576ull

static unsigned seed = 1;
static const char *ring_path; /* NULL: a whole recording */
static uint64_t largest;      /* bytes on the disk */

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 2685821657736338717ull >> 16;
}

/* Different stacks. */
static __attribute__((noinline)) void one(uint64_t when, void *ptr, uint64_t size, void *pool)
{
	ss_trace_alloc_at(when, ptr, size, (size + 511) & ~511ull, 0, pool, STREAM, 0);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void other(uint64_t when, void *ptr, uint64_t size, void *pool)
{
	ss_trace_alloc_at(when, ptr, size, (size + 511) & ~511ull, 0, pool, STREAM, 0);
	__asm__ volatile("" ::: "memory");
}

static void fold(void)
{
	char err[512];
	struct stat st;

	if (!ring_path)
		return;
	for (;;) {
		enum ss_ring_result result = ss_ring_fold(ring_path, 0, err, sizeof(err));
		if (result == SS_RING_FAILED)
			fprintf(stderr, "%s\n", err);
		MUST(result != SS_RING_FAILED);
		MUST(stat(ring_path, &st) == 0);
		largest = (uint64_t)st.st_blocks * 512 > largest ? (uint64_t)st.st_blocks * 512 :
								   largest;
		if (result == SS_RING_IDLE)
			return;
	}
}

/* Writes events at fixed times, from threads that take turns. Some blocks live for the whole
 * time. */
struct turns {
	uint64_t random, begin;
	int state[ADDRESSES]; /* 0: free, 1: live, 2: in flight */
	int thread, n;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

static void step(struct turns *t)
{
	uint64_t r = next_random(&t->random), i = r % ADDRESSES,
		 when = t->begin + (uint64_t)t->n * 1000;
	void *ptr = (void *)(uintptr_t)(BASE + i * MIB),
	     *pool = (void *)(uintptr_t)(0x1000 + i % 2 * 0x1000);
	uint64_t size = 1 + (r >> 20) % (MIB - 1);

	if (i < 100 && t->state[i] == 1) /* lives until the end */
		return;
	if (i % 500 == 499) { /* a segment, which comes and goes */
		void *base = (void *)(uintptr_t)(BASE + (1ull << 40) + i * MIB);
		ss_trace_segment_at(when,
				    t->state[i] ? SS_TRACE_SEGMENT_FREE : SS_TRACE_SEGMENT_ALLOC,
				    base, i * 4096, 0, pool, 0);
		t->state[i] = !t->state[i];
	} else if (t->state[i] == 0) {
		(r >> 44 & 1 ? one : other)(when, ptr, size, pool);
		t->state[i] = 1;
	} else if (t->state[i] == 1) {
		ss_trace_free_at(when, ptr, 0, pool, STREAM, 0);
		t->state[i] = 2;
	} else {
		ss_trace_reusable_at(when, ptr, MIB, 0, pool);
		t->state[i] = 0;
	}
}

static void *run(void *arg)
{
	struct turns *t = arg;

	pthread_mutex_lock(&t->lock);
	int me = t->thread++;
	while (t->n < EVENTS) {
		if (t->n / 5000 % THREADS != me) {
			pthread_cond_wait(&t->changed, &t->lock);
			continue;
		}
		step(t);
		if (++t->n % 5000 == 0) {
			fold();
			pthread_cond_broadcast(&t->changed);
		}
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

struct job {
	const char *path;
	bool ring; /* and a dump of it, to path.dump */
	uint64_t begin;
	void (*more)(struct job *job); /* in the middle; may be NULL */
};

static void record(void *arg)
{
	static struct turns t = {.lock = PTHREAD_MUTEX_INITIALIZER,
				 .changed = PTHREAD_COND_INITIALIZER};
	struct job *job = arg;
	pthread_t thread[THREADS];

	t.random = seed * 0x9e3779b97f4a7c15ull;
	t.begin = job->begin;
	ring_path = job->ring ? job->path : NULL;
	ss_trace_set_ring(job->ring ? RING : 0);
	MUST(ss_trace_open(job->path, NULL));
	ss_trace_device(0, 0, 1, 0, 0, NULL, 1ull << 40, "device");
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_create(&thread[i], NULL, run, &t) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	if (job->ring) {
		char to[512], err[512];
		snprintf(to, sizeof(to), "%s.dump", job->path);
		int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 || !ss_ring_dump(job->path, fd, to, 10000, err, sizeof(err))) {
			fprintf(stderr, "%s: %s\n", to, fd < 0 ? strerror(errno) : err);
			_exit(1);
		}
		close(fd);
		/* The events of the program, and as much again at most for what is left of older
		 * ones. */
		MUST(largest <= 2 * RING + 65536);
		MUST(largest > RING / 4);
	}
	kill(getpid(), SIGKILL); /* as a program that is killed */
}

/* ---- comparison ------------------------------------------------------------ */

struct side {
	struct ss_trace_reader *reader;
	struct ss_sites sites;
	struct ss_trace_memory memory;
	struct ss_trace_item item;
	bool more;
};

static void open_side(struct side *s, const char *path)
{
	s->reader = open_one(path);
	assert_true(ss_sites_read(&s->sites, s->reader, NULL));
	assert_true(ss_trace_memory_init(&s->memory, s->reader, &s->sites, NULL, NULL));
	s->more = ss_trace_reader_next(s->reader, &s->item);
}

static void close_side(struct side *s)
{
	ss_trace_memory_finish(&s->memory);
	ss_sites_finish(&s->sites);
	ss_trace_reader_close(s->reader);
}

/* Applies all events up to a moment. */
static void go_to(struct side *s, uint64_t time_ns)
{
	while (s->more && s->item.time_ns <= time_ns) {
		assert_true(ss_trace_memory_apply(&s->memory, &s->item));
		s->more = ss_trace_reader_next(s->reader, &s->item);
	}
}

static const char *caller(const struct side *s, const struct ss_range *b)
{
	const struct ss_site *site = &s->sites.site[b->site];

	return site->frames ? s->sites.frame[site->frame[0]].function : "";
}

static void same_levels(const struct side *a, const struct side *b)
{
	assert_memory_equal(&a->memory.device[0], &b->memory.device[0],
			    sizeof(a->memory.device[0]));
	for (uint32_t pool = 1; pool < 4; pool++) {
		assert_memory_equal(&a->memory.pool[pool], &b->memory.pool[pool],
				    sizeof(a->memory.pool[pool]));
	}
}

/* All blocks and segments are the same, with who allocated them and when. */
static void same_ranges(const struct side *a, const struct side *b, const struct ss_ranges *x,
			const struct ss_ranges *y)
{
	struct ss_ranges_walk walk_x = {0}, walk_y = {0};
	const struct ss_range *p = ss_ranges_from(x, 0), *q = ss_ranges_from(y, 0);

	assert_int_equal(x->count, y->count);
	for (; p && q; p = ss_ranges_next(x, &walk_x, p), q = ss_ranges_next(y, &walk_y, q)) {
		assert_int_equal(p->base, q->base);
		assert_int_equal(p->size, q->size);
		assert_int_equal(p->asked, q->asked);
		assert_int_equal(p->pool, q->pool);
		assert_int_equal(p->freed, q->freed);
		if (x == &a->memory.blocks) {
			assert_int_equal(p->begin_ns, q->begin_ns);
			assert_string_equal(caller(a, p), caller(b, q));
		}
	}
}

static void same(const char *whole, const char *part, uint64_t least)
{
	struct side a, b;
	uint64_t events = 0, lived = 0, real = 0;

	open_side(&a, whole);
	open_side(&b, part);
	assert_true(b.more);
	assert_int_equal(ss_trace_reader_process(b.reader)->lost_events, 0);
	uint64_t begin = b.item.time_ns;
	while (b.more) {
		uint64_t now = b.item.time_ns;
		if (now < begin + 1000 && ss_trace_item_lived(&b.item))
			lived++;
		else
			real++;
		uint64_t last = now;
		go_to(&b, now);
		/* The base is as of the event before the beginning. */
		go_to(&a, last);
		same_levels(&a, &b);
		if (events++ % 5000 == 0 || !b.more) {
			same_ranges(&a, &b, &a.memory.blocks, &b.memory.blocks);
			same_ranges(&a, &b, &a.memory.mapped, &b.memory.mapped);
		}
	}
	assert_true(lived > 0);
	assert_true(real >= least);
	assert_false(a.more); /* the end is the same */
	assert_int_equal(b.memory.unknown_frees, 0);
	close_side(&a);
	close_side(&b);
}

static void test_same(void **state)
{
	/* Times that are over, as all events of a dump are. */
	struct job whole = {.path = path_in("whole"), .begin = 1 << 20};
	struct job ring = {.path = path_in("ring"), .ring = true, .begin = 1 << 20};
	char dumped[512];

	assert_true(WIFSIGNALED(in_child(record, &whole)));
	assert_true(WIFSIGNALED(in_child(record, &ring)));
	/* The ring that a killed program leaves, and what was dumped from it. */
	same(whole.path, ring.path, RING / 4 / 48);
	snprintf(dumped, sizeof(dumped), "%s.dump", ring.path);
	same(whole.path, dumped, RING / 4 / 48);
}

/* ---- one state ------------------------------------------------------------- */

#define STEADY_EVENTS 120000
#define CYCLE 1000 /* ns of a pair */

/* A service: 64 MiB reserved, of which 50 live from the start on, and a block that comes and
 * goes. */
static void serve(void *arg)
{
	struct job *job = arg;
	void *pool = (void *)0x1000, *base = (void *)(uintptr_t)BASE,
	     *block = (void *)(uintptr_t)(BASE + 52 * MIB);

	ring_path = job->path;
	ss_trace_set_ring(RING);
	MUST(ss_trace_open(job->path, NULL));
	ss_trace_device(0, 0, 1, 0, 0, NULL, 1ull << 40, "device");
	ss_trace_segment_at(job->begin, SS_TRACE_SEGMENT_ALLOC, base, 64 * MIB, 0, pool, 0);
	one(job->begin, base, 50 * MIB, pool);
	for (uint64_t n = 1; n <= STEADY_EVENTS; n++) {
		if (n % 2)
			one(job->begin + n * CYCLE, block, MIB, pool);
		else
			ss_trace_free_at(job->begin + n * CYCLE, block, 0, pool, STREAM,
					 SS_TRACE_F_REUSABLE);
		if (job->more && n == STEADY_EVENTS / 2)
			job->more(job);
		if (n % 5000 == 0)
			fold();
	}
	kill(getpid(), SIGKILL);
}

static void in_order(struct ss_trace_reader *r)
{
	struct ss_sites sites;
	struct ss_trace_memory m;
	struct ss_trace_item e;

	MUST(ss_sites_read(&sites, r, NULL));
	for (int pass = 0; pass < 2; pass++) {
		MUST(ss_trace_memory_init(&m, r, &sites, NULL, NULL));
		while (ss_trace_reader_next(r, &e))
			MUST(ss_trace_memory_apply(&m, &e));
		MUST(m.unknown_frees == 0 && m.lost_frees == 0);
		MUST(m.device[0].reserved == 64 * MIB && m.device[0].used >= 50 * MIB);
		ss_trace_memory_finish(&m);
		ss_trace_reader_rewind(r);
	}
	ss_sites_finish(&sites);
	ss_trace_reader_close(r);
}

/* What a reader opened stays as it was while the ring goes on, also in its second pass. */
static void read_while_it_folds(struct job *job)
{
	char err[512];
	struct ss_trace_reader *r = ss_trace_reader_open(job->path, err, sizeof(err));
	void *pool = (void *)0x1000, *block = (void *)(uintptr_t)(BASE + 60 * MIB);

	MUST(r);
	for (uint64_t n = 1; n <= STEADY_EVENTS; n++) {
		if (n % 2)
			one(job->begin + (STEADY_EVENTS / 2) * CYCLE + n, block, MIB, pool);
		else
			ss_trace_free_at(job->begin + (STEADY_EVENTS / 2) * CYCLE + n, block, 0,
					 pool, STREAM, SS_TRACE_F_REUSABLE);
		if (n % 5000 == 0)
			fold();
	}
	in_order(r);
}

static void test_running(void **state)
{
	struct job job = {
		.path = path_in("running"), .begin = 1 << 20, .more = read_while_it_folds};

	assert_int_equal(WTERMSIG(in_child(serve, &job)), SIGKILL);
}

/* The header of a file that is mapped. */
static struct ss_trace_header *header_of(const char *path, int *fd)
{
	*fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(*fd >= 0);
	struct ss_trace_header *h = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	assert_ptr_not_equal(h, MAP_FAILED);
	return h;
}

static void read_ring(void *arg)
{
	char err[512];
	struct ss_trace_reader *r = ss_trace_reader_open(arg, err, sizeof(err));

	MUST(r);
	in_order(r);
}

/* Whoever has the ring locked is about to move its beginning: nothing is read before it is
 * there. */
static void test_locked(void **state)
{
	static const struct timespec soon = {.tv_nsec = 50000000};
	struct job job = {.path = path_in("locked"), .begin = 1 << 20};
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char err[512];
	int fd, status;

	assert_int_equal(WTERMSIG(in_child(serve, &job)), SIGKILL);
	struct ss_trace_header *h = header_of(job.path, &fd);
	uint64_t begin = h->begin_ns, blocks = h->base_blocks;
	assert_true(begin != 0);
	assert_true(blocks > 0);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &whole), 0);
	h->begin_ns++;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		read_ring((void *)job.path);
		_exit(0);
	}
	nanosleep(&soon, NULL);
	h->begin_ns = begin;
	whole.l_type = F_UNLCK; /* the mapping would keep the lock if the file were closed */
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &whole), 0);
	close(fd);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	/* Without its base, or with a part of it, it is no recording. */
	h->begin_ns++;
	assert_null(ss_trace_reader_open(job.path, err, sizeof(err)));
	assert_non_null(strstr(err, "the blocks that lived when it begins are missing"));
	h->begin_ns = begin;
	h->base_blocks = blocks + 1;
	assert_null(ss_trace_reader_open(job.path, err, sizeof(err)));
	h->base_blocks = blocks;
	read_ring((void *)job.path);
	munmap(h, 4096);
}

/* The most that was reserved is not looked for before all that lived at the beginning is there. */
static void test_peak(void **state)
{
	struct job job = {.path = path_in("peak"), .begin = 1 << 20};
	const struct ss_analysis_config config = {.charts = true, .samples = 64};
	char err[512];

	assert_int_equal(WTERMSIG(in_child(serve, &job)), SIGKILL);
	struct ss_analysis *a = ss_analysis_run(job.path, &config, err, sizeof(err));
	assert_non_null(a);
	assert_int_equal(a->devices, 1);
	const struct ss_snapshot *peak = &a->device[0].reserved_peak;
	assert_int_equal(peak->level.reserved, 64 * MIB);
	assert_in_range(peak->level.used, 50 * MIB, 51 * MIB);
	assert_true(peak->holders > 0);
	assert_in_range(peak->waste.idle, 13 * MIB, 14 * MIB);
	assert_int_equal(a->device[0].usage.reserved_peak.used, peak->level.used);
	assert_in_range(a->pool[0].usage.reserved_peak.used, 50 * MIB, 51 * MIB);
	assert_true(a->maps > 0);
	assert_non_null(strchr(a->map[0].live, '9'));
	ss_analysis_free(a);
}

static void test_sizes(void **state)
{
	static const char *const bad[] = {"",     "10",    "0m",    "m",     "-1m",  "1x",
					  "1m,",  "1m,2m", "4M,4M", "1M",    "100G", "400d",
					  "nanm", "infs",  "0x10M", "1e99s", "10mm"};
	struct ss_ring_size s;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (ss_ring_size_parse(bad[i], &s))
			fail_msg("'%s' is taken", bad[i]);
	assert_true(ss_ring_size_parse("10m", &s));
	assert_int_equal(s.keep_ns, 600000000000);
	assert_int_equal(s.bytes, 1 << 30);
	assert_true(ss_ring_size_parse("512M", &s));
	assert_int_equal(s.keep_ns, 0);
	assert_int_equal(s.bytes, 512 << 20);
	assert_true(ss_ring_size_parse("2G,1.5h", &s));
	assert_int_equal(s.keep_ns, 5400000000000);
	assert_int_equal(s.bytes, 2ull << 30);
}

/* ---- files that are not folded ------------------------------------------------- */

static void make_ring(void *arg)
{
	ss_trace_set_ring(RING);
	MUST(ss_trace_open(arg, NULL));
	_exit(0);
}

static void test_refused(void **state)
{
	char path[512], link[600], to[600], err[512];
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int out = memfd_create("dump", MFD_CLOEXEC);

	assert_true(out >= 0);
	snprintf(path, sizeof(path), "%s", path_in("held"));
	snprintf(link, sizeof(link), "%s.link", path);
	snprintf(to, sizeof(to), "%s.to", path);
	assert_int_equal(in_child(make_ring, path), 0);
	assert_int_equal(ss_ring_fold(path, 0, err, sizeof(err)), SS_RING_IDLE);
	/* Somebody holds it. */
	int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && fcntl(fd, F_OFD_SETLK, &whole) == 0);
	assert_int_equal(ss_ring_fold(path, 0, err, sizeof(err)), SS_RING_IDLE);
	assert_false(ss_ring_dump(path, out, to, 10, err, sizeof(err)));
	assert_non_null(strstr(err, "another process has it locked"));
	close(fd);
	/* Its name is a link to it. */
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(ss_ring_fold(link, 0, err, sizeof(err)), SS_RING_FAILED);
	assert_false(ss_ring_dump(link, out, to, 10, err, sizeof(err)));
	assert_true(ss_ring_dump(path, out, to, 10, err, sizeof(err)));
	/* It is another user's. */
	if (geteuid() == 0) {
		assert_int_equal(chmod(dir, 0711), 0);
		assert_int_equal(chown(path, 65534, 65534), 0);
		assert_int_equal(chmod(path, 0666), 0);
		assert_int_equal(seteuid(65533), 0);
		assert_int_equal(ss_ring_fold(path, 0, err, sizeof(err)), SS_RING_FAILED);
		assert_non_null(strstr(err, "another user's"));
		assert_int_equal(seteuid(0), 0);
	}
	close(out);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),   cmocka_unit_test(test_running),
		cmocka_unit_test(test_locked), cmocka_unit_test(test_peak),
		cmocka_unit_test(test_sizes),  cmocka_unit_test(test_refused),
	};

	seed = argc > 1 ? (unsigned)atoi(argv[1]) : (unsigned)getpid();
	printf("seed %u\n", seed);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
