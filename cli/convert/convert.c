/* SPDX-License-Identifier: MIT */
/* The list of formats, and the conversion into one of them. */
#include <string.h>

#include "cli/convert/convert.h"
#include "cli/plural.h"
#include "cli/writers/output.h"

const struct ss_format ss_formats[] = {
	{"memory_viz", "PyTorch's viewer, pytorch.org/memory_viz", true, false,
	 ss_convert_memory_viz},
	{"heaptrack", "raw, for heaptrack_interpret; one device", false, true,
	 ss_convert_heaptrack},
	{"perfetto", "Chrome's trace JSON, for ui.perfetto.dev", true, false, ss_convert_perfetto},
	{"folded", "stacks for flamegraph.pl and speedscope", false, false, ss_convert_folded},
	{"rmm", "RMM's CSV, for `somashim replay'", false, false, ss_convert_rmm},
	{0},
};

const struct ss_format *ss_format_find(const char *name)
{
	for (const struct ss_format *f = ss_formats; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

bool ss_convert(const struct ss_format *format, const struct ss_convert_config *config,
		const char *output, char *err, size_t err_size)
{
	struct ss_convert c = {.config = config};
	struct ss_output out;
	size_t damaged;

	c.reader = ss_trace_reader_open(config->path, err, err_size);
	if (!c.reader)
		return false;
	c.files = ss_symbol_files_open(config->debug_path);
	bool ok = c.files && (!format->names || ss_sites_read(&c.sites, c.reader, c.files));
	if (!ok) {
		snprintf(err, err_size, "%s: out of memory", config->path);
	} else if ((ok = ss_output_open(&out, output, &config->path, 1, err, err_size))) {
		const char *damage = ss_trace_reader_problem(c.reader, &damaged);
		snprintf(err, err_size, "%s: out of memory", config->path);
		c.out = out.file;
		c.err = err;
		c.err_size = err_size;
		ok = format->write(&c);
		if (ok && damage)
			snprintf(err, err_size, "damaged in %zu %s: %s", damaged,
				 ss_plural(damaged, "place", "places"), damage);
		else if (ok)
			err[0] = '\0';
		ok = ss_output_close(&out, ok, err, err_size);
	}
	ss_trace_memory_finish(&c.memory);
	ss_sites_finish(&c.sites);
	ss_symbol_files_close(c.files);
	ss_trace_reader_close(c.reader);
	return ok;
}
