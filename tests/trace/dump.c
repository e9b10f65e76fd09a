/* SPDX-License-Identifier: MIT */
/* Prints what a trace has, one line per fact, for tests that are scripts: trace_dump FILE. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "trace/symbolize.h"

/* Prints the functions of the stack, innermost first. */
static void print_stack(struct ss_symbolizer *names, const struct ss_trace_reader *r,
			const struct ss_trace_item *e)
{
	const struct ss_trace_stack_def *s = ss_trace_reader_stack(r, e->stack);

	printf("first %s:", ss_trace_kind_name(e->kind));
	for (uint32_t i = 0; s && i < s->frames; i++) {
		const struct ss_symbol *symbol;
		uint32_t n = ss_symbolize(names, s->ip[i], e->time_ns, &symbol);
		for (uint32_t k = 0; k < n; k++)
			printf(" %s", symbol[k].function ? symbol[k].function : "?");
	}
	putchar('\n');
}

int main(int argc, char **argv)
{
	static uint64_t count[256];
	const char *path = argv[1], *problem;
	char err[512];
	struct ss_trace_item e;
	uint64_t used = 0;
	size_t n;

	if (argc != 2)
		return 2;
	struct ss_trace_reader *r = ss_trace_reader_open(path, err, sizeof(err));
	struct ss_symbol_files *files = ss_symbol_files_open(NULL);
	struct ss_symbolizer *names = r && files ? ss_symbolizer_open(r, files) : NULL;
	if (!names) {
		printf("error: %s\n", err);
		return 1;
	}
	while (ss_trace_reader_next(r, &e)) {
		if (count[e.kind]++ == 0)
			print_stack(names, r, &e);
		used += e.kind == SS_TRACE_ALLOC ? e.size : 0;
	}
	for (uint32_t i = 0; i < 256; i++)
		if (count[i])
			printf("%s %" PRIu64 "\n", ss_trace_kind_name(i), count[i]);
	const struct ss_trace_process_def *p = ss_trace_reader_process(r);
	printf("allocated %" PRIu64 "\nend %s\nexe %s\nargs %zu\nrank %d\n", used,
	       ss_trace_end_name(p->end), p->exe, p->arg_count, p->rank);
	ss_trace_reader_pools(r, &n);
	printf("pools %zu\nruntime %s\n", n, p->runtime);
	const struct ss_trace_device_def *d = ss_trace_reader_devices(r, &n);
	for (size_t i = 0; i < n; i++) {
		printf("device %d at %s, %" PRIu64 " bytes, %s\n", d[i].device, d[i].pci,
		       d[i].total, d[i].name);
	}
	problem = ss_trace_reader_problem(r, &n);
	printf("problems %zu%s%s\n", n, problem ? ": " : "", problem ? problem : "");
	ss_symbolizer_close(names);
	ss_symbol_files_close(files);
	ss_trace_reader_close(r);
	return 0;
}
