/* SPDX-License-Identifier: MIT */
/* Finds the names behind raw addresses with elfutils. One session of libdwfl per module, as
 * modules of different times may overlap. */
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uthash.h>

#include "trace/grow.h"
#include "trace/module_file.h"
#include "trace/symbolize.h"

#define INLINED_MAX 32u

struct module {
	bool tried;
	Dwfl *dwfl;          /* NULL: its file was not found */
	Dwfl_Module *mod;
	struct unit *unit;   /* sorted; only if the file has no index of its own */
	size_t units;
	bool indexed;
};

/* Addresses of a compilation unit. */
struct unit {
	Dwarf_Addr low, high; /* in the process */
	Dwarf_Die die;
	Dwarf_Addr bias;
};

struct key {
	uint64_t address, module;
};

struct entry {
	struct key key;
	UT_hash_handle hh;
	uint32_t count;
	struct ss_symbol symbol[];
};

struct ss_symbolizer {
	const struct ss_trace_reader *reader;
	const struct ss_trace_module_def *defs;
	struct module *module; /* one for each of defs */
	const char *rebuilt;   /* path of the first whose file is another build */
	size_t modules;
	char **dir;            /* directories of the debug path; ends with NULL */
	size_t dirs;
	char *search;          /* the debug path in the form of libdwfl */
	Dwfl_Callbacks callbacks;
	struct entry *cache;
	char **owned;          /* demangled names */
	size_t owned_count;
	char *(*demangle)(const char *, char *, size_t *, int *);
};

static Dwfl_Module *load(struct ss_symbolizer *s, size_t index) {
	const struct ss_trace_module_def *def = &s->defs[index];
	struct module *m = &s->module[index];
	char path[PATH_MAX];

	if (m->tried) {
		return m->mod;
	}
	m->tried = true;
	bool rebuilt;
	int fd = ss_module_file_open(def, s->dir, s->dirs, path, sizeof(path), &rebuilt);
	if (rebuilt && !s->rebuilt) {
		s->rebuilt = def->path;
	}
	if (fd < 0) {
		return NULL;
	}
	m->dwfl = dwfl_begin(&s->callbacks);
	if (!m->dwfl) {
		close(fd);
		return NULL;
	}
	dwfl_report_begin(m->dwfl);
	m->mod = dwfl_report_elf(m->dwfl, path, path, fd, def->bias, true);
	if (!m->mod) {
		close(fd);
	}
	dwfl_report_end(m->dwfl, NULL, NULL);
	return m->mod;
}

const char *ss_symbolizer_rebuilt(const struct ss_symbolizer *s) {
	return s->rebuilt;
}

/* ---- names -------------------------------------------------------------- */

static const char *readable(struct ss_symbolizer *s, const char *name) {
	int status;

	if (!name || name[0] != '_' || name[1] != 'Z' || !s->demangle) {
		return name;
	}
	char **owned = ss_grow(s->owned, s->owned_count, sizeof(*owned));
	if (!owned) {
		return name;
	}
	s->owned = owned;
	char *text = s->demangle(name, NULL, NULL, &status);
	if (!text) {
		return name;
	}
	s->owned[s->owned_count++] = text;
	return text;
}

static const char *name_of(Dwarf_Die *die) {
	Dwarf_Attribute attr;
	const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attr));

	return name ? name : dwarf_diename(die);
}

static bool is_function(Dwarf_Die *die) {
	int tag = dwarf_tag(die);

	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram ||
	       tag == DW_TAG_entry_point;
}

/* The function that encloses scope i, or -1. */
static int next_function(Dwarf_Die *scopes, int count, int i) {
	for (; i < count; i++) {
		if (is_function(&scopes[i])) {
			return i;
		}
	}
	return -1;
}

/* ---- compilation units --------------------------------------------------- */

static int by_address(const void *a, const void *b) {
	const struct unit *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

static void add_unit(struct module *m, Dwarf_Die *die, Dwarf_Addr bias, Dwarf_Addr low,
		     Dwarf_Addr high) {
	struct unit *unit = ss_grow(m->unit, m->units, sizeof(*unit));

	if (!unit) {
		return;
	}
	m->unit = unit;
	m->unit[m->units++] = (struct unit){ .low = low + bias, .high = high + bias, .die = *die,
		.bias = bias };
}

/* Clang writes no .debug_aranges, which libdw looks addresses up in. */
static void index_units(struct module *m) {
	Dwarf_Die *die = NULL;
	Dwarf_Addr bias, base, low, high;

	m->indexed = true;
	while ((die = dwfl_module_nextcu(m->mod, die, &bias))) {
		ptrdiff_t at = 0;
		while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
			add_unit(m, die, bias, low, high);
		}
	}
	if (m->units) {
		qsort(m->unit, m->units, sizeof(*m->unit), by_address);
	}
}

static Dwarf_Die *find_unit(struct module *m, Dwarf_Addr address, Dwarf_Addr *bias) {
	Dwarf_Die *die = dwfl_module_addrdie(m->mod, address, bias);
	size_t low = 0, high;

	if (die) {
		return die;
	}
	if (!m->indexed) {
		index_units(m);
	}
	high = m->units;
	while (low < high) { /* the last one that starts at or before the address */
		size_t middle = (low + high) / 2;
		if (m->unit[middle].low <= address) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	if (low == 0 || address >= m->unit[low - 1].high) {
		return NULL;
	}
	*bias = m->unit[low - 1].bias;
	return &m->unit[low - 1].die;
}

/* ---- inlined functions --------------------------------------------------- */

/* Adds the functions that were inlined at the address, and the one that they are in. The first
 * symbol has its source line already. Returns the number of symbols. */
static uint32_t add_inlined(struct ss_symbolizer *s, Dwfl_Module *mod, Dwarf_Die *cu,
			    Dwarf_Addr address, struct ss_symbol *symbol) {
	Dwarf_Die *scopes = NULL, innermost;
	Dwarf_Files *files = NULL;
	Dwarf_Addr bias;
	uint32_t count = 1;

	int n = dwarf_getscopes(cu, address, &scopes);
	if (n <= 0) {
		return count;
	}
	/* The scopes of an inlined function continue where it is defined. Those that follow from
	 * its own entry continue where it was inlined. */
	Dwarf_Off at = dwarf_dieoffset(&scopes[0]);
	free(scopes);
	scopes = NULL;
	if (!dwarf_offdie(dwfl_module_getdwarf(mod, &bias), at, &innermost)) {
		return count;
	}
	n = dwarf_getscopes_die(&innermost, &scopes);
	if (dwarf_getsrcfiles(cu, &files, NULL) != 0) {
		files = NULL;
	}
	int i = next_function(scopes, n, 0);
	if (i >= 0) {
		const char *name = name_of(&scopes[i]);
		symbol[0].function = name ? readable(s, name) : symbol[0].function;
	}
	while (i >= 0 && dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine && count < INLINED_MAX) {
		Dwarf_Attribute attr;
		Dwarf_Word value;
		int outer = next_function(scopes, n, i + 1);

		if (outer < 0) {
			break;
		}
		struct ss_symbol *next = &symbol[count];
		*next = symbol[count - 1];
		next->source = NULL;
		next->line = 0;
		next->function = readable(s, name_of(&scopes[outer]));
		if (files && dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_file, &attr), &value) == 0) {
			next->source = dwarf_filesrc(files, value, NULL, NULL);
		}
		if (dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_line, &attr), &value) == 0) {
			next->line = (int)value;
		}
		symbol[count - 1].inlined = true;
		count++;
		i = outer;
	}
	free(scopes);
	return count;
}

static uint32_t find_names(struct ss_symbolizer *s, size_t index, uint64_t address,
			   struct ss_symbol *symbol) {
	Dwfl_Module *mod = load(s, index);
	Dwarf_Addr bias = 0;

	if (!mod) {
		return 1;
	}
	symbol[0].function = readable(s, dwfl_module_addrname(mod, address));
	Dwarf_Die *cu = find_unit(&s->module[index], address, &bias);
	if (!cu) {
		return 1;
	}
	Dwarf_Line *line = dwarf_getsrc_die(cu, address - bias);
	if (line) {
		symbol[0].source = dwarf_linesrc(line, NULL, NULL);
		dwarf_lineno(line, &symbol[0].line);
	}
	return add_inlined(s, mod, cu, address - bias, symbol);
}

uint32_t ss_symbolize(struct ss_symbolizer *s, uint64_t address, uint64_t time_ns,
		      const struct ss_symbol **out) {
	static const struct ss_symbol unknown;
	struct ss_symbol symbol[INLINED_MAX];
	/* A return address is that of the next instruction, which may be another line or even
	 * another function. */
	uint64_t call = address ? address - 1 : 0;
	const struct ss_trace_module_def *def = ss_trace_reader_module_at(s->reader, call,
									  time_ns);
	size_t index = def ? (size_t)(def - s->defs) : SIZE_MAX;
	struct key key = { .address = address, .module = index };
	struct entry *e;

	HASH_FIND(hh, s->cache, &key, sizeof(key), e);
	if (e) {
		*out = e->symbol;
		return e->count;
	}
	memset(symbol, 0, sizeof(symbol));
	uint32_t count = 1;
	if (def) {
		symbol[0].module = def->path;
		symbol[0].offset = address - def->bias;
		count = find_names(s, index, call, symbol);
	} else {
		symbol[0].offset = address;
	}
	e = malloc(sizeof(*e) + count * sizeof(e->symbol[0]));
	if (!e) {
		*out = &unknown;
		return 1;
	}
	e->key = key;
	e->count = count;
	memcpy(e->symbol, symbol, count * sizeof(symbol[0]));
	HASH_ADD(hh, s->cache, key, sizeof(e->key), e);
	*out = e->symbol;
	return count;
}

/* ---- open and close ----------------------------------------------------- */

/* Splits the debug path, and makes that of libdwfl out of it. */
static bool split(struct ss_symbolizer *s, const char *debug_path) {
	size_t length = debug_path ? strlen(debug_path) : 0, colons = 0;

	for (size_t i = 0; i < length; i++) {
		colons += debug_path[i] == ':';
	}
	s->search = malloc(length + 64);
	s->dir = calloc(colons + 2, sizeof(*s->dir));
	if (!s->search || !s->dir) {
		return false;
	}
	/* "+": check the checksum of a debug file that was found by name. */
	snprintf(s->search, length + 64, "+:.debug:%s%s/usr/lib/debug", length ? debug_path : "",
		 length ? ":" : "");
	while (length) {
		const char *end = strchrnul(debug_path, ':');
		if (end > debug_path) {
			char *dir = strndup(debug_path, (size_t)(end - debug_path));
			if (!dir) {
				return false;
			}
			s->dir[s->dirs++] = dir;
		}
		if (!*end) {
			break;
		}
		debug_path = end + 1;
	}
	return true;
}

struct ss_symbolizer *ss_symbolizer_open(const struct ss_trace_reader *r,
					 const char *debug_path, char *err, size_t err_size) {
	struct ss_symbolizer *s = calloc(1, sizeof(*s));

	elf_version(EV_CURRENT);
	if (!s) {
		goto no_memory;
	}
	s->reader = r;
	s->defs = ss_trace_reader_modules(r, &s->modules);
	s->module = calloc(s->modules + 1, sizeof(*s->module));
	if (!s->module || !split(s, debug_path)) {
		goto no_memory;
	}
	s->callbacks.find_elf = dwfl_build_id_find_elf;
	s->callbacks.find_debuginfo = dwfl_standard_find_debuginfo;
	s->callbacks.section_address = dwfl_offline_section_address;
	s->callbacks.debuginfo_path = &s->search;
	/* Names of C++ are made readable if its library is there. */
	void *lib = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
	if (lib) {
		*(void **)&s->demangle = dlsym(lib, "__cxa_demangle");
	}
	return s;

no_memory:
	snprintf(err, err_size, "out of memory");
	ss_symbolizer_close(s);
	return NULL;
}

void ss_symbolizer_close(struct ss_symbolizer *s) {
	struct entry *e, *next;

	if (!s) {
		return;
	}
	HASH_ITER(hh, s->cache, e, next) {
		HASH_DEL(s->cache, e);
		free(e);
	}
	for (size_t i = 0; s->module && i < s->modules; i++) {
		if (s->module[i].dwfl) {
			dwfl_end(s->module[i].dwfl);
		}
		free(s->module[i].unit);
	}
	for (size_t i = 0; i < s->owned_count; i++) {
		free(s->owned[i]);
	}
	for (size_t i = 0; i < s->dirs; i++) {
		free(s->dir[i]);
	}
	free(s->owned);
	free(s->dir);
	free(s->search);
	free(s->module);
	free(s);
}
