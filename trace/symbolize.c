/* SPDX-License-Identifier: MIT */
/* Finds the names behind raw addresses with elfutils. One session of libdwfl per module, as
 * modules of different times may overlap. */
#include <dlfcn.h>
#include <dwarf.h>
#include <fcntl.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
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
#include "trace/python_function.h"
#include "trace/symbolize.h"

#define INLINED_MAX 32u

/* One build of a module. Its addresses are offsets, so that all recordings share it. */
struct module {
	UT_hash_handle hh;
	char *path;
	bool tried, rebuilt;
	Dwfl *dwfl; /* NULL: its file was not found */
	Dwfl_Module *mod;
	struct unit *unit; /* sorted; only if the file has no index of its own */
	size_t units;
	bool indexed;
	size_t key_size;
	char key[]; /* the build id, then the path */
};

/* Addresses of a compilation unit. */
struct unit {
	Dwarf_Addr low, high; /* in the module */
	Dwarf_Die die;
	Dwarf_Addr bias;
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
	Dwfl_Callbacks callbacks;
	struct entry *cache;
	char **owned; /* demangled names */
	size_t owned_count;
	char *(*demangle)(const char *, char *, size_t *, int *);
};

struct ss_symbolizer {
	struct ss_symbol_files *files;
	const struct ss_trace_reader *reader;
	const struct ss_trace_module_def *defs;
	struct module **module; /* one for each of defs, once it was needed */
	const char *rebuilt;    /* path of the first whose file is another build */
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

/* Opens the file of a module, at its first use. `def` NULL: the one at its path. NULL: it was not
 * found. */
static Dwfl_Module *load(struct ss_symbol_files *f, struct module *m,
			 const struct ss_trace_module_def *def)
{
	char path[PATH_MAX];

	if (m->tried)
		return m->mod;
	m->tried = true;
	int fd = def ? ss_module_file_open(def, f->dir, f->dirs, path, sizeof(path), &m->rebuilt) :
		       open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	if (!def)
		snprintf(path, sizeof(path), "%s", m->path);
	m->dwfl = dwfl_begin(&f->callbacks);
	if (!m->dwfl) {
		close(fd);
		return NULL;
	}
	dwfl_report_begin(m->dwfl);
	m->mod = dwfl_report_elf(m->dwfl, path, path, fd, 0, true);
	if (!m->mod)
		close(fd);
	dwfl_report_end(m->dwfl, NULL, NULL);
	return m->mod;
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

/* The name of a file that others may have made, as it may be printed. It lives as long as `s`. */
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

static const char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attr));
	const char *plain = dwarf_diename(die);
	size_t length = plain ? strlen(plain) : 0;

	/* A procedure of Fortran that is in no module has one more underscore than its name; the
	 * main program has a name, too. */
	if (name && plain &&
	    ((strncmp(name, plain, length) == 0 && strcmp(name + length, "_") == 0) ||
	     strcmp(name, "MAIN__") == 0))
		return plain;
	return name ? name : plain;
}

static bool is_function(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram ||
	       tag == DW_TAG_entry_point;
}

/* The function that encloses scope i, or -1. */
static int next_function(Dwarf_Die *scopes, int count, int i)
{
	for (; i < count; i++)
		if (is_function(&scopes[i]))
			return i;
	return -1;
}

/* ---- compilation units --------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

static void add_unit(struct module *m, Dwarf_Die *die, Dwarf_Addr bias, Dwarf_Addr low,
		     Dwarf_Addr high)
{
	struct unit *unit = ss_grow(m->unit, m->units, sizeof(*unit));

	if (!unit)
		return;
	m->unit = unit;
	m->unit[m->units++] = (struct unit){
		.low = low + bias, .high = high + bias, .die = *die, .bias = bias};
}

/* Clang writes no .debug_aranges, which libdw looks addresses up in. */
static void index_units(struct module *m)
{
	Dwarf_Die *die = NULL;
	Dwarf_Addr bias, base, low, high;

	m->indexed = true;
	while ((die = dwfl_module_nextcu(m->mod, die, &bias))) {
		ptrdiff_t at = 0;
		while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0)
			add_unit(m, die, bias, low, high);
	}
	if (m->units)
		qsort(m->unit, m->units, sizeof(*m->unit), by_address);
}

static Dwarf_Die *find_unit(struct module *m, Dwarf_Addr address, Dwarf_Addr *bias)
{
	Dwarf_Die *die = dwfl_module_addrdie(m->mod, address, bias);
	size_t low = 0, high;

	if (die)
		return die;
	if (!m->indexed)
		index_units(m);
	high = m->units;
	while (low < high) { /* the last one that starts at or before the address */
		size_t middle = (low + high) / 2;
		if (m->unit[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || address >= m->unit[low - 1].high)
		return NULL;
	*bias = m->unit[low - 1].bias;
	return &m->unit[low - 1].die;
}

/* ---- inlined functions --------------------------------------------------- */

/* Adds the functions that were inlined at the address, and the one that they are in. The first
 * symbol has its source line already. Returns the number of symbols. */
static uint32_t add_inlined(struct ss_symbol_files *s, Dwfl_Module *mod, Dwarf_Die *cu,
			    Dwarf_Addr address, struct ss_symbol *symbol)
{
	Dwarf_Die *scopes = NULL, innermost;
	Dwarf_Files *files = NULL;
	Dwarf_Addr bias;
	uint32_t count = 1;

	int n = dwarf_getscopes(cu, address, &scopes);
	if (n <= 0)
		return count;
	/* The scopes of an inlined function continue where it is defined. Those that follow from
	 * its own entry continue where it was inlined. */
	Dwarf_Off at = dwarf_dieoffset(&scopes[0]);
	free(scopes);
	scopes = NULL;
	if (!dwarf_offdie(dwfl_module_getdwarf(mod, &bias), at, &innermost))
		return count;
	n = dwarf_getscopes_die(&innermost, &scopes);
	if (dwarf_getsrcfiles(cu, &files, NULL) != 0)
		files = NULL;
	int i = next_function(scopes, n, 0);
	if (i >= 0) {
		const char *name = name_of(&scopes[i]);
		symbol[0].function = name ? ss_symbol_readable(s, name) : symbol[0].function;
	}
	while (i >= 0 && dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine &&
	       count < INLINED_MAX) {
		Dwarf_Attribute attr;
		Dwarf_Word value;
		int outer = next_function(scopes, n, i + 1);

		if (outer < 0)
			break;
		struct ss_symbol *next = &symbol[count];
		*next = symbol[count - 1];
		next->source = NULL;
		next->line = 0;
		next->function = ss_symbol_readable(s, name_of(&scopes[outer]));
		if (files &&
		    dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_file, &attr), &value) == 0)
			next->source = dwarf_filesrc(files, value, NULL, NULL);
		if (dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_line, &attr), &value) == 0)
			next->line = (int)value;
		symbol[count - 1].inlined = true;
		count++;
		i = outer;
	}
	free(scopes);
	return count;
}

static uint32_t find_names(struct ss_symbol_files *f, struct module *m, Dwfl_Module *mod,
			   uint64_t offset, struct ss_symbol *symbol)
{
	Dwarf_Addr bias = 0;

	symbol[0].function = ss_symbol_readable(f, dwfl_module_addrname(mod, offset));
	Dwarf_Die *cu = find_unit(m, offset, &bias);
	if (!cu)
		return 1;
	Dwarf_Line *line = dwarf_getsrc_die(cu, offset - bias);
	if (line) {
		Dwarf_Attribute folder;
		symbol[0].source = dwarf_linesrc(line, NULL, NULL);
		symbol[0].folder = dwarf_formstring(dwarf_attr(cu, DW_AT_comp_dir, &folder));
		dwarf_lineno(line, &symbol[0].line);
	}
	return add_inlined(f, mod, cu, offset - bias, symbol);
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
	struct ss_symbol symbol[INLINED_MAX];

	if (address & SS_TRACE_PYTHON_FRAME)
		return symbolize_python(s, address, out);
	/* A return address is that of the next instruction, which may be another line or even
	 * another function. */
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
		Dwfl_Module *mod = load(s->files, m, def);
		symbol[0].module = m->path;
		count = mod ? find_names(s->files, m, mod, call - def->bias, symbol) : 1;
		if (m->rebuilt && !s->rebuilt)
			s->rebuilt = def->path;
	}
	return keep(s->files, key, symbol, count, out);
}

uint32_t ss_symbolize_file(struct ss_symbol_files *f, const char *path, uint64_t offset,
			   const struct ss_symbol **out)
{
	struct ss_symbol symbol[INLINED_MAX];
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
		Dwfl_Module *mod = load(f, m, NULL);
		Dwarf_Addr start = 0;
		/* Of a program that is not position-independent the addresses in the file do not
		 * begin with 0. The call lies in front of the return address. */
		if (mod)
			dwfl_module_info(mod, NULL, &start, NULL, NULL, NULL, NULL, NULL);
		symbol[0].module = m->path;
		if (mod)
			count = find_names(f, m, mod, start + offset - 1, symbol);
	}
	return keep(f, key, symbol, count, out);
}

/* ---- open and close ----------------------------------------------------- */

/* Splits the debug path, and makes that of libdwfl out of it. */
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

struct ss_symbol_files *ss_symbol_files_open(const char *debug_path)
{
	struct ss_symbol_files *f = calloc(1, sizeof(*f));

	elf_version(EV_CURRENT);
	if (!f || !split(f, debug_path)) {
		ss_symbol_files_close(f);
		return NULL;
	}
	f->callbacks.find_elf = dwfl_build_id_find_elf;
	f->callbacks.find_debuginfo = dwfl_standard_find_debuginfo;
	f->callbacks.section_address = dwfl_offline_section_address;
	f->callbacks.debuginfo_path = &f->search;
	/* Names of C++ are made readable if its library is there. */
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
		if (m->dwfl)
			dwfl_end(m->dwfl);
		free(m->unit);
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
