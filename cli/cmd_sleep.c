/* SPDX-License-Identifier: MIT */
/*
 * `somashim sleep PID...` and `somashim wake PID...`: ask running processes to lend their device
 * memory, and to take it back. The requests and the answers are in the live pages.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/live_directory.h"
#include "cli/size_text.h"
#include "core/base/deadline.h"
#include "live/directory.h"
#include "live/reader.h"
#include "live/sleep_request.h"

#define LOOK_MS 20       /* between two looks at an answer */
#define GRACE_MS 2000    /* beyond the patience that the process was told */
#define NAP_LOOK_MS 100  /* whether a nap was over at once */
#define MOST 1024        /* processes of one command */

struct arguments {
	uint32_t pid[MOST];
	size_t pids;
	int32_t rank[MOST];
	size_t ranks;
	unsigned timeout_s;
	bool hold, all;
	const char *store;
	enum ss_live_sleep_command command;
	const char *name; /* "sleep" or "wake" */
};

enum { OPTION_ALL = 256, OPTION_RANK, OPTION_STORE };

#define COMMON_OPTIONS \
	{"all", OPTION_ALL, NULL, 0, "Ask every process that can sleep", 0}, \
		{"rank", OPTION_RANK, "N", 0, \
		 "Ask the processes with this rank in their job; may be repeated", 0}, \
	{ \
		"timeout", 't', "SECONDS", 0, \
			"How long each process may try before it refuses (default: 30)", 0 \
	}

static const struct argp_option sleep_options[] = {
	COMMON_OPTIONS,
	{"hold", 'H', NULL, 0,
	 "Sleep until `somashim wake': calls that need the device wait (default: the next such "
	 "call "
	 "wakes the process)",
	 0},
	{"store", OPTION_STORE, "DIR", 0,
	 "Keep the contents of the memory in a file in DIR (default: in host memory)", 0},
	{0},
};

static const struct argp_option wake_options[] = {COMMON_OPTIONS, {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case OPTION_ALL: a->all = true; return 0;
	case OPTION_RANK:
		if (a->ranks == MOST)
			argp_error(state, "too many ranks");
		a->rank[a->ranks++] = (int32_t)ss_arguments_number(state, "--rank", arg, INT32_MAX);
		return 0;
	case OPTION_STORE: a->store = arg; return 0;
	case 't':
		a->timeout_s = (unsigned)ss_arguments_number(state, "--timeout", arg, 86400);
		return 0;
	case 'H': a->hold = true; return 0;
	case ARGP_KEY_ARG:
		if (a->pids == MOST)
			argp_error(state, "too many processes");
		a->pid[a->pids++] = ss_arguments_pid(state, arg);
		return 0;
	case ARGP_KEY_END:
		if (!a->pids && !a->ranks && !a->all)
			argp_usage(state);
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp sleep_argp = {
	.options = sleep_options,
	.parser = parse,
	.children = ss_arguments_common,
	.args_doc = "[PID...]",
	.doc = "Has running programs give the device memory of their pools to others. Their "
	       "contents "
	       "are kept, and the next call of a program that needs the device takes the memory "
	       "back "
	       "at the same addresses. The program must run with SOMASHIM_SLEEP=pools or all.",
};
static const struct argp wake_argp = {
	.options = wake_options,
	.parser = parse,
	.children = ss_arguments_common,
	.args_doc = "[PID...]",
	.doc = "Has programs that sleep take their device memory back.",
};

/* ---- the processes --------------------------------------------------------------- */

struct process {
	struct ss_live_name name;
	enum ss_live_process state;
	char path[SS_LIVE_PATH];
	struct ss_live_sleeper sleeper;
	bool asked;
};

struct search {
	const struct arguments *a;
	bool *found; /* by index of a->pid */
	struct process *process;
	size_t count;
	bool out_of_memory;
	struct ss_live_page page; /* too large for some stacks */
};

static bool in_ranks(const struct arguments *a, int32_t rank)
{
	for (size_t i = 0; i < a->ranks; i++)
		if (a->rank[i] == rank)
			return true;
	return false;
}

static void add(struct search *s, const char *path, const struct ss_live_name *name,
		enum ss_live_process state)
{
	struct process *more = realloc(s->process, (s->count + 1) * sizeof(*more));

	if (!more) {
		s->out_of_memory = true;
		return;
	}
	s->process = more;
	s->process[s->count] = (struct process){.name = *name, .state = state};
	snprintf(s->process[s->count++].path, sizeof(more->path), "%s", path);
}

/* A process of this pid namespace is found by its name. (A directory that changes may hide a file
 * from whoever reads it.) */
static void find_by_name(struct search *s)
{
	struct ss_live_name name;
	char path[SS_LIVE_PATH];
	int fd;

	for (size_t i = 0; i < s->a->pids; i++) {
		if (!ss_live_name_of(s->a->pid[i], &name) ||
		    !ss_live_path(ss_live_directory(), &name, path))
			continue;
		fd = ss_live_open(path, O_RDONLY);
		if (fd < 0)
			continue;
		close(fd);
		s->found[i] = true;
		add(s, path, &name, SS_LIVE_RUNS);
	}
}

static bool is_wanted(struct search *s, const char *path, const struct ss_live_name *name)
{
	const struct arguments *a = s->a;

	for (size_t i = 0; i < a->pids; i++) {
		if (a->pid[i] != name->pid)
			continue;
		if (s->found[i])
			return false; /* by its name; this is the same, or of another namespace */
		s->found[i] = true;
		return true;
	}
	if ((!a->all && !a->ranks) || ss_live_read(path, &s->page) != SS_LIVE_OK)
		return false;
	return in_ranks(a, s->page.who.rank) || (a->all && atomic_load(&s->page.sleep.able));
}

static void match(const char *path, const struct ss_live_name *name, enum ss_live_process state,
		  void *arg)
{
	if (is_wanted(arg, path, name))
		add(arg, path, name, state);
}

static void say_missing(const struct arguments *a, uint32_t pid)
{
	if (kill((pid_t)pid, 0) != 0)
		ss_cli_error("%s: process %u: %s", a->name, pid,
			     errno == ESRCH ? "there is no such process" :
					      "it belongs to another user");
	else
		ss_cli_error("%s: process %u has no page in %s: it is not served by somashim, made "
			     "no HIP call yet, found no device, belongs to another user, or runs "
			     "with another SOMASHIM_LIVE",
			     a->name, pid, ss_live_directory());
}

/* ---- one process ------------------------------------------------------------------ */

static bool fail(const struct arguments *a, const struct process *p, const char *why)
{
	ss_cli_error("%s: process %u: %s", a->name, p->name.pid, why);
	return false;
}

static enum ss_live_result read_page(const struct process *p, struct ss_live_page *page)
{
	return p->state == SS_LIVE_RUNS ? ss_live_read_process(p->path, p->name.pid, page) :
					  ss_live_read(p->path, page);
}

/* NULL: the process answers requests. */
static const char *cannot(const struct process *p, struct ss_live_page *page)
{
	switch (read_page(p, page)) {
	case SS_LIVE_OK: break;
	case SS_LIVE_LEFT: return "it runs another program by now";
	case SS_LIVE_NEWER: return "its somashim is of another version";
	default: return "its page cannot be read";
	}
	if (page->sleep.version != SS_LIVE_SLEEP_VERSION)
		return "its somashim is of another version, without sleep";
	if (atomic_load(&page->sleep.able))
		return NULL;
	return page->sleep.unable[0] ? page->sleep.unable : "it cannot sleep";
}

static bool ask(const struct arguments *a, struct process *p, struct ss_live_page *page)
{
	const char *why = cannot(p, page);

	if (why)
		return fail(a, p, why);
	if (!ss_live_sleeper_open(&p->sleeper, p->path))
		return fail(a, p, strerror(errno));
	p->asked = ss_live_sleeper_ask(&p->sleeper, a->command, a->store, a->timeout_s * 1000);
	if (!p->asked) {
		ss_live_sleeper_close(&p->sleeper);
		return fail(a, p, strerror(errno));
	}
	return true;
}

static bool is_busy(const struct ss_live_page *page)
{
	uint32_t state = atomic_load(&page->sleep.state);

	return state == SS_LIVE_COPYING || state == SS_LIVE_WAKING;
}

/* NULL: the request is answered. */
static const char *await(const struct arguments *a, struct process *p, struct ss_live_page *page)
{
	uint64_t ms = a->timeout_s * 1000ull + GRACE_MS;
	struct ss_deadline d = ss_deadline_in(ss_monotonic_ns(), ms * 1000000, ms / LOOK_MS);
	struct ss_live_name own = {0};

	(void)ss_live_own_name(&own);
	for (;;) {
		enum ss_live_result result = read_page(p, page);

		if (result == SS_LIVE_LEFT)
			return "it runs another program by now";
		if (result == SS_LIVE_OK && page->sleep.done == p->sleeper.request)
			return NULL;
		if (result == SS_LIVE_OK && page->sleep.wanted != p->sleeper.request)
			return "another request has replaced this one";
		if (result == SS_LIVE_GONE || ss_live_look(&p->name, own.space) == SS_LIVE_ENDED)
			return "it ended";
		if (ss_deadline_over(&d, ss_monotonic_ns()) && !is_busy(page)) {
			/* A sleep that nobody waits for is not to come later. */
			(void)ss_live_sleeper_ask(&p->sleeper, SS_LIVE_WITHDRAW, "", 0);
			return "it does not answer";
		}
		ss_deadline_take(&d, 1);
		ss_live_sleeper_wait(&p->sleeper, page->sleep.done, LOOK_MS);
	}
}

/* ---- the answer ---------------------------------------------------------------------- */

/* Appends ", 12.0M managed" and the like. */
static void add_part(char *line, size_t size, uint64_t bytes, const char *what)
{
	char text[16];
	size_t at = strlen(line);

	if (bytes)
		snprintf(line + at, size - at, "%s%s %s", line[0] ? ", " : "",
			 ss_size_text(bytes, text), what);
}

static void print_stays(const struct ss_live_page *page)
{
	const struct ss_live_figures *f = &page->figures;
	const struct ss_live_slept *s = &page->sleep.slept;
	uint64_t managed = 0, arrays = 0, runtime = 0, rest = 0, hip = 0, exported;
	char line[640] = "", by[80];

	for (uint32_t i = 0; i < f->device_count; i++) {
		managed += f->device[i].managed;
		arrays += f->device[i].arrays;
		runtime += f->device[i].runtime;
		rest += f->device[i].rest;
	}
	for (uint32_t i = 0; i < f->pool_count; i++)
		if (strcmp(f->pool[i].backing, "vmm") != 0)
			hip += f->pool[i].reserved;
	hip = hip < s->stays ? hip : s->stays;
	add_part(line, sizeof(line), hip, "of hipMalloc and pools on hip");
	exported = s->exported < s->stays - hip ? s->exported : s->stays - hip;
	snprintf(by, sizeof(by), "exported by %.*s", (int)strnlen(s->by, sizeof(s->by)), s->by);
	add_part(line, sizeof(line), exported, by);
	add_part(line, sizeof(line), s->stays - hip - exported, "refused by the runtime");
	add_part(line, sizeof(line), managed, "managed");
	add_part(line, sizeof(line), arrays, "arrays");
	add_part(line, sizeof(line), runtime, "served by the runtime, with graphs");
	add_part(line, sizeof(line), rest, "queues, code and other memory of the runtime");
	printf("; stays: %s", line[0] ? line : "only what the runtime itself has (queues, code)");
}

/* A nap that a call ended at once is no sleep. */
static bool woke_at_once(struct process *p, struct ss_live_page *page)
{
	uint32_t naps = page->sleep.naps;

	for (int i = 0; i < NAP_LOOK_MS / LOOK_MS; i++) {
		if (read_page(p, page) != SS_LIVE_OK)
			return false;
		if (page->sleep.naps != naps || page->sleep.state == SS_LIVE_AWAKE)
			return true;
		ss_live_sleeper_wait(&p->sleeper, page->sleep.done, LOOK_MS);
	}
	return false;
}

static bool print_slept(const struct arguments *a, struct process *p, struct ss_live_page *page)
{
	const struct ss_live_slept s = page->sleep.slept;
	char text[3][16];

	printf("%u %s: asked for %s, %s came back by the devices' own figure", p->name.pid,
	       s.gone ? "asleep" : "awake, with idle memory released",
	       ss_size_text(s.idle + s.gone, text[0]), ss_size_text(s.seen, text[1]));
	print_stays(page);
	printf("; %s kept, %u ms\n", ss_size_text(s.gone ? s.live : 0, text[2]), s.sleep_ms);
	if (!s.seen)
		printf("%u: the devices' figure did not rise: the runtime keeps the memory, or "
		       "another process took it at once\n",
		       p->name.pid);
	fflush(stdout);
	if (!s.gone)
		return true;
	if (!a->hold && woke_at_once(p, page))
		printf("%u awake again after %u ms: a call needed the device (--hold makes calls "
		       "wait)\n",
		       p->name.pid, page->sleep.last_ms);
	return true;
}

static bool finish(const struct arguments *a, struct process *p, struct ss_live_page *page)
{
	const char *why = await(a, p, page);
	bool ok;

	if (!why && page->sleep.slept.error)
		why = page->sleep.slept.why[0] ? page->sleep.slept.why : "it failed";
	if (why)
		ok = fail(a, p, why);
	else if (a->command == SS_LIVE_WAKE)
		ok = printf("%u awake\n", p->name.pid) > 0;
	else
		ok = print_slept(a, p, page);
	ss_live_sleeper_close(&p->sleeper);
	return ok;
}

/* ---- the commands ----------------------------------------------------------------------- */

/* All are asked before one is waited for. Returns the exit status. */
static int run(struct arguments *a)
{
	static struct search s;
	bool found[MOST] = {false}, ok = true;
	char store[PATH_MAX];

	s.a = a;
	s.found = found;
	if (a->store[0] && !realpath(a->store, store))
		return ss_cli_error("%s: %s: %s", a->name, a->store, strerror(errno));
	if (a->store[0])
		a->store = store;
	find_by_name(&s);
	if (!ss_live_scan(ss_live_directory(), match, &s))
		return ss_cli_error("%s: %s: %s", a->name, ss_live_directory(), strerror(errno));
	if (s.out_of_memory)
		return ss_cli_error("%s: out of memory", a->name);
	for (size_t i = 0; i < a->pids; i++) {
		if (!found[i]) {
			say_missing(a, a->pid[i]);
			ok = false;
		}
	}
	if (!s.count && !a->pids) {
		ss_cli_error("%s: no process was found that can sleep", a->name);
		ok = false;
	}
	for (size_t i = 0; i < s.count; i++)
		ok = ask(a, &s.process[i], &s.page) && ok;
	for (size_t i = 0; i < s.count; i++)
		if (s.process[i].asked)
			ok = finish(a, &s.process[i], &s.page) && ok;
	free(s.process);
	return ok ? 0 : 1;
}

int ss_cmd_sleep(int argc, char **argv)
{
	static struct arguments a = {.timeout_s = 30, .store = "", .name = "sleep"};

	ss_arguments_parse(&sleep_argp, argc, argv, 0, &a);
	a.command = a.hold ? SS_LIVE_HOLD : SS_LIVE_NAP;
	return run(&a);
}

int ss_cmd_wake(int argc, char **argv)
{
	static struct arguments a = {.timeout_s = 30, .store = "", .name = "wake"};

	ss_arguments_parse(&wake_argp, argc, argv, 0, &a);
	a.command = SS_LIVE_WAKE;
	return run(&a);
}
