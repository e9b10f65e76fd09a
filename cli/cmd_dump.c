/* SPDX-License-Identifier: MIT */
/*
 * `somashim dump --trace PID`: copies the events of the ring to which a running process records.
 * `somashim dump PID`: asks a running process for its statistics and live blocks, and prints them.
 * The process writes them at its next HIP call into a file beside its page, which is read and
 * removed here.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/dump_stacks.h"
#include "cli/live_directory.h"
#include "cli/ring/dump.h"
#include "cli/writers/output.h"
#include "core/base/deadline.h"
#include "live/directory.h"
#include "live/reader.h"

struct arguments {
	uint32_t pid;
	unsigned timeout_s;
	bool trace;
	const char *output;
};

static const struct argp_option options[] = {
	{"timeout", 't', "SECONDS", 0,
	 "How long to wait for a HIP call of the process, or for another dump (default: 10)", 0},
	{"output", 'o', "FILE", 0, "Write to FILE (default, and -: standard output)", 0},
	{"trace", 'T', NULL, 0,
	 "Write the newest events instead, which the process keeps (`somashim record --ring'), as "
	 "a recording "
	 "in FILE (default: PID.trace)",
	 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 't':
		a->timeout_s = (unsigned)ss_arguments_number(state, "--timeout", arg, 86400);
		return 0;
	case 'o': a->output = arg; return 0;
	case 'T': a->trace = true; return 0;
	case ARGP_KEY_ARG:
		if (a->pid)
			argp_error(state, "one process only");
		a->pid = ss_arguments_pid(state, arg);
		return 0;
	case ARGP_KEY_END:
		if (!a->pid)
			argp_usage(state);
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = ss_arguments_common,
	.args_doc = "PID",
	.doc = "Prints the statistics and the live blocks of a running process, which goes on. The "
	       "process writes them in its next HIP call.",
};

struct search {
	uint32_t pid;
	char path[SS_LIVE_PATH];
	struct ss_live_name name;
	enum ss_live_process state;
	size_t found;
};

/* The process with this pid here comes before one in another pid namespace. */
static void match(const char *path, const struct ss_live_name *name, enum ss_live_process state,
		  void *arg)
{
	struct search *s = arg;

	if (name->pid != s->pid || (s->found && state == SS_LIVE_ELSEWHERE))
		return;
	snprintf(s->path, sizeof(s->path), "%s", path);
	s->name = *name;
	s->state = state;
	s->found++;
}

#define NAP_NS 5000000u

static struct ss_deadline in_seconds(unsigned s)
{
	uint64_t ns = s * 1000000000ull;

	return ss_deadline_in(ss_monotonic_ns(), ns, ns / NAP_NS + 1);
}

/* False: the deadline has passed. */
static bool nap(struct ss_deadline *d)
{
	static const struct timespec time = {.tv_nsec = NAP_NS};

	if (ss_deadline_over(d, ss_monotonic_ns()))
		return false;
	ss_deadline_take(d, 1);
	nanosleep(&time, NULL);
	return true;
}

/* One dump of a process at a time: the lock is on the file of its page, and ends with this process.
 * It is of another kind than flock(), by which the process shows that it runs. -1: another dump
 * took too long. */
static int lock_page(const char *path, struct ss_deadline d)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	/* Requests to sleep have a lock of their own behind this part. */
	struct flock whole = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = (off_t)SS_LIVE_SIZE};

	/* A kernel that does not know such locks lets everybody dump. */
	while (fd >= 0 && fcntl(fd, F_OFD_SETLK, &whole) != 0 && errno != EINVAL) {
		if (!nap(&d)) {
			close(fd);
			return -1;
		}
	}
	return fd;
}

/* If the process runs another program by now (exec), nobody answers. */
static enum ss_live_result read_page(const struct search *s, struct ss_live_page *page)
{
	return s->state == SS_LIVE_RUNS ? ss_live_read_process(s->path, s->pid, page) :
					  ss_live_read(s->path, page);
}

static bool is_answered(const struct ss_live_page *page, uint32_t request)
{
	return page->dump_done == request;
}

enum wait { ANSWERED, ENDED, LEFT, TIMED_OUT };

static enum wait await(const struct search *s, uint32_t request, struct ss_deadline d,
		       struct ss_live_page *page)
{
	struct ss_live_name own = {0};

	(void)ss_live_own_name(&own);
	do {
		enum ss_live_result result = read_page(s, page);
		if (result == SS_LIVE_OK && is_answered(page, request))
			return ANSWERED;
		if (result == SS_LIVE_GONE || ss_live_look(&s->name, own.space) == SS_LIVE_ENDED)
			return ENDED;
		if (result == SS_LIVE_LEFT)
			return LEFT;
	} while (nap(&d));
	return TIMED_OUT;
}

/* Opens the answer, and removes its name. It may only be a file that the process wrote. */
static FILE *open_answer(const char *page_path)
{
	char path[SS_LIVE_PATH];
	struct stat st;

	if (!ss_live_dump_path(page_path, path))
		return NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
	    (st.st_uid != geteuid() && geteuid() != 0)) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	unlink(path);
	return fdopen(fd, "r");
}

/* Prints the answer, with the stack of each block below it if the process records stacks. Returns
 * the exit status. */
static int print_answer(const char *page_path, uint32_t pid, const char *output)
{
	FILE *in = open_answer(page_path);
	char line[1024];
	struct ss_output out;

	if (!in)
		return ss_cli_error("dump: the answer of process %u cannot be read", pid);
	if (!ss_output_open(&out, output, NULL, 0, line, sizeof(line))) {
		fclose(in);
		return ss_cli_error("dump: %s", line);
	}
	struct ss_dump_stacks *stacks = ss_dump_stacks_open(pid);
	if (stacks)
		ss_cli_say_nameless("dump");
	while (fgets(line, sizeof(line), in)) {
		uint64_t address, size;
		/* The text is another process's, and this may be a terminal. */
		for (char *c = line; *c; c++)
			*c = (*c >= ' ' && *c <= '~') || *c == '\n' ? *c : '?';
		fputs(line, out.file);
		if (stacks &&
		    sscanf(line, "somashim: 0x%" SCNx64 " %" SCNu64, &address, &size) == 2)
			ss_dump_stacks_print(stacks, address, size, out.file);
	}
	ss_dump_stacks_close(stacks);
	fclose(in);
	return ss_output_close(&out, true, line, sizeof(line)) ? 0 : ss_cli_error("dump: %s", line);
}

static int say_left(uint32_t pid)
{
	ss_cli_error("dump: process %u runs another program by now", pid);
	return 1;
}

/* Returns the exit status. */
static int ask(const struct arguments *a, const struct search *s, struct ss_live_page *page)
{
	struct ss_deadline end = in_seconds(a->timeout_s);

	switch (read_page(s, page)) {
	case SS_LIVE_OK: break;
	case SS_LIVE_LEFT: return say_left(a->pid);
	default: return ss_cli_error("dump: the page of process %u cannot be read", a->pid);
	}
	uint32_t request = page->dump_done + 1;
	if (!ss_live_ask_dump(s->path, request)) {
		return ss_cli_error("dump: the page of process %u cannot be written: %s", a->pid,
				    strerror(errno));
	}
	switch (await(s, request, end, page)) {
	case ANSWERED: break;
	case ENDED: ss_cli_error("dump: process %u ended", a->pid); return 1;
	case LEFT: return say_left(a->pid);
	case TIMED_OUT:
		/* Withdraws the request: nobody would wait for a later dump. */
		ss_live_ask_dump(s->path, request - 1);
		ss_cli_error(
			"dump: process %u made no HIP call in %u s (the last known one was %.0f s "
			"ago), so it could not answer",
			a->pid, a->timeout_s, ss_live_age(page));
		return 1;
	}
	if (page->dump_error) {
		ss_cli_error("dump: process %u could not write its dump: %s", a->pid,
			     strerror((int)page->dump_error));
		return 1;
	}
	return print_answer(s->path, a->pid, a->output);
}

/* Returns the exit status. */
static int dump_trace(const struct arguments *a)
{
	char path[PATH_MAX], name[32], err[PATH_MAX + 256];
	const char *to = a->output ? a->output : name;
	struct ss_output out;

	snprintf(name, sizeof(name), "%u.trace", a->pid);
	if (kill((pid_t)a->pid, 0) != 0 && errno == ESRCH) {
		ss_cli_error("dump: there is no process %u", a->pid);
		return 1;
	}
	if (!ss_dump_find_trace(a->pid, path, sizeof(path))) {
		ss_cli_error("dump: process %u does not record (somashim record --ring), or its "
			     "file cannot be read",
			     a->pid);
		return 1;
	}
	/* A recording may be the only one of a run, so no existing file is overwritten. */
	if (!ss_output_is_stdout(to) && access(to, F_OK) == 0) {
		ss_cli_error("dump: process %u: %s: %s", a->pid, to, strerror(EEXIST));
		return 1;
	}
	bool good = ss_output_open(&out, to, NULL, 0, err, sizeof(err));
	if (good) {
		good = ss_ring_dump(path, fileno(out.file), to, a->timeout_s * 1000, err,
				    sizeof(err));
		good = ss_output_close(&out, good, err, sizeof(err));
	}
	if (!good)
		ss_cli_error("dump: process %u: %s", a->pid, err);
	else if (!ss_output_is_stdout(to))
		fprintf(stderr, "somashim: recorded in %s\n", to);
	return good ? 0 : 1;
}

int ss_cmd_dump(int argc, char **argv)
{
	static struct ss_live_page page;
	struct arguments a = {.timeout_s = 10};
	struct search s = {0};
	const char *directory = ss_live_directory();

	ss_arguments_parse(&argp, argc, argv, 0, &a);
	if (a.trace)
		return dump_trace(&a);
	s.pid = a.pid;
	if (!ss_live_scan(directory, match, &s))
		return ss_cli_error("dump: %s: %s", directory, strerror(errno));
	if (!s.found) {
		ss_cli_error(
			"dump: process %u has no page in %s: it is not served by somashim, made no "
			"HIP call yet, found no device, or runs with another SOMASHIM_LIVE",
			a.pid, directory);
		return 1;
	}
	int lock = lock_page(s.path, in_seconds(a.timeout_s));
	if (lock < 0) {
		ss_cli_error("dump: another dump of process %u does not end", a.pid);
		return 1;
	}
	int status = ask(&a, &s, &page);
	close(lock);
	return status;
}
