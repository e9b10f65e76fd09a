/* SPDX-License-Identifier: MIT */
/* The writer: what it wrote is read back, however the process and its threads end. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "trace_test.h"

static _Atomic int said;

static void say(const char *line)
{
	said++;
}

static void events(uint64_t thread, uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n < to; n++) {
		ss_trace_alloc(address(thread, n), n + 1, (n + 1 + 511) & ~511ull, 0, POOL, STREAM,
			       SS_TRACE_F_HIT);
		ss_trace_free(address(thread, n), 0, POOL, STREAM, 0);
		ss_trace_reusable(address(thread, n), 512, 0, POOL);
	}
}

/* ---- one thread --------------------------------------------------------- */

static void record_all_kinds(void *arg)
{
	static const uint8_t uuid[16] = {1, 2, 3};
	unsetenv("OMPI_COMM_WORLD_RANK");
	setenv("SLURM_PROCID", "3", 1);
	setenv("SLURM_NTASKS", "8", 1);
	setenv("SLURM_JOB_ID", "4711", 1);
	setenv("SOMASHIM_TRACE", arg, 1);
	ss_trace_alloc(POOL, 1, 1, 0, POOL, NULL, 0); /* nothing records yet */
	MUST(!ss_trace_on() && ss_trace_wait_begin() == 0);
	MUST(ss_trace_open(arg, say));
	MUST(!ss_trace_open(arg, say) && errno == EBUSY);
	ss_trace_device(0, 1, 0xc1, 2, 3, uuid, 64ull << 30, "MI250X");
	ss_trace_pool_create(POOL, 0, "pool 3");
	ss_trace_stream(STREAM, 0, SS_TRACE_STREAM_NONBLOCKING);
	ss_trace_segment(SS_TRACE_SEGMENT_ALLOC, address(0, 0), 2 << 20, 0, POOL, 0);
	ss_trace_segment(SS_TRACE_MAP, address(1, 0), 4 << 20, 0, POOL, 0);
	errno = 7;
	ss_trace_alloc(address(0, 0), 1000, 4096, 0, POOL, STREAM, SS_TRACE_F_CLASSIC);
	ss_trace_free(address(0, 0), 0, POOL, NULL, SS_TRACE_F_REUSABLE);
	MUST(errno == 7);
	ss_trace_wait_end(ss_trace_clock() - 5000, SS_TRACE_WAIT_FREE, 0, STREAM);
	ss_trace_oom(SS_TRACE_OOM, 1ull << 40, 123, 456, 78, 0, POOL, STREAM);
	ss_trace_oom(SS_TRACE_LIMIT, 5, 6, 7, 8, -1, NULL, NULL);
	ss_trace_trim(SS_TRACE_TRIM_DECAY, 100, 200, 0, POOL);
	ss_trace_segment(SS_TRACE_UNMAP, address(1, 0), 4 << 20, 0, POOL, 0);
	ss_trace_segment(SS_TRACE_SEGMENT_FREE, address(0, 0), 2 << 20, 0, POOL, 0);
	ss_trace_pool_destroy(POOL, 0);
	ss_trace_pool_create(POOL, 0, "pool 4"); /* another pool at the same address */
	ss_trace_close();
	ss_trace_alloc(address(0, 0), 1, 1, 0, POOL, STREAM, 0);
	MUST(!ss_trace_on());
}

static void test_all_kinds(void **state)
{
	const char *path = path_in("kinds");
	static const enum ss_trace_kind kinds[] = {
		SS_TRACE_POOL_CREATE, SS_TRACE_SEGMENT_ALLOC, SS_TRACE_MAP,
		SS_TRACE_ALLOC,       SS_TRACE_FREE,          SS_TRACE_WAIT,
		SS_TRACE_OOM,         SS_TRACE_LIMIT,         SS_TRACE_TRIM,
		SS_TRACE_UNMAP,       SS_TRACE_SEGMENT_FREE,  SS_TRACE_POOL_DESTROY,
		SS_TRACE_POOL_CREATE};
	struct ss_trace_item e[20];
	size_t n = 0, count;

	assert_int_equal(in_child(record_all_kinds, (void *)path), 0);
	struct ss_trace_reader *r = open_one(path);
	while (ss_trace_reader_next(r, &e[n])) {
		assert_int_equal(e[n].kind, kinds[n]);
		n++;
	}
	assert_int_equal(n, sizeof(kinds) / sizeof(kinds[0]));
	assert_int_equal(ss_trace_reader_events(r), n);
	assert_null(ss_trace_reader_problem(r, &count));
	assert_true(e[3].address == (uintptr_t)address(0, 0) && e[3].size == 1000 &&
		    e[3].rounded == 4096 && e[3].flags == SS_TRACE_F_CLASSIC && e[3].stack != 0);
	assert_int_equal(e[4].flags, SS_TRACE_F_REUSABLE);
	assert_true(e[5].duration_ns >= 5000 && e[5].flags == SS_TRACE_WAIT_FREE);
	assert_true(e[6].size == 1ull << 40 && e[6].device_free == 123 && e[6].reserved == 456 &&
		    e[6].used == 78 && e[6].device == 0);
	assert_true(e[7].device == -1 && e[7].pool == 0);
	assert_true(e[8].size == 100 && e[8].reserved == 200 && e[8].flags == SS_TRACE_TRIM_DECAY);

	const struct ss_trace_process_def *p = ss_trace_reader_process(r);
	assert_int_equal(p->rank, 3);
	assert_int_equal(p->ranks, 8);
	assert_int_equal(p->local_rank, -1);
	assert_string_equal(p->launcher, "slurm");
	assert_string_equal(p->job, "4711");
	assert_int_equal(p->end, SS_TRACE_END_CLOSED);
	assert_true(p->arg_count >= 1 && p->args[p->arg_count] == NULL);
	assert_non_null(strstr(p->exe, "test_trace_writer"));
	assert_true(p->option_count >= 1);
	const struct ss_trace_device_def *d = ss_trace_reader_device(r, 0);
	assert_string_equal(d->pci, "0001:c1:02.3");
	assert_string_equal(d->name, "MI250X");
	assert_true(d->uuid[1] == 2 && d->total == 64ull << 30);
	assert_string_equal(ss_trace_reader_pool(r, e[3].pool)->name, "pool 3");
	assert_string_equal(ss_trace_reader_pool(r, e[12].pool)->name, "pool 4");
	assert_int_equal(ss_trace_reader_stream(r, e[3].stream)->kind, SS_TRACE_STREAM_NONBLOCKING);
	assert_int_equal(ss_trace_reader_stream(r, e[4].stream)->kind, SS_TRACE_STREAM_NULL);
	assert_true(
		ss_trace_reader_module_at(r, (uintptr_t)record_all_kinds, e[0].time_ns)->program);
	ss_trace_reader_close(r);
}

/* ---- many threads, killed ----------------------------------------------- */

#define THREADS 8

struct shared {
	_Atomic uint64_t done[THREADS]; /* events whose call has returned */
};

static struct shared *shared;

static void *record_forever(void *arg)
{
	uint64_t thread = (uint64_t)(uintptr_t)arg;

	for (uint64_t n = 0;; n++) {
		ss_trace_alloc(address(thread, n), n + 1, n + 1, 0, POOL, STREAM, 0);
		atomic_store(&shared->done[thread], n + 1);
	}
	return NULL;
}

static void test_killed(void **state)
{
	const char *path = path_in("killed");
	uint64_t seen[THREADS] = {0};
	struct ss_trace_item e;
	uint64_t last = 0;
	size_t count;
	int status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	pid_t pid = fork();
	if (pid == 0) {
		pthread_t t;
		MUST(ss_trace_open(path, say));
		for (uintptr_t i = 0; i < THREADS; i++)
			MUST(pthread_create(&t, NULL, record_forever, (void *)i) == 0);
		pause();
	}
	for (size_t i = 0; i < THREADS;) { /* several blocks of each thread */
		i += atomic_load(&shared->done[i]) > 10000;
		usleep(1000);
	}
	struct ss_trace_reader *r = open_one(path);
	assert_int_equal(ss_trace_reader_process(r)->end, SS_TRACE_END_NONE);
	ss_trace_reader_close(r);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);

	r = open_one(path);
	assert_int_equal(ss_trace_reader_process(r)->end, SS_TRACE_END_KILLED);
	while (ss_trace_reader_next(r, &e)) {
		uint64_t thread = (e.address - BASE) >> 32;
		assert_true(thread < THREADS);
		assert_ptr_equal((void *)e.address, address(thread, seen[thread]));
		assert_int_equal(e.size, seen[thread] + 1);
		assert_true(e.time_ns >= last);
		last = e.time_ns;
		seen[thread]++;
	}
	for (size_t i = 0; i < THREADS; i++) {
		uint64_t done = atomic_load(&shared->done[i]);
		assert_true(seen[i] == done || seen[i] == done + 1);
	}
	assert_null(ss_trace_reader_problem(r, &count));
	ss_trace_reader_close(r);
	munmap(shared, sizeof(*shared));
}

/* ---- threads that end --------------------------------------------------- */

static void *short_thread(void *arg)
{
	events((uintptr_t)arg, 0, 10);
	if ((uintptr_t)arg % 3 == 0)
		pthread_exit(NULL);
	if ((uintptr_t)arg % 3 == 1) {
		pthread_cancel(pthread_self());
		pthread_testcancel();
	}
	return NULL;
}

static void record_short_threads(void *arg)
{
	pthread_t t;

	MUST(ss_trace_open(arg, say));
	for (uintptr_t i = 0; i < 500; i++) {
		MUST(pthread_create(&t, NULL, short_thread, (void *)i) == 0);
		MUST(pthread_join(t, NULL) == 0);
	}
	MUST(ss_trace_bytes() <= 10 * SS_TRACE_BLOCK_SIZE);
	ss_trace_close();
}

static void test_short_threads(void **state)
{
	const char *path = path_in("short");
	struct ss_trace_item e;
	size_t count, n = 0;
	uint64_t last = 0;

	assert_int_equal(in_child(record_short_threads, (void *)path), 0);
	struct ss_trace_reader *r = open_one(path);
	while (ss_trace_reader_next(r, &e)) {
		assert_int_equal((e.address - BASE) >> 32, n++ / 30);
		assert_true(e.time_ns >= last);
		last = e.time_ns;
	}
	assert_int_equal(n, 500 * 30);
	ss_trace_reader_threads(r, &count);
	assert_true(count >= 400); /* ids of threads may be used again */
	ss_trace_reader_close(r);
}

/* ---- signals ------------------------------------------------------------ */

static void on_alarm(int sig)
{
	events(1, 0, 1);
}

static void record_with_signals(void *arg)
{
	const struct itimerval often = {{0, 200}, {0, 200}};

	MUST(ss_trace_open(arg, say));
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	events(0, 0, 200000);
	signal(SIGALRM, SIG_IGN);
	ss_trace_close();
}

static void test_signals(void **state)
{
	const char *path = path_in("signals");
	struct ss_trace_item e;
	uint64_t n[2] = {0};
	size_t count;

	assert_int_equal(in_child(record_with_signals, (void *)path), 0);
	struct ss_trace_reader *r = open_one(path);
	while (ss_trace_reader_next(r, &e))
		n[(e.address - BASE) >> 32]++;
	assert_int_equal(n[0], 600000);
	assert_null(ss_trace_reader_problem(r, &count));
	assert_true(n[1] + ss_trace_reader_process(r)->lost_events > 0);
	ss_trace_reader_close(r);
}

/* ---- fork --------------------------------------------------------------- */

static void record_and_fork(void *arg)
{
	int status;

	MUST(ss_trace_open(arg, say));
	events(0, 0, 100);
	pid_t pid = fork();
	if (pid == 0) {
		events(1, 0, 5000);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	MUST(status == 0);
	events(0, 100, 200);
	/* Without the handlers of fork(): the child must not write into our file. */
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		events(2, 0, 5000);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	MUST(status == 0);
	events(0, 200, 300);
	ss_trace_close();
}

/* Events of each of the threads that the test numbers. */
static void count_events(const char *path, uint64_t n[3])
{
	struct ss_trace_item e;
	struct ss_trace_reader *r = open_one(path);

	n[0] = n[1] = n[2] = 0;
	while (ss_trace_reader_next(r, &e))
		n[(e.address - BASE) >> 32]++;
	ss_trace_reader_close(r);
}

static void test_fork(void **state)
{
	char list[512], path[512];
	uint64_t n[3];
	int parents = 0, children = 0;

	for (int with_pid = 0; with_pid < 2; with_pid++) {
		snprintf(path, sizeof(path), "%s/fork-%d", dir, with_pid);
		if (with_pid)
			strcat(path, ".%p");
		assert_int_equal(in_child(record_and_fork, path), 0);
		snprintf(list, sizeof(list), "ls %s/fork-%d*", dir, with_pid);
		FILE *ls = popen(list, "r");
		while (fscanf(ls, "%511s", path) == 1) {
			count_events(path, n);
			assert_int_equal(n[2], 0);
			parents += n[0] == 900 && n[1] == 0;
			children += n[0] == 0 && n[1] == 15000;
		}
		pclose(ls);
		assert_int_equal(parents, with_pid + 1);
		assert_int_equal(children, with_pid + 1);
	}
}

/* ---- a disk that is full ------------------------------------------------ */

static void record_until_full(void *arg)
{
	MUST(ss_trace_open(arg, say));
	events(0, 0, 100000);
	MUST(!ss_trace_on());
	MUST(said == 1);
	ss_trace_close();
}

static void check_full(const char *path)
{
	size_t count;
	struct ss_trace_reader *r = open_one(path);

	assert_true(ss_trace_reader_events(r) > 1000);
	assert_null(ss_trace_reader_problem(r, &count));
	assert_int_equal(ss_trace_reader_process(r)->end, SS_TRACE_END_FULL);
	ss_trace_reader_close(r);
}

static void record_with_limit(void *arg)
{
	const struct rlimit limit = {300000, 300000};

	setrlimit(RLIMIT_FSIZE, &limit);
	record_until_full(arg);
}

static void test_file_limit(void **state)
{
	const char *path = path_in("limit");

	assert_int_equal(in_child(record_with_limit, (void *)path), 0);
	check_full(path);
}

/* In a file system of 1 MiB of its own. The file is copied out of it. */
static void record_on_small_disk(void *arg)
{
	char command[512];
	const char *disk = path_in("disk");

	mkdir(disk, 0700);
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", disk, "tmpfs", 0, "size=1m") != 0)
		_exit(77);
	record_until_full((void *)path_in("disk/trace"));
	snprintf(command, sizeof(command), "cp %s/disk/trace %s", dir, (char *)arg);
	MUST(system(command) == 0);
}

static void test_disk_full(void **state)
{
	const char *path = path_in("full");
	int status = in_child(record_on_small_disk, (void *)path);

	if (WEXITSTATUS(status) == 77)
		skip(); /* this user may not mount */
	assert_int_equal(status, 0);
	check_full(path);
}

static void record_nowhere(void *arg)
{
	MUST(!ss_trace_open(arg, say));
	MUST(errno != 0 && !ss_trace_on());
	events(0, 0, 10);
	MUST(said == 0);
}

static void test_no_file(void **state)
{
	assert_int_equal(in_child(record_nowhere, "/dev/full"), 0);
	assert_int_equal(in_child(record_nowhere, (void *)path_in("no/such/folder")), 0);
}

/* ---- a file that is cut while it is written --------------------------------- */

static volatile sig_atomic_t bus_errors;

static void on_bus_error(int sig, siginfo_t *info, void *context)
{
	bus_errors++;
	/* The access succeeds when it is made again. */
	MUST(mmap(info->si_addr, 4096, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == info->si_addr);
}

/* The program's own bus errors are its own, also where the recording has met one. */
static void cut_own_file(void)
{
	int fd = open(path_in("own"), O_RDWR | O_CREAT, 0600), before = bus_errors;
	volatile char *p;

	MUST(fd >= 0 && ftruncate(fd, 4096) == 0);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(p != MAP_FAILED && ftruncate(fd, 0) == 0);
	*p = 1;
	MUST(bus_errors == before + 1);
}

/* As log rotation does: it copies the file, then cuts it. */
static void record_until_cut(void *arg)
{
	struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
	const char *path = path_in("rotated");
	char command[1024];

	MUST(sigaction(SIGBUS, &action, NULL) == 0);
	MUST(ss_trace_open(path, say));
	cut_own_file();
	events(0, 0, 2000);
	snprintf(command, sizeof(command), "cp %s %s.1", path_in("rotated"), path_in("rotated"));
	MUST(system(command) == 0 && said == 0);
	MUST(truncate(path_in("rotated"), *(const off_t *)arg) == 0);
	events(0, 2000, 10000); /* in other blocks, too */
	MUST(!ss_trace_on() && said == 1 && bus_errors == 1);
	cut_own_file();
	ss_trace_close();
}

static void test_cut(void **state)
{
	/* To nothing; behind the header; in the middle of a block. */
	static const off_t lengths[] = {0, 4096, 100000};
	uint64_t n[3];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		assert_int_equal(in_child(record_until_cut, (void *)(uintptr_t)&lengths[i]), 0);
		count_events(path_in("rotated.1"), n);
		assert_int_equal(n[0], 6000);
		unlink(path_in("rotated"));
		unlink(path_in("rotated.1"));
	}
}

/* The next block is not put behind a hole. */
static void record_in_blocks_that_are_cut(void *arg)
{
	struct stat st;

	MUST(ss_trace_open(arg, say));
	events(0, 0, 100);
	MUST(truncate(arg, 4096) == 0 && truncate(arg, 4096 + SS_TRACE_BLOCK_SIZE) == 0);
	events(0, 100, 20000);
	MUST(said == 0 && ss_trace_on()); /* it is as long as it was */
	MUST(stat(arg, &st) == 0 && truncate(arg, st.st_size - SS_TRACE_BLOCK_SIZE) == 0);
	events(0, 20000, 40000);
	MUST(said == 1 && !ss_trace_on());
}

static void test_cut_between_blocks(void **state)
{
	assert_int_equal(in_child(record_in_blocks_that_are_cut, (void *)path_in("between")), 0);
}

/* ---- two processes, one name -------------------------------------------- */

static void test_same_name(void **state)
{
	const char *path = path_in("same");
	int go[2], ready[2], status;
	char byte, other[512];
	uint64_t n[3];

	assert_true(pipe(go) == 0 && pipe(ready) == 0);
	pid_t first = fork();
	if (first == 0) {
		MUST(ss_trace_open(path, say));
		events(0, 0, 10);
		MUST(write(ready[1], "", 1) == 1 && read(go[0], &byte, 1) == 1);
		events(0, 10, 20);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	pid_t second = fork();
	if (second == 0) {
		MUST(ss_trace_open(path, say));
		events(1, 0, 10);
		_exit(0);
	}
	waitpid(second, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(write(go[1], "", 1), 1);
	waitpid(first, &status, 0);
	assert_int_equal(status, 0);
	count_events(path, n);
	assert_true(n[0] == 60 && n[1] == 0);
	snprintf(other, sizeof(other), "%s.2", path);
	count_events(other, n);
	assert_true(n[0] == 0 && n[1] == 30);
	/* Both have ended, and stay. */
	pid_t third = fork();
	if (third == 0) {
		MUST(ss_trace_open(path, say));
		events(1, 0, 20);
		_exit(0);
	}
	waitpid(third, &status, 0);
	assert_int_equal(status, 0);
	count_events(path, n);
	assert_true(n[0] == 60 && n[1] == 0);
	snprintf(other, sizeof(other), "%s.3", path);
	count_events(other, n);
	assert_true(n[0] == 0 && n[1] == 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kinds),     cmocka_unit_test(test_killed),
		cmocka_unit_test(test_short_threads), cmocka_unit_test(test_signals),
		cmocka_unit_test(test_fork),          cmocka_unit_test(test_file_limit),
		cmocka_unit_test(test_disk_full),     cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_cut),           cmocka_unit_test(test_cut_between_blocks),
		cmocka_unit_test(test_same_name),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
