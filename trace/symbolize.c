/* SPDX-License-Identifier: MIT */
/* Finds the names of raw addresses: the module of each address, and a cache of earlier results.
 * Each module has names of its own (module_names.h), as modules of different times may overlap. */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/hash_or_end.h"
#include "core/base/utf8.h"
#include "trace/fortran_name.h"
#include "trace/grow.h"
#include "trace/module_file.h"
#include "trace/module_names.h"
#include "trace/python_function.h"
#include "trace/symbolize.h"

/* One build of a module. Its addresses are offsets, so that all recordings share it. */
struct module {
	UT_hash_handle hh;
	char *path;
	bool tried, rebuilt;
	struct ss_module_names *names; /* NULL: its file was not found */
	size_t key_size;
	char key[]; /* the build id, then the path */
};

struct key {
	uint64_t address; /* offset in the module */
	uint64_t module;  /* address of its struct module; 0: none is known */
};

struct entry {
	struct key key;
	UT_hash_handle hh;
	uint32_t count;
	struct ss_symbol symbol[];
};

struct ss_symbol_files {
	struct module *modules;
	struct ss_python_function *pythons;
	char **dir; /* directories of the debug path; ends with NULL */
	size_t dirs;
	char *search; /* the debug path in the form of libdwfl */
	struct entry *cache;
	char **owned; /* demangled names */
	size_t owned_count;
	char *(*demangle)(const char *, char *, size_t *, int *);
};

struct ss_symbolizer {
	struct ss_symbol_files *files;
	const struct ss_trace_reader *reader;
	const struct ss_trace_module_def *defs;
	struct module **module; /* one for each of defs, set at its first use */
	const char *rebuilt;    /* path of the first module whose file is another build */
};

/* NULL: out of memory. */
static struct module *module_get(struct ss_symbol_files *f, const uint8_t *build_id, size_t length,
				 const char *at)
{
	char key[SS_TRACE_BUILD_ID_MAX + PATH_MAX];
	size_t path = strlen(at) + 1, size = length + path;
	struct module *m = NULL;

	if (size > sizeof(key))
		return NULL;
	memcpy(key, build_id, length);
	memcpy(key + length, at, path);
	HASH_FIND(hh, f->modules, key, size, m);
	if (!m && (m = calloc(1, sizeof(*m) + size))) {
		m->key_size = size;
		memcpy(m->key, key, size);
		m->path = m->key + length;
		HASH_ADD_KEYPTR(hh, f->modules, m->key, size, m);
	}
	return m;
}

/* The module of a definition. NULL: out of memory. */
static struct module *module_of(struct ss_symbolizer *s, size_t index)
{
	const struct ss_trace_module_def *def = &s->defs[index];

	if (!s->module[index])
		s->module[index] = module_get(s->files, def->build_id, def->build_id_length,
					      def->path);
	return s->module[index];
}

/* Opens the file of a module, at its first use. `def` NULL: opens the file at the module's path.
 * NULL: there are no names. */
static struct ss_module_names *load(struct ss_symbol_files *f, struct module *m,
				    const struct ss_trace_module_def *def)
{
	char path[PATH_MAX];

	if (m->tried || !ss_module_names_can())
		return m->names;
	m->tried = true;
	int fd = def ? ss_module_file_open(def, f->dir, f->dirs, path, sizeof(path), &m->rebuilt) :
		       open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		m->names = ss_module_names_open(def ? path : m->path, fd, f->search);
	return m->names;
}

const char *ss_symbolizer_rebuilt(const struct ss_symbolizer *s)
{
	return s->rebuilt;
}

/* ---- names -------------------------------------------------------------- */

const char *ss_symbol_readable(struct ss_symbol_files *s, const char *name)
{
	char fortran[512];
	int status;

	if (!name || name[0] != '_')
		return name;
	bool is_fortran = ss_fortran_name(name, fortran, sizeof(fortran));
	if (!is_fortran && (name[1] != 'Z' || !s->demangle))
		return name;
	char **owned = ss_grow(s->owned, s->owned_count, sizeof(*owned));
	if (!owned)
		return name;
	s->owned = owned;
	char *text = is_fortran ? strdup(fortran) : s->demangle(name, NULL, NULL, &status);
	if (!text)
		return name;
	s->owned[s->owned_count++] = text;
	return text;
}

/* The name from a file of unknown origin, in a form that is safe to print. The result lives as long
 * as `s`. */
static const char *harmless(struct ss_symbol_files *s, const char *name)
{
	char *copy = name ? strdup(name) : NULL, **owned;

	if (!copy)
		return NULL;
	ss_utf8_clean(copy);
	owned = strcmp(copy, name) != 0 ? ss_grow(s->owned, s->owned_count, sizeof(*owned)) : NULL;
	if (owned) {
		s->owned = owned;
		s->owned[s->owned_count++] = copy;
		return copy;
	}
	bool same = strcmp(copy, name) == 0;
	free(copy);
	return same ? name : NULL;
}

static uint32_t find_names(struct ss_symbol_files *f, struct ss_module_names *names,
			   uint64_t address, struct ss_symbol *symbol)
{
	uint32_t count = ss_module_names_find(names, address, symbol);

	for (uint32_t i = 0; i < count; i++)
		symbol[i].function = ss_symbol_readable(f, symbol[i].function);
	return count;
}

static const struct ss_symbol unknown;

/* The symbols of a key, which are kept. */
static uint32_t keep(struct ss_symbol_files *f, struct key key, const struct ss_symbol *symbol,
		     uint32_t count, const struct ss_symbol **out)
{
	struct entry *e = malloc(sizeof(*e) + count * sizeof(e->symbol[0]));

	*out = &unknown;
	if (!e)
		return 1;
	e->key = key;
	e->count = count;
	memcpy(e->symbol, symbol, count * sizeof(symbol[0]));
	for (uint32_t i = 0; i < count; i++) {
		e->symbol[i].function = harmless(f, symbol[i].function);
		e->symbol[i].source = harmless(f, symbol[i].source);
	}
	HASH_ADD(hh, f->cache, key, sizeof(e->key), e);
	*out = e->symbol;
	return count;
}

/* ---- Python -------------------------------------------------------------- */

static uint32_t symbolize_python(struct ss_symbolizer *s, uint64_t frame,
				 const struct ss_symbol **out)
{
	uint32_t id = (uint32_t)((frame & ~SS_TRACE_PYTHON_FRAME) >> 32);
	const struct ss_python_function *p = ss_python_function(
		&s->files->pythons, ss_trace_reader_python(s->reader, id));
	struct key key = {.address = frame & 0x7fffffffu, .module = (uintptr_t)p};
	struct entry *e;

	HASH_FIND(hh, s->files->cache, &key, sizeof(key), e);
	if (e) {
		*out = e->symbol;
		return e->count;
	}
	struct ss_symbol symbol = {.function = p && p->name ? p->name : "a function of Python",
				   .source = p ? p->file : NULL,
				   .line = p && p->file ? (int)key.address : 0,
				   .module = p ? p->file : NULL};
	return keep(s->files, key, &symbol, 1, out);
}

uint32_t ss_symbolize(struct ss_symbolizer *s, uint64_t address, uint64_t time_ns,
		      const struct ss_symbol **out)
{
	struct ss_symbol symbol[SS_NAMES_MAX];

	if (address & SS_TRACE_PYTHON_FRAME)
		return symbolize_python(s, address, out);
	/* A return address is the address of the next instruction, which may belong to another line
	 * or even another function. */
	uint64_t call = address ? address - 1 : 0;
	const struct ss_trace_module_def *def = ss_trace_reader_module_at(s->reader, call, time_ns);
	struct module *m = def ? module_of(s, (size_t)(def - s->defs)) : NULL;
	struct key key = {.address = m ? address - def->bias : address, .module = (uintptr_t)m};
	struct entry *e;

	HASH_FIND(hh, s->files->cache, &key, sizeof(key), e);
	if (m && m->rebuilt && !s->rebuilt)
		s->rebuilt = def->path;
	if (e) {
		*out = e->symbol;
		return e->count;
	}
	uint32_t count = 1;
	memset(symbol, 0, sizeof(symbol));
	symbol[0].offset = key.address;
	if (m) {
		struct ss_module_names *names = load(s->files, m, def);
		symbol[0].module = m->path;
		if (names)
			count = find_names(s->files, names, call - def->bias, symbol);
		if (m->rebuilt && !s->rebuilt)
			s->rebuilt = def->path;
	}
	return keep(s->files, key, symbol, count, out);
}

uint32_t ss_symbolize_file(struct ss_symbol_files *f, const char *path, uint64_t offset,
			   const struct ss_symbol **out)
{
	struct ss_symbol symbol[SS_NAMES_MAX];
	struct module *m = module_get(f, (const uint8_t *)"", 0, path);
	struct key key = {.address = offset, .module = (uintptr_t)m};
	struct entry *e;

	HASH_FIND(hh, f->cache, &key, sizeof(key), e);
	if (e) {
		*out = e->symbol;
		return e->count;
	}
	uint32_t count = 1;
	memset(symbol, 0, sizeof(symbol));
	symbol[0].offset = offset;
	if (m) {
		struct ss_module_names *names = load(f, m, NULL);
		symbol[0].module = m->path;
		/* The call lies before the return address. */
		if (names)
			count = find_names(f, names, ss_module_names_start(names) + offset - 1,
					   symbol);
	}
	return keep(f, key, symbol, count, out);
}

/* ---- open and close ----------------------------------------------------- */

/* Splits the debug path, and makes libdwfl's form of it. */
static bool split(struct ss_symbol_files *s, const char *debug_path)
{
	size_t length = debug_path ? strlen(debug_path) : 0, colons = 0;

	for (size_t i = 0; i < length; i++)
		colons += debug_path[i] == ':';
	s->search = malloc(length + 64);
	s->dir = calloc(colons + 2, sizeof(*s->dir));
	if (!s->search || !s->dir)
		return false;
	/* "+": check the checksum of a debug file that was found by name. */
	snprintf(s->search, length + 64, "+:.debug:%s%s/usr/lib/debug", length ? debug_path : "",
		 length ? ":" : "");
	while (length) {
		const char *end = strchrnul(debug_path, ':');
		if (end > debug_path) {
			char *dir = strndup(debug_path, (size_t)(end - debug_path));
			if (!dir)
				return false;
			s->dir[s->dirs++] = dir;
		}
		if (!*end)
			break;
		debug_path = end + 1;
	}
	return true;
}

bool ss_symbols_can(void)
{
	return ss_module_names_can();
}

struct ss_symbol_files *ss_symbol_files_open(const char *debug_path)
{
	struct ss_symbol_files *f = calloc(1, sizeof(*f));

	if (!f || !split(f, debug_path)) {
		ss_symbol_files_close(f);
		return NULL;
	}
	/* Names of C++ are made readable if the C++ library is installed. */
	void *lib = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
	if (lib)
		*(void **)&f->demangle = dlsym(lib, "__cxa_demangle");
	return f;
}

void ss_symbol_files_close(struct ss_symbol_files *f)
{
	struct entry *e, *next;
	struct module *m, *next_module;

	if (!f)
		return;
	HASH_ITER(hh, f->cache, e, next) {
		HASH_DEL(f->cache, e);
		free(e);
	}
	HASH_ITER(hh, f->modules, m, next_module) {
		HASH_DEL(f->modules, m);
		ss_module_names_close(m->names);
		free(m);
	}
	ss_python_functions_finish(&f->pythons);
	for (size_t i = 0; i < f->owned_count; i++)
		free(f->owned[i]);
	for (size_t i = 0; i < f->dirs; i++)
		free(f->dir[i]);
	free(f->owned);
	free(f->dir);
	free(f->search);
	free(f);
}

struct ss_symbolizer *ss_symbolizer_open(const struct ss_trace_reader *r,
					 struct ss_symbol_files *files)
{
	struct ss_symbolizer *s = calloc(1, sizeof(*s));
	size_t modules;

	if (!s)
		return NULL;
	s->files = files;
	s->reader = r;
	s->defs = ss_trace_reader_modules(r, &modules);
	s->module = calloc(modules + 1, sizeof(*s->module));
	if (!s->module) {
		ss_symbolizer_close(s);
		return NULL;
	}
	return s;
}

void ss_symbolizer_close(struct ss_symbolizer *s)
{
	if (s) {
		free(s->module);
		free(s);
	}
}
