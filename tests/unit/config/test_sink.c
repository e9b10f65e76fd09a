/* SPDX-License-Identifier: MIT */
/* Tests the sink: its lines never get into a file of the program. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/sink.h"

static char dir[] = "/tmp/somashim-sink-XXXXXX";

static const char *at(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static off_t size_of(const char *name)
{
	struct stat st;

	return stat(at(name), &st) ? -1 : st.st_size;
}

/* The program closes everything and opens a file of its own with the same number. */
static void another_file(void **state)
{
	struct ss_sink s;
	int fd;

	(void)state;
	assert_true(ss_sink_open(&s, at("ours")));
	assert_true(s.fd > STDERR_FILENO);
	assert_int_equal(ss_sink_write(&s, "line\n", 5), 5);
	close(s.fd);
	assert_int_equal(ss_sink_write(&s, "line\n", 5), -1);
	fd = open(at("theirs"), O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0 && dup2(fd, s.fd) == s.fd);
	assert_int_equal(ss_sink_write(&s, "line\n", 5), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(size_of("theirs"), 0);
	assert_int_equal(size_of("ours"), 5);
	fd = s.fd;
	ss_sink_close(&s); /* must not close the program's file */
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

/* If the limit forbids high descriptors, the sink uses the highest that is allowed. */
static void low_limit(void **state)
{
	struct rlimit before, low;
	struct ss_sink s;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	low.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_true(ss_sink_open(&s, at("low")));
	assert_int_equal(s.fd, 63);
	ss_sink_close(&s);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* If the reader goes, the line is lost but the program goes on. */
static void reader_goes(void **state)
{
	struct ss_sink s;
	char line[8];
	int fd;

	(void)state;
	assert_int_equal(mkfifo(at("fifo"), 0600), 0);
	assert_false(ss_sink_open(&s, at("fifo")));
	assert_int_equal(errno, ENXIO);
	fd = open(at("fifo"), O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0 && ss_sink_open(&s, at("fifo")));
	assert_int_equal(ss_sink_write(&s, "line\n", 5), 5);
	assert_int_equal(read(fd, line, sizeof(line)), 5);
	close(fd);
	assert_int_equal(ss_sink_write(&s, "line\n", 5), -1); /* SIGPIPE would end the test */
	assert_int_equal(errno, EPIPE);
	ss_sink_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(another_file),
					   cmocka_unit_test(low_limit),
					   cmocka_unit_test(reader_goes)};
	char clean[64];
	int bad;

	if (!mkdtemp(dir))
		return 99;
	bad = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(clean, sizeof(clean), "rm -r %s", dir);
	return system(clean) ? 99 : bad;
}
