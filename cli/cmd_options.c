/* SPDX-License-Identifier: MIT */
/* `somashim options`: the table of config/options.c as text, as Markdown, or as JSON. */
#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/writers/json.h"
#include "config/options.h"

enum format { TEXT, MARKDOWN, JSON };

static const struct argp_option options[] = {
	{"markdown", 'm', NULL, 0, "Print the table of docs/options.md", 0},
	{"json", 'j', NULL, 0, "Print an array with one object per variable", 0},
	{0},
};

static void choose(enum format *format, enum format wanted, const struct argp_state *state)
{
	if (*format != TEXT && *format != wanted)
		argp_error(state, "either --markdown or --json");
	*format = wanted;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	enum format *format = state->input;

	switch (key) {
	case 'm': choose(format, MARKDOWN, state); return 0;
	case 'j': choose(format, JSON, state); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = ss_arguments_common,
	.doc = "Lists every environment variable that somashim reads.",
};

static json_t *table(void)
{
	struct ss_option_row row;
	json_t *all = json_array();

	for (size_t i = 0; ss_options_row(i, &row); i++) {
		json_t *object = json_pack("{s:s+, s:s, s:s?, s:s}", "name", "SOMASHIM_", row.name,
					   "values", row.values, "default",
					   row.def[0] ? row.def : NULL, "meaning", row.help);
		json_array_append_new(all, object);
	}
	return all;
}

int ss_cmd_options(int argc, char **argv)
{
	enum format format = TEXT;

	ss_arguments_parse(&argp, argc, argv, 0, &format);
	if (format == JSON)
		return ss_json_print(table());
	ss_options_print(stdout, format == MARKDOWN);
	return 0;
}
