/* SPDX-License-Identifier: MIT */
/* Gives names to the call stacks of a recording. Stacks with the same names become one call
 * site. */
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/sites_tables.h"

#define STACK_MAX 0xffffffu /* events cannot name a higher number */

void ss_sites_free_entries(struct ss_sites_entry **table)
{
	struct ss_sites_entry *e, *next;

	HASH_ITER(hh, *table, e, next) {
		HASH_DEL(*table, e);
		free(e);
	}
}

struct ss_sites_entry *ss_sites_intern(struct ss_sites_entry **table, const void *key, size_t size,
				       size_t index)
{
	struct ss_sites_entry *e;

	HASH_FIND(hh, *table, key, size, e);
	if (e)
		return e;
	e = malloc(sizeof(*e) + size + 1);
	if (!e)
		return NULL;
	memset(&e->hh, 0, sizeof(e->hh));
	memcpy(e->key, key, size);
	e->index = (uint32_t)index;
	HASH_ADD_KEYPTR(hh, *table, e->key, size, e);
	if (!e->hh.tbl) {
		free(e);
		return NULL;
	}
	return e;
}

bool ss_sites_grow(void **at, size_t count, size_t size)
{
	void *more = count < UINT32_MAX ? ss_grow(*at, count, size) : NULL;

	*at = more ? more : *at;
	return more != NULL;
}

/* Name of an address that has no function. */
static void make_name(const struct ss_symbol *symbol, uint64_t address, char *out, size_t size)
{
	const char *slash = symbol->module ? strrchr(symbol->module, '/') : NULL;

	if (symbol->module) {
		snprintf(out, size, "%s+0x%llx", slash ? slash + 1 : symbol->module,
			 (unsigned long long)symbol->offset);
	} else {
		snprintf(out, size, "0x%llx", (unsigned long long)address);
	}
}

/* Index of the frame; UINT32_MAX: out of memory. */
static uint32_t frame_of(struct ss_sites *s, const struct ss_symbol *symbol, uint64_t address)
{
	char name[512];
	const char *text[] = {symbol->function, symbol->source ? symbol->source : "",
			      symbol->module ? symbol->module : ""};
	size_t length[3], total = sizeof(int);

	if (!text[0]) {
		make_name(symbol, address, name, sizeof(name));
		text[0] = name;
	}
	for (int i = 0; i < 3; i++) {
		length[i] = strlen(text[i]) + 1;
		total += length[i];
	}
	char *key = malloc(total), *to = key;
	if (!key)
		return UINT32_MAX;
	memcpy(to, &symbol->line, sizeof(int));
	to += sizeof(int);
	for (int i = 0; i < 3; i++)
		to = mempcpy(to, text[i], length[i]);
	struct ss_sites_entry *e = ss_sites_intern(&s->tables->frames, key, total, s->frame_count);
	free(key);
	if (!e || (e->index == s->frame_count &&
		   !ss_sites_grow((void **)&s->frame, s->frame_count, sizeof(*s->frame))))
		return UINT32_MAX;
	if (e->index == s->frame_count) {
		const char *at = e->key + sizeof(int);
		s->frame[s->frame_count++] = (struct ss_frame){.function = at,
							       .source = at + length[0],
							       .module = at + length[0] + length[1],
							       .line = symbol->line};
	}
	return e->index;
}

/* The symbols of an address. *plain has room for the one of an address without names. */
static uint32_t symbols_of(struct ss_sites *s, uint64_t address, uint64_t time_ns,
			   struct ss_symbol *plain, const struct ss_symbol **out)
{
	const struct ss_sites_tables *t = s->tables;

	if (t->names)
		return ss_symbolize(t->names, address, time_ns, out);
	const struct ss_trace_module_def *m = ss_trace_reader_module_at(t->reader, address,
									time_ns);
	*plain = (struct ss_symbol){.module = m ? m->path : NULL,
				    .offset = m ? address - m->bias : address};
	*out = plain;
	return 1;
}

/* Functions of the C library that start a program or a thread. */
static bool is_start(const char *function)
{
	static const char *const start[] = {"_start",
					    "__libc_start_main",
					    "__libc_start_main_impl",
					    "__libc_start_call_main",
					    "start_thread",
					    "clone",
					    "__clone",
					    "clone3",
					    "__clone3"};

	for (size_t i = 0; i < sizeof(start) / sizeof(*start); i++)
		if (!strcmp(function, start[i]))
			return true;
	return false;
}

/* The number of frames without the outermost ones that start the program. A stack that has only
 * such frames keeps them all. */
static size_t without_start(const struct ss_sites *s, const uint32_t *ids, size_t count)
{
	size_t own = count;

	while (own && is_start(s->frame[ids[own - 1]].function))
		own--;
	return own ? own : count;
}

/* Modules that lead from Python into C. Their frames say nothing about a program. */
static bool is_foreign_call(const char *module)
{
	const char *slash = strrchr(module, '/');
	const char *name = slash ? slash + 1 : module;

	return !strncmp(name, "libffi.so", 9) || !strncmp(name, "_ctypes.", 8);
}

/* The number of innermost frames that only lead from Python into C: all frames inside of the first
 * frame of Python, or 0 if one of them is another frame. */
static size_t foreign_call(const struct ss_sites *s, const uint32_t *ids, size_t first_python)
{
	for (size_t i = 0; i < first_python; i++)
		if (!is_foreign_call(s->frame[ids[i]].module))
			return 0;
	return first_python;
}

/* Code of the C++ library that is compiled into a program, such as what calls a std::function. */
static bool is_library_header(const char *source)
{
	return strstr(source, "/include/c++/") != NULL;
}

/* Drops the frames of library headers from the first `count` frames, but not if no frame would be
 * left. Returns the number of frames that are left. *python is an index among them. */
static size_t without_headers(const struct ss_sites *s, uint32_t *ids, size_t count, size_t *python)
{
	size_t kept = 0, first = *python;

	for (size_t i = 0; i < count; i++)
		kept += !is_library_header(s->frame[ids[i]].source);
	if (kept == 0 || kept == count)
		return count;
	kept = 0;
	for (size_t i = 0; i < count; i++) {
		if (i == first)
			*python = kept;
		if (!is_library_header(s->frame[ids[i]].source))
			ids[kept++] = ids[i];
	}
	return kept;
}

/* Index of the site of a stack; UINT32_MAX: out of memory. */
static uint32_t site_of(struct ss_sites *s, const struct ss_trace_stack_def *stack)
{
	struct ss_symbol plain;
	size_t count = 0, python = 0; /* python: index of the first frame of Python; 0: none */

	for (uint32_t i = 0; i < stack->frames; i++) {
		const struct ss_symbol *symbol;
		python = !python && stack->ip[i] & SS_TRACE_PYTHON_FRAME ? count : python;
		uint32_t n = symbols_of(s, stack->ip[i], stack->seen_ns, &plain, &symbol);
		if (count + n > s->tables->ids_room) {
			size_t room = (count + n) * 2;
			uint32_t *ids = realloc(s->tables->ids, room * sizeof(*ids));
			if (!ids)
				return UINT32_MAX;
			s->tables->ids = ids;
			s->tables->ids_room = room;
		}
		for (uint32_t k = 0; k < n; k++) {
			uint32_t id = frame_of(s, &symbol[k], stack->ip[i]);
			if (id == UINT32_MAX)
				return UINT32_MAX;
			s->tables->ids[count++] = id;
		}
	}
	if (count == 0)
		return 0;
	count = without_headers(s, s->tables->ids, count, &python);
	count = without_start(s, s->tables->ids, count);
	size_t inner = python < count ? foreign_call(s, s->tables->ids, python) : 0;
	count -= inner;
	struct ss_sites_entry *e = ss_sites_intern(&s->tables->sites, s->tables->ids + inner,
						   count * sizeof(uint32_t), s->count);
	if (!e ||
	    (e->index == s->count && !ss_sites_grow((void **)&s->site, s->count, sizeof(*s->site))))
		return UINT32_MAX;
	if (e->index == s->count) {
		s->site[s->count++] = (struct ss_site){.frame = (const uint32_t *)e->key,
						       .frames = (uint32_t)count,
						       .cut = stack->cut};
	}
	return e->index;
}

static bool add_stacks(struct ss_sites *s, const struct ss_trace_stack_def *stack, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (stack[i].id <= STACK_MAX && stack[i].id >= s->stacks)
			s->stacks = stack[i].id + 1;
	s->of_stack = calloc((size_t)s->stacks + 1, sizeof(*s->of_stack));
	s->site = calloc(1, sizeof(*s->site));
	if (!s->of_stack || !s->site)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (stack[i].id > STACK_MAX)
			continue;
		uint32_t site = site_of(s, &stack[i]);
		if (site == UINT32_MAX)
			return false;
		s->of_stack[stack[i].id] = site;
	}
	return true;
}

/* Moves the frames of all sites out of the table, and frees the table: a report may hold a thousand
 * analyses. */
static bool pack(struct ss_sites *s)
{
	size_t total = 0, at = 0;

	for (size_t i = 0; i < s->count; i++)
		total += s->site[i].frames;
	s->stack = malloc((total + 1) * sizeof(*s->stack));
	if (!s->stack)
		return false;
	for (size_t i = 0; i < s->count; i++) {
		struct ss_site *site = &s->site[i];
		if (site->frames)
			memcpy(s->stack + at, site->frame, site->frames * sizeof(*s->stack));
		site->frame = s->stack + at;
		at += site->frames;
	}
	/* The array has grown by powers of two */
	struct ss_site *exact = realloc(s->site, s->count * sizeof(*s->site));
	s->site = exact ? exact : s->site;
	ss_sites_free_entries(&s->tables->sites);
	free(s->tables->ids);
	s->tables->ids = NULL;
	return true;
}

bool ss_sites_read(struct ss_sites *s, const struct ss_trace_reader *r,
		   struct ss_symbol_files *files)
{
	size_t count;
	const struct ss_trace_stack_def *stack = ss_trace_reader_stacks(r, &count);

	*s = (struct ss_sites){.count = 1, .tables = calloc(1, sizeof(*s->tables))};
	if (!s->tables)
		return false;
	s->tables->reader = r;
	s->tables->names = files ? ss_symbolizer_open(r, files) : NULL;
	bool ok = (!files || s->tables->names) && add_stacks(s, stack, count) && pack(s) &&
		  ss_sites_tell_apart(s);
	if (s->tables->names) {
		const char *rebuilt = ss_symbolizer_rebuilt(s->tables->names);
		s->rebuilt = rebuilt ? strdup(rebuilt) : NULL;
		ss_symbolizer_close(s->tables->names);
	}
	if (!ok)
		ss_sites_finish(s);
	return ok;
}

char *ss_site_text(const struct ss_sites *s, const struct ss_site *site, bool lines)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (uint32_t i = 0; out && i < site->frames; i++) {
		const struct ss_frame *f = ss_site_frame(s, site, i);
		fputs(f->function, out);
		if (lines)
			fprintf(out, " %s:%d", f->source, f->line);
		fputc('\n', out);
	}
	if (!out || fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

void ss_sites_end_lookups(struct ss_sites *s)
{
	free(s->of_stack);
	free(s->of_site);
	free(s->key);
	s->of_stack = s->of_site = NULL;
	s->key = NULL;
	s->stacks = 0;
	s->keys = 0;
	s->calls = NULL;
}

void ss_sites_finish(struct ss_sites *s)
{
	if (s->tables) {
		ss_sites_free_entries(&s->tables->frames);
		ss_sites_free_entries(&s->tables->sites);
		free(s->tables->ids);
	}
	free(s->tables);
	ss_sites_end_lookups(s);
	free(s->rebuilt);
	free(s->stack);
	free(s->site);
	free(s->frame);
	*s = (struct ss_sites){0};
}

bool ss_sites_of_stacks(struct ss_sites *s, const struct ss_trace_reader *r)
{
	size_t count;
	const struct ss_trace_stack_def *stack = ss_trace_reader_stacks(r, &count);

	for (size_t i = 0; i < count; i++)
		s->stacks = stack[i].id >= s->stacks ? stack[i].id + 1 : s->stacks;
	s->of_stack = calloc((size_t)s->stacks + 1, sizeof(*s->of_stack));
	for (uint32_t i = 0; s->of_stack && i < s->stacks; i++)
		s->of_stack[i] = i;
	return s->of_stack != NULL;
}
