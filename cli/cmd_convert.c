/* SPDX-License-Identifier: MIT */
/* `somashim convert --to FORMAT FILE`: a recording in the format of another program. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/convert/convert.h"
#include "cli/progress.h"
#include "cli/snapshot/snapshot_trace.h"
#include "cli/trace_files.h"
#include "cli/writers/output.h"

struct arguments {
	const struct ss_format *format;
	const char *output;
	bool value; /* --value was given */
	struct ss_convert_config config;
};

enum { TO = 256, FROM, DEVICE, VALUE, DEBUG_PATH };

static const struct argp_option options[] = {
	{"to", TO, "FORMAT|SECONDS", 0,
	 "Which format; see below. May be given again with a time, at which the conversion ends",
	 0},
	{"from", FROM, "SECONDS", 0, "Only what happened from then on (1.5; 20ms)", 0},
	{"output", 'o', "FILE", 0, "Write to FILE (default, and -: standard output)", 0},
	{"device", DEVICE, "N", 0, "Only this device (default: all)", 0},
	{"value", VALUE, "peak|leaks|total", 0,
	 "What folded stacks count: bytes at the peak (default), never freed, or of all "
	 "allocations",
	 0},
	{"debug-path", DEBUG_PATH, "DIR[:DIR...]", 0,
	 "Directories with debug files and copies of the program's libraries", 0},
	{0},
};

static void set_value(struct arguments *a, const char *text, struct argp_state *state)
{
	static const char *const name[] = {
		[SS_FOLDED_PEAK] = "peak",
		[SS_FOLDED_LEAKS] = "leaks",
		[SS_FOLDED_TOTAL] = "total",
	};

	a->value = true;
	for (int i = 0; i < 3; i++) {
		if (strcmp(text, name[i]) == 0) {
			a->config.value = i;
			return;
		}
	}
	argp_error(state, "--value is peak, leaks or total, not %s", text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case TO:
		if (*arg >= '0' && *arg <= '9') {
			a->config.part.to_ns = ss_arguments_time(state, "--to", arg);
			if (!a->config.part.to_ns)
				argp_error(state, "--to: nothing happens until then");
			return 0;
		}
		a->format = ss_format_find(arg);
		if (!a->format)
			argp_error(state, "there is no format %s", arg);
		return 0;
	case 'o': a->output = ss_output_is_stdout(arg) ? NULL : arg; return 0;
	case DEVICE:
		a->config.device = (int)ss_arguments_number(state, "--device", arg, 63);
		return 0;
	case VALUE: set_value(a, arg, state); return 0;
	case DEBUG_PATH: a->config.debug_path = arg; return 0;
	case FROM: a->config.part.from_ns = ss_arguments_time(state, "--from", arg); return 0;
	case ARGP_KEY_ARG:
		if (a->config.path)
			argp_error(state, "one file at a time, not %s too", arg);
		a->config.path = arg;
		return 0;
	case ARGP_KEY_NO_ARGS: argp_usage(state); return 0;
	case ARGP_KEY_SUCCESS:
		if (!a->format)
			argp_error(state, "--to is missing");
		else if (a->config.part.to_ns && a->config.part.to_ns < a->config.part.from_ns)
			argp_error(state, "--to is before --from");
		else if (a->value && a->format->write != ss_convert_folded)
			argp_error(state, "--value is for folded stacks only");
		else if (a->config.value != SS_FOLDED_PEAK && a->config.device >= 0)
			argp_error(state, "--device: leaks and totals are sums over all devices");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* The text after the options: a line per format. */
static char *help_filter(int key, const char *text, void *input)
{
	char *out = NULL;
	size_t size;

	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	FILE *list = open_memstream(&out, &size);
	if (!list)
		return (char *)text;
	fputs("Formats:\n", list);
	for (const struct ss_format *f = ss_formats; f->name; f++)
		fprintf(list, "  %-12s %s\n", f->name, f->help);
	fputs("A format of one device needs --device if the recording has several; with -o it is "
	      "written to FILE.gpuN for each instead.\n",
	      list);
	return fclose(list) == 0 ? out : (char *)text;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = ss_arguments_common,
	.args_doc = "FILE",
	.doc = "Writes a recording of `somashim record', or a memory snapshot of PyTorch, in the "
	       "format "
	       "of another program.\v ",
	.help_filter = help_filter,
};

static void draw(void *arg, double part)
{
	ss_progress_draw(part);
}

/* `damage`: say what is damaged. Returns the exit status. */
static int convert(const struct arguments *a, const struct ss_convert_config *config,
		   const char *output, bool damage)
{
	char err[1024];
	ss_cli_say_nameless("convert");
	bool ok = ss_convert(a->format, config, output, err, sizeof(err));

	if (config->progress)
		ss_progress_clear();
	if (err[0] && (!ok || damage))
		ss_cli_error("convert: %s%s", err, ok ? "" : ss_no_trace_hint(config->path));
	return ok ? 0 : SS_EXIT_USAGE;
}

static int no_device(const struct ss_convert_config *config, uint64_t devices)
{
	char list[256] = "";
	size_t n = 0;

	for (int i = 0; i < 64; i++)
		if (devices >> i & 1)
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%d", n ? ", " : "", i);
	return ss_cli_error(
		"convert: %s: nothing was allocated on device %d; the recording has: %s",
		config->path, config->device, n ? list : "none");
}

/* Converts the device that was asked for, or all devices: into one file, or into a file for each
 * device if the format knows only one. Returns the exit status. */
static int convert_devices(const struct arguments *a)
{
	struct ss_convert_config config = a->config;
	char path[PATH_MAX], err[1024];
	uint64_t devices;
	bool first = true;
	int status = 0;

	if (!ss_convert_devices(config.path, &devices, err, sizeof(err)))
		return ss_cli_error("convert: %s%s", err, ss_no_trace_hint(config.path));
	if (config.device >= 0) {
		return devices >> config.device & 1 ? convert(a, &config, a->output, true) :
						      no_device(&config, devices);
	}
	if ((devices & (devices - 1)) == 0)
		return convert(a, &config, a->output, true);
	if (!a->output) {
		return ss_cli_error(
			"convert: %s: %s knows one device, and there are several: choose "
			"with --device, or name a file with -o",
			config.path, a->format->name);
	}
	for (config.device = 0; config.device < 64; config.device++) {
		if (devices >> config.device & 1) {
			snprintf(path, sizeof(path), "%s.gpu%d", a->output, config.device);
			int one = convert(a, &config, path, first);
			status = one ? one : status;
			first = false;
		}
	}
	return status;
}

int ss_cmd_convert(int argc, char **argv)
{
	struct arguments a = {.config.device = -1};
	char path[64], err[1024];
	int made = -1; /* the recording of a snapshot */

	ss_arguments_parse(&argp, argc, argv, 0, &a);
	a.config.progress = isatty(STDERR_FILENO) ? draw : NULL;
	if (!ss_is_trace(a.config.path) && ss_is_snapshot(a.config.path, true)) {
		made = ss_snapshot_trace(a.config.path, path, err, sizeof(err));
		if (made < 0)
			return ss_cli_error("convert: %s", err);
		a.config.path = path;
	}
	int status = a.format->one_device || a.config.device >= 0 ?
			     convert_devices(&a) :
			     convert(&a, &a.config, a.output, true);
	if (made >= 0)
		close(made);
	return status;
}
