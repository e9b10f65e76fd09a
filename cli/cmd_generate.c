/* SPDX-License-Identifier: MIT */
/* `somashim generate KIND`: writes an allocation log; the same seed writes the same log. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/writers/output.h"
#include "cli/writers/rmm_csv.h"
#include "cli/writers/workloads.h"

#define MAX_KINDS 32

struct arguments {
	struct ss_gen gen;
	const struct ss_workload *kind;
	const char *path;
};

static const struct argp_option options[] = {
	{"seed", 's', "N", 0, "Seed of the random numbers; the same seed writes the same log", 0},
	{"rounds", 'r', "N", 0, "Length of the log; 0 = the default of the kind", 0},
	{"scale", 'x', "X", 0, "Multiply every size by X, which is in (0, 1000]", 0},
	{"output", 'o', "FILE", 0, "Write to FILE (default, and -: standard output)", 0},
	{0},
};

static const struct ss_workload *kind_find(const char *name)
{
	for (size_t k = 0; k < ss_workload_count; k++)
		if (strcmp(ss_workloads[k].name, name) == 0)
			return &ss_workloads[k];
	return NULL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	char *end;

	switch (key) {
	case 's':
		a->gen.random = ss_arguments_number(state, "--seed", arg, UINT64_MAX) * 1000003 + 1;
		return 0;
	case 'r':
		a->gen.rounds = (unsigned)ss_arguments_number(state, "--rounds", arg, 1 << 24);
		return 0;
	case 'x':
		a->gen.scale = strtod(arg, &end);
		if (*end || end == arg || !(a->gen.scale > 0 && a->gen.scale <= 1000))
			argp_error(state, "--scale: '%s' is not in (0, 1000]", arg);
		return 0;
	case 'o': a->path = arg; return 0;
	case ARGP_KEY_ARG:
		if (a->kind)
			argp_error(state, "one kind at a time, not '%s' too", arg);
		a->kind = kind_find(arg);
		if (!a->kind)
			argp_error(state, "there is no kind '%s'", arg);
		return 0;
	case ARGP_KEY_NO_ARGS: argp_usage(state); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

int ss_cmd_generate(int argc, char **argv)
{
	struct argp_option kinds[MAX_KINDS] = {{.doc = "Kinds:"}};
	const struct argp list = {.options = kinds};
	const struct argp_child children[] = {ss_arguments_common[0], {.argp = &list}, {0}};
	const struct argp argp = {
		.options = options,
		.parser = parse,
		.children = children,
		.args_doc = "KIND",
		.doc = "Writes a realistic allocation log in RMM's CSV format.",
	};
	struct arguments a = {.gen = {.random = 1, .scale = 1, .next_pointer = 0x7f0000000000}};
	struct ss_output out;
	char err[512];

	for (size_t k = 0; k < ss_workload_count && k + 2 < MAX_KINDS; k++) {
		kinds[k + 1] = (struct argp_option){.name = ss_workloads[k].name,
						    .flags = OPTION_DOC,
						    .doc = ss_workloads[k].help};
	}
	ss_arguments_parse(&argp, argc, argv, 0, &a);
	if (!ss_output_open(&out, a.path, NULL, 0, err, sizeof(err)))
		return ss_cli_error("generate: %s", err);
	a.gen.out = out.file;
	a.gen.rounds = a.gen.rounds ? a.gen.rounds : a.kind->rounds;
	ss_rmm_write_header(a.gen.out);
	a.kind->run(&a.gen);
	return ss_output_close(&out, true, err, sizeof(err)) ? 0 :
							       ss_cli_error("generate: %s", err);
}
