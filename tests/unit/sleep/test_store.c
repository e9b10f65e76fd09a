/* SPDX-License-Identifier: MIT */
/*
 * Tests the store on the software device: contents come back whatever their sizes and devices, a
 * call that is refused loses nothing, a store that has no room says so before anything was copied,
 * and a process that is killed leaves no file.
 */
#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>

#include "driver/rocm/rocm.h"
#include "shim/process/real.h"
#include "shim/sleep/store.h"
#include "tree.h"

#define MIB (1ull << 20)
#define OK(call) assert_int_equal(call, hipSuccess)

static char *self;
static const char *why;

static void *control(const char *name)
{
	void *p = dlsym(RTLD_DEFAULT, name);

	assert_non_null(p);
	return p;
}

static void refuse(const char *spec)
{
	((void (*)(const char *))control("somasim_fail"))(spec);
}

static void refuse_none(void)
{
	((void (*)(void))control("somasim_fail_clear"))();
}

static uint64_t calls(const char *name)
{
	return ((uint64_t(*)(const char *))control("somasim_call_count"))(name);
}

/* ---- ranges, with contents ----------------------------------------------------------- */

static struct range {
	uint64_t size;
	int dev;
	char *p;
} range[] = {
	{1, 0, NULL},
	{4095, 1, NULL},
	{65537, 0, NULL},
	{33 * MIB + 5, 1, NULL},
	{31 * MIB - 1, 1, NULL},
	{32 * MIB, 0, NULL},
	{3, 1, NULL},
	{4096, 0, NULL},
};
#define RANGES (sizeof(range) / sizeof(range[0]))
#define FEW 4
static size_t used = RANGES; /* the first so many */
static char *host;

static uint64_t total(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < used; i++)
		sum += range[i].size;
	return sum;
}

static char byte_of(size_t i, uint64_t at, unsigned round)
{
	return (char)(at * 7 + (at >> 12) + i * 31 + round);
}

static void fill(unsigned round)
{
	for (size_t i = 0; i < used; i++) {
		for (uint64_t at = 0; at < range[i].size; at++)
			host[at] = byte_of(i, at, round);
		OK(hipMemcpy(range[i].p, host, range[i].size, hipMemcpyHostToDevice));
	}
}

static void spoil(void)
{
	for (size_t i = 0; i < used; i++)
		OK(hipMemset(range[i].p, 0x5a, range[i].size));
	OK(hipDeviceSynchronize());
}

static void compare(unsigned round)
{
	for (size_t i = 0; i < used; i++) {
		OK(hipMemcpy(host, range[i].p, range[i].size, hipMemcpyDeviceToHost));
		/* Each byte at the ends, and one of each line of the processor's cache. */
		for (uint64_t at = 0, n = range[i].size; at < n;
		     at += at < 4096 || at + 4096 > n ? 1 : 61)
			if (host[at] != byte_of(i, at, round))
				fail_msg("range %zu, byte %lu", i, (unsigned long)at);
	}
}

static bool save(const struct ss_sleep_store *s)
{
	bool ok = s->open(s->ctx, total());

	for (size_t i = 0; ok && i < used; i++)
		ok = s->save(s->ctx, range[i].dev, (uintptr_t)range[i].p, range[i].size);
	return ok && s->flush(s->ctx);
}

/* As the core does: a flush follows, whatever failed. */
static bool restore(const struct ss_sleep_store *s)
{
	bool ok = true;

	for (size_t i = 0; ok && i < used; i++)
		ok = s->restore(s->ctx, range[i].dev, (uintptr_t)range[i].p, range[i].size);
	return s->flush(s->ctx) && ok;
}

static const struct ss_sleep_store *make(const char *dir)
{
	const struct ss_sleep_store *s = ss_store_make(dir, &why);

	assert_non_null(s);
	ss_store_set_root(s, "/nonexistent");
	return s;
}

static int begin(void **state)
{
	tree_begin();
	return 0;
}

static int end(void **state)
{
	refuse_none();
	tree_end();
	return 0;
}

static int entries(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

/* ---- tests ----------------------------------------------------------------------------- */

static void test_round_trip(void **state)
{
	int dev, fds = entries("/proc/self/fd");

	for (unsigned kind = 0; kind < 2; kind++) {
		const struct ss_sleep_store *s = make(kind ? tree : NULL);

		OK(hipSetDevice(1));
		used = kind ? FEW : RANGES;
		for (unsigned round = 0; round < 2; round++) {
			fill(round);
			assert_true(save(s));
			assert_int_equal(entries(tree), 0);
			for (int i = 0; i < 2 - (int)round; i++) {
				spoil();
				assert_true(restore(s));
				compare(round);
			}
			s->close(s->ctx);
			assert_null(ss_store_why(s));
		}
		OK(hipGetDevice(&dev));
		assert_int_equal(dev, 1);
		ss_store_end(s);
	}
	used = RANGES;
	/* One buffer for each of the five series of a kind, and nothing is left. */
	assert_int_equal(calls("hipHostMalloc"), 2 * 5);
	assert_int_equal(calls("hipHostFree"), 2 * 5);
	assert_int_equal(calls("hipEventCreateWithFlags"), 0);
	assert_int_equal(calls("hipStreamCreate") + calls("hipStreamCreateWithFlags"), 0);
	assert_int_equal(entries("/proc/self/fd"), fds);
}

static void test_nothing(void **state)
{
	const struct ss_sleep_store *s = make(NULL);
	uint64_t before = calls("hipHostMalloc");

	assert_true(s->open(s->ctx, 0) && s->flush(s->ctx) && s->flush(s->ctx));
	s->close(s->ctx);
	/* More than there was room for. */
	assert_true(s->open(s->ctx, 3));
	assert_false(s->save(s->ctx, 0, (uintptr_t)range[7].p, 4));
	assert_non_null(ss_store_why(s));
	s->close(s->ctx);
	assert_int_equal(calls("hipHostMalloc"), before);
	ss_store_end(s);
	ss_store_end(NULL);
}

/* Each call fails once. What the store can do without does not matter; anything else is told, and
 * nothing is lost. */
static void test_refused(void **state)
{
	static const struct {
		const char *name;
		bool needed;
	} call[] = {
		{"hipHostMalloc", false},       {"hipEventCreateWithFlags", false},
		{"hipHostFree", false},         {"hipMemcpyAsync", true},
		{"hipStreamSynchronize", true}, {"hipSetDevice", true},
	};
	const struct ss_sleep_store *s = make(NULL);
	char spec[64];

	used = FEW;
	OK(hipSetDevice(0));
	fill(9);
	for (size_t i = 0; i < sizeof(call) / sizeof(call[0]); i++)
		for (int waking = 0; waking < 2; waking++) {
			bool ok;

			/* The first, or all. */
			snprintf(spec, sizeof(spec), "%s:%s", call[i].name,
				 call[i].needed ? "1" : "%1");
			if (waking)
				assert_true(save(s));
			refuse(spec);
			ok = waking ? restore(s) : save(s);
			refuse_none();
			assert_int_equal(ok, !call[i].needed);
			assert_true(ok || ss_store_why(s));
			if (waking && !ok)
				assert_true(restore(s));
			s->close(s->ctx);
			OK(hipSetDevice(0));
			compare(9);
		}
	used = RANGES;
	ss_store_end(s);
}

/* There is no memory for it: nothing is taken, and no call is made. */
static void test_no_memory(void **state)
{
	const struct ss_sleep_store *s = make(NULL);
	uint64_t before = calls("hipHostMalloc") + calls("hipMemcpyAsync");

	tree_file("proc/meminfo", "MemAvailable: 650000 kB\n"); /* 122 MiB to take */
	ss_store_set_root(s, tree);
	assert_true(s->open(s->ctx, 40 * MIB));
	s->close(s->ctx);
	assert_false(save(s)); /* 96 MiB, and a buffer of 32 MiB */
	assert_non_null(strstr(ss_store_why(s), "host memory"));
	s->close(s->ctx);
	tree_file("proc/meminfo", "MemAvailable: 9000000 kB\n");
	tree_file("proc/self/cgroup", "0::/a\n");
	tree_file("sys/fs/cgroup/a/memory.max", "134217728\n");
	tree_file("sys/fs/cgroup/a/memory.current", "0\n");
	assert_false(save(s));
	assert_non_null(strstr(ss_store_why(s), "cgroup"));
	s->close(s->ctx);
	assert_int_equal(calls("hipHostMalloc") + calls("hipMemcpyAsync"), before);
	ss_store_end(s);
}

static int in_child(int (*what)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(what());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* 0: the store refused so much; 1: it did not; 2: it refused for another reason. */
static int refuses(const char *text)
{
	const struct ss_sleep_store *s = ss_store_make(tree, &why);
	bool ok;

	if (!s)
		return 3;
	ss_store_set_root(s, "/nonexistent");
	if (!s->open(s->ctx, 4 * MIB))
		return 4;
	s->close(s->ctx);
	ok = s->open(s->ctx, 64 * MIB);
	return ok ? 1 : strstr(ss_store_why(s), text) ? 0 : 2;
}

/* A disk of 16 MiB, in a namespace of its own. 77: that is not allowed here. */
static int full_disk(void)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("small", tree, "tmpfs", 0, "size=16m"))
		return 77;
	return refuses("too little room");
}

static int low_limit(void)
{
	struct rlimit l = {16 * MIB, 16 * MIB};

	return setrlimit(RLIMIT_FSIZE, &l) ? 77 : refuses("RLIMIT_FSIZE");
}

static int little_address_space(void)
{
	const struct ss_sleep_store *s = ss_store_make(NULL, &why);
	struct rlimit l = {64 * MIB, 64 * MIB};

	if (!s || setrlimit(RLIMIT_AS, &l))
		return 77;
	ss_store_set_root(s, "/nonexistent");
	return s->open(s->ctx, 1ull << 40) ? 1 : strstr(ss_store_why(s), "may not map") ? 0 : 2;
}

static void test_no_disk(void **state)
{
	int rc = in_child(full_disk);

	if (rc == 77)
		print_message("no mount of a small disk is allowed\n");
	else
		assert_int_equal(rc, 0);
	assert_int_equal(in_child(low_limit), 0);
	assert_int_equal(in_child(little_address_space), 0);
	assert_null(ss_store_make("/nonexistent", &why));
	assert_non_null(strstr(why, "none"));
	assert_null(ss_store_make("/proc/self", &why));
	assert_non_null(why);
}

static void start(void)
{
	struct ss_options options;

	ss_options_read(&options, (char *[]){NULL}, NULL);
	if (!ss_real_resolve() || ss_rocm_start(&options) != 2)
		abort();
}

/* Saves a part, says so, and waits to be killed. */
static int child(const char *dir)
{
	const struct ss_sleep_store *s = ss_store_make(dir, &why);
	void *p;

	start();
	if (!s || !s->open(s->ctx, 80 * MIB) || hipMalloc(&p, 80 * MIB) != hipSuccess ||
	    !s->save(s->ctx, 0, (uintptr_t)p, 70 * MIB) || write(1, "x", 1) != 1)
		return 1;
	for (;;)
		pause();
}

static void test_killed(void **state)
{
	int fd[2], status;
	pid_t pid;
	char c;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	if (!pid) {
		dup2(fd[1], 1);
		close(fd[0]);
		close(fd[1]);
		execl(self, self, tree, NULL);
		_exit(127);
	}
	close(fd[1]);
	assert_int_equal(read(fd[0], &c, 1), 1);
	assert_int_equal(entries(tree), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	close(fd[0]);
	assert_int_equal(entries(tree), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trip, begin, end),
		cmocka_unit_test_setup_teardown(test_nothing, begin, end),
		cmocka_unit_test_setup_teardown(test_refused, begin, end),
		cmocka_unit_test_setup_teardown(test_no_memory, begin, end),
		cmocka_unit_test_setup_teardown(test_no_disk, begin, end),
		cmocka_unit_test_setup_teardown(test_killed, begin, end),
	};

	if (argc > 1)
		return child(argv[1]);
	self = argv[0];
	start();
	host = malloc(40 * MIB);
	for (size_t i = 0; i < RANGES; i++)
		if (hipSetDevice(range[i].dev) != hipSuccess ||
		    hipMalloc((void **)&range[i].p, range[i].size) != hipSuccess || !host)
			return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
