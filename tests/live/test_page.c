/* SPDX-License-Identifier: MIT */
/* One process writes a page, others read it: what they see is never a mixture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live/directory.h"
#include "live/reader.h"
#include "live/writer.h"

static char directory[] = "/tmp/somashim-page.XXXXXX";

/* Figures of which every number is n. */
static void set_all(struct ss_live_figures *f, uint64_t n)
{
	*f = (struct ss_live_figures){.updated_ns = n,
				      .driver_calls = n,
				      .device_count = SS_LIVE_DEVICES,
				      .pool_count = SS_LIVE_POOLS};
	for (unsigned i = 0; i < SS_LIVE_DEVICES; i++)
		f->device[i].used = f->device[i].reserved = n;
	for (unsigned i = 0; i < SS_LIVE_POOLS; i++)
		f->pool[i].used = f->pool[i].counts.frees = n;
}

static void check_all(const struct ss_live_figures *f)
{
	uint64_t n = f->updated_ns;

	assert_int_equal(f->device_count, n ? SS_LIVE_DEVICES : 0);
	assert_int_equal(f->driver_calls, n);
	for (unsigned i = 0; i < f->device_count; i++) {
		assert_int_equal(f->device[i].used, n);
		assert_int_equal(f->device[i].reserved, n);
	}
	for (unsigned i = 0; i < f->pool_count; i++) {
		assert_int_equal(f->pool[i].used, n);
		assert_int_equal(f->pool[i].counts.frees, n);
	}
}

struct found {
	pid_t pid;
	char path[SS_LIVE_PATH]; /* "": not found */
};

static void find(const char *path, const struct ss_live_name *name, enum ss_live_process process,
		 void *arg)
{
	struct found *f = arg;

	if ((pid_t)name->pid == f->pid) {
		assert_int_equal(process, SS_LIVE_RUNS);
		strcpy(f->path, path);
	}
}

/* False: the process has no page. */
static bool find_page(pid_t pid, struct found *out)
{
	*out = (struct found){.pid = pid};
	assert_true(ss_live_scan(directory, find, out));
	return out->path[0];
}

/* In a process of its own: publishes until it is killed. */
static void write_for_ever(int ready)
{
	struct ss_live_identity who = {.pid = (uint32_t)getpid(), .command = "writer"};
	struct ss_live_page *page = ss_live_create(directory, &who);
	static struct ss_live_figures f;

	if (!page || write(ready, "r", 1) != 1)
		_exit(1);
	for (uint64_t n = 1;; n++) {
		set_all(&f, n);
		ss_live_publish(page, &f);
		usleep(n % 8 ? 0 : 500);
	}
}

static void test_snapshots_are_whole(void **state)
{
	static struct ss_live_page page;
	struct found found;
	char c;
	uint64_t seen = 0, changes = 0;
	int ready[2];

	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		write_for_ever(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_true(find_page(pid, &found));
	while (changes < 300) {
		enum ss_live_result result = ss_live_read(found.path, &page);
		if (result == SS_LIVE_BUSY)
			continue; /* the machine is very busy */
		assert_int_equal(result, SS_LIVE_OK);
		check_all(&page.figures);
		assert_true(page.figures.updated_ns >= seen);
		changes += page.figures.updated_ns != seen;
		seen = page.figures.updated_ns;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(access(found.path, F_OK), 0);
	ss_live_clean(directory);
	assert_int_equal(access(found.path, F_OK), -1);
}

static void fill(const char *path, const struct ss_live_page *page, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, page, sizeof(*page)), sizeof(*page));
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	close(fd);
}

static void test_what_is_no_page(void **state)
{
	static struct ss_live_page page, out;
	char path[128];

	snprintf(path, sizeof(path), "%s/page", directory);
	page.magic = SS_LIVE_MAGIC;
	page.version = SS_LIVE_VERSION;
	page.size = SS_LIVE_SIZE;
	memset(page.who.command, '\033', sizeof(page.who.command));
	page.figures.pool_count = UINT32_MAX;
	fill(path, &page, SS_LIVE_BYTES);
	assert_int_equal(ss_live_read(path, &out), SS_LIVE_OK);
	assert_string_equal(out.who.command, "???????????????");
	assert_int_equal(out.figures.pool_count, SS_LIVE_POOLS);
	fill(path, &page, SS_LIVE_BYTES - 1);
	assert_int_equal(ss_live_read(path, &out), SS_LIVE_GONE);
	page.version++;
	fill(path, &page, SS_LIVE_BYTES);
	assert_int_equal(ss_live_read(path, &out), SS_LIVE_NEWER);
	page.version--;
	page.sequence = 1; /* its process was killed while it wrote */
	fill(path, &page, SS_LIVE_BYTES);
	assert_int_equal(ss_live_read(path, &out), SS_LIVE_BUSY);
	page.magic++;
	page.sequence = 0;
	fill(path, &page, SS_LIVE_BYTES);
	assert_int_equal(ss_live_read(path, &out), SS_LIVE_GONE);
	unlink(path);
	assert_int_equal(ss_live_read(path, &out), SS_LIVE_GONE);
	assert_false(ss_live_ask_refresh(path, 1));
}

/* A forked child removes nothing of its parent's. */
static void test_page_of_the_parent(void **state)
{
	struct ss_live_identity who = {.pid = (uint32_t)getpid()};
	struct ss_live_page *page = ss_live_create(directory, &who);
	struct found found;
	int status;

	assert_non_null(page);
	pid_t pid = fork();
	if (pid == 0) {
		ss_live_remove();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(find_page(getpid(), &found));
	ss_live_remove();
	assert_false(find_page(getpid(), &found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_snapshots_are_whole),
		cmocka_unit_test(test_what_is_no_page),
		cmocka_unit_test(test_page_of_the_parent),
	};

	if (!mkdtemp(directory))
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(directory);
	return failed;
}
