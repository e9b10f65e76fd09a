/* SPDX-License-Identifier: MIT */
/* Tests the journal and its reader: lines that are written are read back, and malformed ones are
 * reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/readers/rmm_csv.h"
#include "shim/process/journal.h"
#include "trace/file_name.h"

#define HEADER "Thread,Time,Action,Pointer,Size,Stream\n"

static char dir[] = "/tmp/somashim-journal-XXXXXX";
static char path[256];

static struct ss_input input;

static struct ss_rmm_reader *open_log(const char *file, char *err, size_t err_size)
{
	if (!ss_input_open(&input, file, err, err_size))
		return NULL;
	struct ss_rmm_reader *log = ss_rmm_open(&input, err, err_size);
	if (!log)
		ss_input_close(&input);
	return log;
}

static void close_log(struct ss_rmm_reader *log)
{
	ss_rmm_close(log);
	ss_input_close(&input);
}

static void say(const char *line)
{
	dprintf(STDERR_FILENO, "%s\n", line);
}

static const char *file_path(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static const char *write_file(const char *text)
{
	FILE *file = fopen(file_path("log.csv"), "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	return path;
}

static void test_round_trip(void **state)
{
	struct ss_rmm_entry e;
	char err[256];

	struct ss_journal *j = ss_journal_open(file_path("round-%p.csv"), say);
	assert_non_null(j);
	ss_journal_line(j, true, (void *)0x7f0012345600, 18446744073709551615ull, NULL);
	ss_journal_line(j, false, (void *)0xf, 0, (void *)0xdeadbeef);
	ss_journal_close(j);

	char real[512];
	assert_true(ss_file_name(path, 1, real, sizeof(real)));
	struct ss_rmm_reader *log = open_log(real, err, sizeof(err));
	assert_non_null(log);
	assert_int_equal(ss_rmm_next(log, &e, err, sizeof(err)), 1);
	assert_false(e.is_free);
	assert_int_equal(e.pointer, 0x7f0012345600);
	assert_int_equal(e.size, UINT64_MAX);
	assert_int_equal(e.stream, 0);
	assert_int_equal(e.thread, getpid());
	assert_true(e.time_us < 86400000000ull);
	assert_int_equal(ss_rmm_next(log, &e, err, sizeof(err)), 1);
	assert_true(e.is_free);
	assert_int_equal(e.pointer, 0xf);
	assert_int_equal(e.stream, 0xdeadbeef);
	assert_int_equal(ss_rmm_next(log, &e, err, sizeof(err)), 0);
	close_log(log);

	/* A second run has a journal of its own. */
	j = ss_journal_open(path, say);
	assert_non_null(j);
	assert_true(ss_file_name(path, 2, real, sizeof(real)));
	assert_string_equal(ss_journal_other_name(j), real);
	ss_journal_line(j, true, (void *)1, 1, NULL);
	ss_journal_close(j);
	log = open_log(real, err, sizeof(err));
	int n = 0;
	while (ss_rmm_next(log, &e, err, sizeof(err)) == 1)
		n++;
	assert_int_equal(n, 1);
	close_log(log);
}

static void *writer(void *arg)
{
	for (uintptr_t i = 0; i < 2000; i++)
		ss_journal_line(arg, true, (void *)i, i, NULL);
	return NULL;
}

static void test_threads(void **state)
{
	struct ss_rmm_entry e;
	pthread_t thread[4];
	char err[256];
	int n = 0, st;

	struct ss_journal *j = ss_journal_open(file_path("threads.csv"), say);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, writer, j);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	struct ss_rmm_reader *log = open_log(path, err, sizeof(err));
	while ((st = ss_rmm_next(log, &e, err, sizeof(err))) == 1) {
		assert_int_equal(e.pointer, e.size);
		n++;
	}
	assert_int_equal(st, 0);
	assert_int_equal(n, 8000);
	close_log(log);
	ss_journal_close(j);
}

/* The journal of a process that is killed is complete up to its last call. */
static void test_killed(void **state)
{
	struct ss_rmm_entry e;
	char err[256];
	int n = 0, st;

	file_path("killed.csv");
	pid_t pid = fork();
	if (pid == 0) {
		struct ss_journal *j = ss_journal_open(path, say);
		for (uintptr_t i = 0; i < 100; i++)
			ss_journal_line(j, true, (void *)i, 1, NULL);
		kill(getpid(), SIGKILL);
	}
	waitpid(pid, &st, 0);
	struct ss_rmm_reader *log = open_log(path, err, sizeof(err));
	while (ss_rmm_next(log, &e, err, sizeof(err)) == 1)
		n++;
	assert_int_equal(n, 100);
	close_log(log);
}

/* A journal on a full disk ends with the last complete line, and this is reported. */
static void test_full(void **state)
{
	char text[4096] = "", *end;
	int n = 0, st, fd;

	file_path("full.csv");
	pid_t pid = fork();
	if (pid == 0) {
		struct rlimit all, few;
		struct ss_journal *j = ss_journal_open(path, say);
		snprintf(text, sizeof(text), "%s.err", path);
		fd = open(text, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		dup2(fd, STDERR_FILENO);
		getrlimit(RLIMIT_FSIZE, &all);
		few = all;
		few.rlim_cur = 1000;
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &few);
		for (uintptr_t i = 0; i < 100; i++)
			ss_journal_line(j, true, (void *)i, 1, NULL);
		setrlimit(RLIMIT_FSIZE, &all);
		ss_journal_line(j, true, (void *)4711, 1, NULL);
		_exit(0);
	}
	waitpid(pid, &st, 0);
	assert_int_equal(st, 0);
	fd = open(path, O_RDONLY);
	assert_int_equal(read(fd, text, sizeof(text) - 1), 1000);
	close(fd);
	for (char *line = text; (end = strchr(line, '\n')); line = end + 1)
		n++;
	assert_in_range(n, 15, 99);
	snprintf(text, sizeof(text), "%s.err", path);
	fd = open(text, O_RDONLY);
	memset(text, 0, sizeof(text));
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_non_null(strstr(text, "the log of allocations ends here: "));
	assert_ptr_equal(strchr(text, '\n'), strrchr(text, '\n'));
}

static void test_read_forms(void **state)
{
	struct ss_rmm_entry e;
	char err[256];

	struct ss_rmm_reader *log = open_log(
		write_file(HEADER "1,01:02:03:000004,allocate,0x10,5,0x0\r\n"
				  "1,23:59:60.5,allocate failure,(nil),5,0x0\n"
				  "\n"
				  "0x2,00:00:01,free,16,5,(nil)"),
		err, sizeof(err));
	assert_non_null(log);
	assert_int_equal(ss_rmm_next(log, &e, err, sizeof(err)), 1);
	assert_int_equal(e.time_us, 3723000004);
	assert_int_equal(ss_rmm_next(log, &e, err, sizeof(err)), 1);
	assert_true(e.is_failure);
	assert_int_equal(ss_rmm_next(log, &e, err, sizeof(err)), 1);
	assert_int_equal(e.thread, 2);
	assert_int_equal(e.pointer, 16);
	assert_int_equal(e.time_us, 1000000);
	assert_int_equal(ss_rmm_next(log, &e, err, sizeof(err)), 0);
	close_log(log);
}

static void test_malformed(void **state)
{
	static const struct {
		const char *line, *reason;
	} bad[] = {
		{"1,00:00:00.0,allocate,0x10,5", "line 3: fewer than 6"},
		{"1,00:00:00.0,allocate,0x10,5,0x0,9", "line 3: more than 6"},
		{"1,00:00:00.0,alloc,0x10,5,0x0", "line 3: the action"},
		{"x,00:00:00.0,allocate,0x10,5,0x0", "line 3: the thread"},
		{"1,24:00:00.0,allocate,0x10,5,0x0", "line 3: the time"},
		{"1,00:00:00.,allocate,0x10,5,0x0", "line 3: the time"},
		{"1,0:0:0,allocate,0x10,5,0x0", "line 3: the time"},
		{"1,00:00:00.0,allocate,0x1g,5,0x0", "line 3: the pointer"},
		{"1,00:00:00.0,allocate,0x10,-5,0x0", "line 3: the size"},
		{"1,00:00:00.0,allocate,0x10,18446744073709551616,0x0", "line 3: the size"},
		{"1,00:00:00.0,allocate,0x10,5,", "line 3: the stream"},
		{"1,00:00:00.0,allocate,0x10,5,0x0 0", "line 3: the stream"},
		{"1,00:00:00.0,allocate,0x10,5.0,0x0", "line 3: the size"},
		{"1,00:00:00.0,allocate,0x10,ff,0x0", "line 3: the size"},
		{"garbage", "line 3: fewer"},
	};
	struct ss_rmm_entry e;
	char text[256], err[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), HEADER "1,00:00:00.0,free,0x10,5,0x0\n%s\n",
			 bad[i].line);
		struct ss_rmm_reader *log = open_log(write_file(text), err, sizeof(err));
		assert_non_null(log);
		assert_int_equal(ss_rmm_next(log, &e, err, sizeof(err)), 1);
		assert_int_equal(ss_rmm_next(log, &e, err, sizeof(err)), -1);
		if (!strstr(err, bad[i].reason))
			fail_msg("'%s' for: %s", err, bad[i].line);
		close_log(log);
	}
	assert_null(open_log(write_file("a,b\n"), err, sizeof(err)));
	assert_non_null(strstr(err, "line 1"));
	assert_null(open_log(write_file(""), err, sizeof(err)));
	assert_non_null(strstr(err, "empty"));
	assert_null(open_log(file_path("none"), err, sizeof(err)));
	assert_non_null(strstr(err, "No such file"));
	unlink(file_path("log.csv"));
	assert_int_equal(symlink("/dev/null", file_path("null.csv.xz")), 0);
	assert_null(open_log(path, err, sizeof(err)));
}

/* Headers as spreadsheets and other programs write them, with columns in any order. */
static void test_columns(void **state)
{
	static const char *const logs[] = {
		"\xef\xbb\xbf" HEADER "a1,01:00:00.0,allocate,7f001f,5,0x0\n",
		"\"Thread\",\"Time\",\"Action\",\"Pointer\",\"Size\",\"Stream\"\n"
		"0XA1,01:00:00.0,allocate,0X7F001F,5,0\n",
		"thread, time, action, pointer, size, stream\r\n"
		"161, 01:00:00.0, allocate, 0x7f001f, 5, 0x0\r\n",
		",Size,Stream,More,Action,Time,Thread,Pointer,Pointer\n"
		"0,5,0x0,,allocate,01:00:00.0,161,0x7f001f,what\n",
	};
	struct ss_rmm_entry e;
	char err[256];

	for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
		struct ss_rmm_reader *log = open_log(write_file(logs[i]), err, sizeof(err));
		if (!log || ss_rmm_next(log, &e, err, sizeof(err)) != 1)
			fail_msg("log %zu: %s", i, err);
		assert_int_equal(e.thread, 0xa1);
		assert_int_equal(e.time_us, 3600000000);
		assert_int_equal(e.pointer, 0x7f001f);
		assert_int_equal(e.size, 5);
		assert_int_equal(e.stream, 0);
		assert_int_equal(ss_rmm_next(log, &e, err, sizeof(err)), 0);
		close_log(log);
	}
	assert_null(open_log(write_file("Thread,Time,Action,Pointer,Stream\n"), err, sizeof(err)));
	assert_non_null(strstr(err, "line 1: "));
	assert_non_null(strstr(err, "no column Size"));
}

/* A log packed by the tool is read; if it is cut off, that is an error and not a short log. */
static void packed(const char *tool)
{
	struct ss_rmm_entry e;
	char err[256], command[600];
	struct stat st;

	snprintf(command, sizeof(command), "command -v %s >/dev/null", tool);
	if (system(command) != 0)
		return;
	write_file(HEADER "1,00:00:00.0,free,0x10,5,0x0\n");
	snprintf(command, sizeof(command), "%s -c <'%s' >'%s/a b;c'", tool, path, dir);
	assert_int_equal(system(command), 0);
	struct ss_rmm_reader *log = open_log(file_path("a b;c"), err, sizeof(err));
	if (!log)
		fail_msg("%s: %s", tool, err);
	assert_int_equal(ss_rmm_next(log, &e, err, sizeof(err)), 1);
	assert_int_equal(ss_rmm_next(log, &e, err, sizeof(err)), 0);
	close_log(log);

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 6), 0);
	log = open_log(path, err, sizeof(err));
	int n = log ? 1 : -1;
	while (n == 1)
		n = ss_rmm_next(log, &e, err, sizeof(err));
	assert_int_equal(n, -1);
	close_log(log);
}

static void test_packed(void **state)
{
	packed("gzip");
	packed("xz");
	packed("zstd");
	/* If a file only looks packed, the tool refuses it. */
	char err[256];
	assert_null(open_log(write_file("\x1fnothing\n"), err, sizeof(err)));
	assert_non_null(strstr(err, "gzip -dc failed"));
	assert_null(open_log(write_file("(nothing)\n"), err, sizeof(err)));
	assert_non_null(strstr(err, "line 1: expected the header"));
	assert_null(open_log(dir, err, sizeof(err)));
	assert_non_null(strstr(err, "directory"));
}

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[64];
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {

		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_threads),
		cmocka_unit_test(test_killed),     cmocka_unit_test(test_full),
		cmocka_unit_test(test_read_forms), cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_columns),    cmocka_unit_test(test_packed),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
