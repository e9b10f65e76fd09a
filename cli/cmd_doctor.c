/* SPDX-License-Identifier: MIT */
/*
 * `somashim doctor`: is there a runtime, is there a device, which backings work, and which
 * known defects apply.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/doctor_probe.h"
#include "cli/writers/json.h"
#include "driver/rocm/quirks.h"
#include "driver/rocm/releases.h"
#include "driver/rocm/verdict_file.h"

#define TIMEOUT_S 60

struct arguments {
	bool json, probe, save, forget, untried;
	const char *runtime;
	unsigned timeout_s;
};

enum { JSON = 'j', RUNTIME = 'r', TIMEOUT = 't', PROBE = 256, SAVE, FORGET, UNTRIED };

static const struct argp_option options[] = {
	{"json", JSON, NULL, 0, "Print one JSON object", 0},
	{"runtime", RUNTIME, "PATH", 0,
	 "Try the runtime that PATH names: a file, a ROCm, a Python environment or a directory", 0},
	{"timeout", TIMEOUT, "SECONDS", 0, "Give up after SECONDS without progress (default: 60)",
	 0},
	{"save", SAVE, NULL, 0,
	 "Remember what was found: from now on SOMASHIM_BACKING=auto goes by it", 0},
	{"forget", FORGET, NULL, 0, "Try nothing, and forget what was remembered", 0},
	{"probe", PROBE, NULL, OPTION_HIDDEN, NULL, 0},
	{"untried", UNTRIED, NULL, OPTION_HIDDEN, NULL, 0}, /* for cli/run_selftest.c */
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case JSON: a->json = true; return 0;
	case SAVE: a->save = true; return 0;
	case FORGET: a->forget = true; return 0;
	case PROBE: a->probe = true; return 0;
	case UNTRIED: a->untried = true; return 0;
	case RUNTIME: a->runtime = arg; return 0;
	case TIMEOUT:
		a->timeout_s = (unsigned)ss_arguments_number(state, "--timeout", arg, 86400);
		return 0;
	case ARGP_KEY_SUCCESS:
		if (a->forget && (a->save || a->json || a->runtime))
			argp_error(state,
				   "--forget tries nothing: not with --save, --json or --runtime");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = ss_arguments_common,
	.doc = "Tries the runtime, the devices and every backing, and lists the known defects "
	       "of this version.",
};

static bool applies(const struct ss_quirk *q, const struct ss_probe *p)
{
	return p->major && ss_quirk_applies(q, p->major, p->minor, p->arch[0] ? p->arch : NULL);
}

/* The name by which people know the runtime. */
static struct ss_release_text release(const struct ss_probe *p)
{
	return p->major ? ss_release_name(p->major, p->minor) : (struct ss_release_text){""};
}

static json_t *to_json(const struct ss_probe *p)
{
	json_t *best = json_array(), *sleep = json_array(), *lines = json_array(),
	       *known = json_array();
	size_t count;
	const struct ss_quirk *q = ss_quirks(&count);

	for (int i = 0; i < p->devices; i++)
		json_array_append_new(best, json_string(p->best[i]));
	for (int i = 0; i < p->devices; i++)
		json_array_append_new(sleep, json_boolean(p->can_sleep[i]));
	for (size_t i = 0; i < p->count; i++)
		json_array_append_new(lines, ss_json_text(p->line[i]));
	for (size_t i = 0; i < count; i++) {
		if (applies(&q[i], p)) {
			json_array_append_new(known, json_pack("{s:s, s:s, s:s, s:s}", "id",
							       q[i].id, "ref", q[i].ref, "wrong",
							       q[i].wrong, "does", q[i].does));
		}
	}
	return json_pack("{s:i, s:o, s:o, s:s, s:b, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "version",
			 1, "verdict", ss_json_text(p->verdict), "runtime",
			 json_sprintf("%d.%d", p->major, p->minor), "release", release(p).s,
			 "known", p->major && !ss_release_unknown(p->major, p->minor), "library",
			 ss_json_text(p->library), "arch", p->arch, "best", best, "can_sleep",
			 sleep, "lines", lines, "quirks", known, "saved",
			 p->saved[0] ? ss_json_text(p->saved) : json_null());
}

/* Prints at once, because a slow device takes minutes. */
static void print_line(const char *line)
{
	printf("  %s\n", line);
	fflush(stdout);
}

static void print_text(const struct ss_probe *p)
{
	size_t count;
	const struct ss_quirk *q = ss_quirks(&count);

	printf("verdict: %s\n", p->verdict);
	if (p->saved[0])
		printf("%s\n", p->saved);
	if (p->major && ss_release_unknown(p->major, p->minor)) {
		printf("HIP %d.%d is newer than %s, the newest release that this somashim knows. "
		       "Its defects are "
		       "not known, and some of these may be mended.\n",
		       p->major, p->minor, ss_release_newest().s);
	}
	if (p->major)
		printf("known defects that apply (docs/known-problems.md):\n");
	for (size_t i = 0; i < count; i++)
		if (applies(&q[i], p))
			printf("  %-4s %s (%s): %s\n", q[i].id, q[i].wrong, q[i].ref, q[i].does);
}

static int forget(void)
{
	int n = ss_verdict_files_remove();

	if (n < 0) {
		fprintf(stderr, "somashim doctor: cannot forget: %s\n", strerror(errno));
		return 1;
	}
	printf("%d %s forgotten\n", n, n == 1 ? "verdict" : "verdicts");
	return 0;
}

int ss_cmd_doctor(int argc, char **argv)
{
	struct arguments a = {.timeout_s = TIMEOUT_S};
	struct ss_probe p;

	ss_arguments_parse(&argp, argc, argv, 0, &a);
	if (a.probe)
		return ss_probe_child(a.runtime);
	if (a.forget)
		return forget();
	ss_probe_run(&p, a.json ? NULL : print_line, a.runtime,
		     a.untried ? SS_PROBE_UNTRIED :
		     a.save    ? SS_PROBE_SAVE :
				 SS_PROBE_LOOK,
		     a.timeout_s);
	int status = p.status;
	if (!a.json)
		print_text(&p);
	else if (ss_json_print(to_json(&p)) != 0)
		status = 1;
	ss_probe_finish(&p);
	return status;
}
