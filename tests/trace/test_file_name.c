/* SPDX-License-Identifier: MIT */
/* Tests the names of output files, and whose the files are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/file_name.h"

static char dir[] = "/tmp/somashim-names-XXXXXX";

static const char *at(const char *name)
{
	static char path[4][512];
	static unsigned next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static void is(const char *pattern, unsigned number, const char *want)
{
	char out[512];

	assert_true(ss_file_name(pattern, number, out, sizeof(out)));
	assert_string_equal(out, want);
}

static void test_expand(void **state)
{
	char host[256] = "", want[1024], out[8];

	gethostname(host, sizeof(host) - 1);
	snprintf(want, sizeof(want), "a.%d.%%x%%q%%", (int)getpid());
	is("a.%p.%%x%q%", 1, want);
	snprintf(want, sizeof(want), "%s-0-val/ue-.csv", host);
	setenv("SOMASHIM_TEST_NAME", "val/ue", 1);
	is("%h-%r-%q{SOMASHIM_TEST_NAME}-%q{SOMASHIM_TEST_NONE}.csv", 1, want);
	is("%q{}%q{x%z", 1, "%q{}%q{x%z");
	for (const char **name = (const char *[]){"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
						  "SLURM_PROCID", "MV2_COMM_WORLD_RANK",
						  "FLUX_TASK_RANK", NULL};
	     *name; name++) {
		setenv(*name, "7", 1);
		is("%r", 1, "7");
		unsetenv(*name);
	}
	assert_true(ss_file_name("abcdefg", 1, out, 8));
	assert_false(ss_file_name("abcdefgh", 1, out, 8));
	assert_false(ss_file_name("abcdef.x", 2, out, 8));
	assert_false(ss_file_name("%p%p%p%p%p%p%p%p", 1, out, 8));
}

/* The number stands before an extension, which is the same for all processes. */
static void test_numbers(void **state)
{
	char want[64];

	is("log.csv", 2, "log.2.csv");
	is("a.b/log", 3, "a.b/log.3");
	is("/x/.hidden", 2, "/x/.hidden.2");
	is("log.tar.gz", 10, "log.tar.10.gz");
	snprintf(want, sizeof(want), "two.%d.2", (int)getpid());
	is("two.%p", 2, want);
}

static void test_glob(void **state)
{
	char out[64];

	assert_true(ss_file_glob("a[%%].%p-%q{X}.csv", out, sizeof(out)));
	assert_string_equal(out, "a\\[%\\].*-**.csv");
	assert_true(ss_file_glob("a.%h", out, sizeof(out)));
	assert_string_equal(out, "a.**");
	assert_false(ss_file_glob("abc", out, 4));
}

/* Opens a file for the pattern, and compares its name. */
static int new_file(const char *pattern, const char *want)
{
	char path[512];
	unsigned number;
	int fd = ss_file_new(pattern, O_WRONLY, path, sizeof(path), &number);

	assert_true(fd >= 0);
	assert_string_equal(path, want);
	return fd;
}

static void test_new(void **state)
{
	char text[8] = "";
	struct stat st;
	int fd, other;

	/* What a process has open is its own, also while there is nothing in it. */
	fd = new_file(at("new.csv"), at("new.csv"));
	other = new_file(at("new.csv"), at("new.2.csv"));
	close(other);
	/* Nobody has the empty file any more. */
	other = new_file(at("new.csv"), at("new.2.csv"));
	assert_int_equal(write(fd, "mine", 4), 4);
	assert_int_equal(write(other, "its", 3), 3);
	close(fd);
	close(other);
	/* Those that are finished stay. */
	close(new_file(at("new.csv"), at("new.3.csv")));
	fd = open(at("new.csv"), O_RDONLY);
	assert_int_equal(read(fd, text, sizeof(text) - 1), 4);
	assert_string_equal(text, "mine");
	close(fd);
	/* An empty file that was made for it. */
	close(open(at("made"), O_WRONLY | O_CREAT, 0600));
	close(new_file(at("made"), at("made")));
	/* A link to nothing is not followed. */
	assert_int_equal(symlink(at("nowhere"), at("link")), 0);
	close(new_file(at("link"), at("link.2")));
	assert_int_not_equal(stat(at("nowhere"), &st), 0);
	/* Devices and descriptors are taken as they are. */
	close(new_file("/dev/null", "/dev/null"));
	close(new_file("/dev/null", "/dev/null"));
	fd = open(at("new.csv"), O_WRONLY | O_APPEND);
	dup2(fd, 500);
	close(new_file("/proc/self/fd/500", "/proc/self/fd/500"));
	close(500);
	close(fd);
}

static void test_hold(void **state)
{
	char path[512];
	unsigned number;
	int ready[2], fd;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		fd = ss_file_hold(at("m.prom"), path, sizeof(path), &number);
		if (number != 1 || write(fd, "old", 3) != 3 || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	fd = ss_file_hold(at("m.prom"), path, sizeof(path), &number);
	assert_true(fd >= 0 && number == 2);
	assert_string_equal(path, at("m.2.prom"));
	close(fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* What it left is not kept. */
	fd = ss_file_hold(at("m.prom"), path, sizeof(path), &number);
	assert_true(fd >= 0 && number == 1);
	close(fd);
	/* Nothing takes the place of a device, or of a descriptor by another name. */
	assert_int_equal(symlink("/dev/null", at("device")), 0);
	const char *const taken[] = {"/dev/null", "/dev/stderr", "/proc/self/fd/1", at("device")};
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		assert_int_equal(ss_file_hold(taken[i], path, sizeof(path), &number), -1);
		assert_int_equal(errno, ENODEV);
	}
}

static void test_possible(void **state)
{
	char path[512];

	assert_true(ss_file_possible(at("new")));
	assert_true(ss_file_possible("x"));
	assert_true(ss_file_possible(at("%p/x")));
	assert_false(ss_file_possible(at("none/x.%p")));
	assert_int_equal(errno, ENOENT);
	assert_false(ss_file_possible(dir));
	assert_int_equal(errno, EISDIR);
	assert_false(ss_file_possible(at("")));
	assert_int_equal(errno, EISDIR);
	assert_false(ss_file_possible("/dev/null"));
	assert_int_equal(errno, ENODEV);
	close(open(at("plain"), O_WRONLY | O_CREAT, 0600));
	assert_false(ss_file_possible(at("plain/x")));
	assert_int_equal(errno, ENOTDIR);
	if (geteuid() != 0) {
		snprintf(path, sizeof(path), "%s", at("locked"));
		mkdir(path, 0500);
		assert_false(ss_file_possible(at("locked/x")));
		assert_int_equal(errno, EACCES);
	}
}

static int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expand), cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_glob),   cmocka_unit_test(test_new),
		cmocka_unit_test(test_hold),   cmocka_unit_test(test_possible),
	};

	for (const char **name = (const char *[]){"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
						  "SLURM_PROCID", "MV2_COMM_WORLD_RANK",
						  "FLUX_TASK_RANK", NULL};
	     *name; name++)
		unsetenv(*name);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
