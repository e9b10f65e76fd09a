/* SPDX-License-Identifier: MIT */
/*
 * Call stacks of the blocks of a running process. The process maps the file of its recording, so
 * /proc/PID/maps says where that is, whatever its name was when it was opened.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/dump_stacks.h"
#include "cli/trace_files.h"
#include "core/base/hash_or_end.h"
#include "trace/reader.h"
#include "trace/symbolize.h"

/* The last allocation at an address. */
struct place {
	uint64_t address, size, time_ns;
	uint32_t stack;
	UT_hash_handle hh;
};

struct ss_dump_stacks {
	struct ss_trace_reader *reader;
	struct ss_symbol_files *files;
	struct ss_symbolizer *names;
	struct place *places;
};

/* Only files that are mapped writable and shared come into question. */
bool ss_dump_find_trace(uint32_t pid, char *out, size_t size)
{
	char name[64], *line = NULL;
	size_t room = 0;
	bool found = false;

	snprintf(name, sizeof(name), "/proc/%" PRIu32 "/maps", pid);
	FILE *maps = fopen(name, "re");
	while (maps && !found && getline(&line, &room, maps) > 0) {
		const char *path = strchr(line, '/'), *access = strchr(line, ' ');
		if (!path || !access || strncmp(access, " rw-s", 5) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		found = strlen(path) < size && ss_is_trace(path);
		if (found)
			strcpy(out, path);
	}
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

static void note(struct ss_dump_stacks *s, const struct ss_trace_item *e)
{
	struct place *p;

	HASH_FIND(hh, s->places, &e->address, sizeof(e->address), p);
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return;
		p->address = e->address;
		HASH_ADD(hh, s->places, address, sizeof(p->address), p);
	}
	p->size = e->size;
	p->time_ns = e->time_ns;
	p->stack = e->stack;
}

struct ss_dump_stacks *ss_dump_stacks_open(uint32_t pid)
{
	struct ss_dump_stacks *s;
	struct ss_trace_item e;
	char path[PATH_MAX], err[512];

	if (!ss_dump_find_trace(pid, path, sizeof(path)))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->reader = ss_trace_reader_open(path, err, sizeof(err));
	if (s->reader) {
		snprintf(err, sizeof(err), "out of memory");
		s->files = ss_symbol_files_open(NULL);
		s->names = s->files ? ss_symbolizer_open(s->reader, s->files) : NULL;
	}
	if (!s->names) {
		fprintf(stderr, "somashim: dump: no stacks: %s\n", err);
		ss_dump_stacks_close(s);
		return NULL;
	}
	while (ss_trace_reader_next(s->reader, &e))
		if (e.kind == SS_TRACE_ALLOC)
			note(s, &e);
	return s;
}

void ss_dump_stacks_close(struct ss_dump_stacks *s)
{
	struct place *p, *next;

	if (!s)
		return;
	HASH_ITER(hh, s->places, p, next) {
		HASH_DEL(s->places, p);
		free(p);
	}
	if (s->names)
		ss_symbolizer_close(s->names);
	ss_symbol_files_close(s->files);
	if (s->reader)
		ss_trace_reader_close(s->reader);
	free(s);
}

static void print_symbol(const struct ss_symbol *y, FILE *out)
{
	const char *module = y->module ? strrchr(y->module, '/') : NULL;

	if (y->function)
		fprintf(out, "somashim:     %s", y->function);
	else
		fprintf(out, "somashim:     %s+%#" PRIx64, module ? module + 1 : "?", y->offset);
	if (y->source)
		fprintf(out, " (%s:%d)", y->source, y->line);
	fputc('\n', out);
}

void ss_dump_stacks_print(struct ss_dump_stacks *s, uint64_t address, uint64_t size, FILE *out)
{
	struct place *p;

	HASH_FIND(hh, s->places, &address, sizeof(address), p);
	/* The address may have been freed and allocated again since the dump. */
	if (!p || p->size != size)
		return;
	const struct ss_trace_stack_def *stack = ss_trace_reader_stack(s->reader, p->stack);
	for (uint32_t i = 0; stack && i < stack->frames; i++) {
		const struct ss_symbol *symbol;
		uint32_t n = ss_symbolize(s->names, stack->ip[i], p->time_ns, &symbol);
		for (uint32_t k = 0; k < n; k++)
			print_symbol(&symbol[k], out);
	}
}
