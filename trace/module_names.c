/* SPDX-License-Identifier: MIT */
/* Names in the file of a module, with elfutils: one session of libdwfl each. */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/grow.h"
#include "trace/module_names.h"

struct ss_module_names {
	Dwfl *dwfl;
	Dwfl_Module *mod;
	Dwfl_Callbacks callbacks;
	char *search;
	struct unit *unit; /* sorted; only if the file has no index of its own */
	size_t units;
	bool indexed;
};

/* Addresses of a compilation unit. */
struct unit {
	Dwarf_Addr low, high; /* in the module */
	Dwarf_Die die;
	Dwarf_Addr bias;
};

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

static void add_unit(struct ss_module_names *m, Dwarf_Die *die, Dwarf_Addr bias, Dwarf_Addr low,
		     Dwarf_Addr high)
{
	struct unit *unit = ss_grow(m->unit, m->units, sizeof(*unit));

	if (!unit)
		return;
	m->unit = unit;
	m->unit[m->units++] = (struct unit){
		.low = low + bias, .high = high + bias, .die = *die, .bias = bias};
}

/* Clang writes no .debug_aranges, which libdw needs to look up addresses. */
static void index_units(struct ss_module_names *m)
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

static Dwarf_Die *find_unit(struct ss_module_names *m, Dwarf_Addr address, Dwarf_Addr *bias)
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

/* Adds the functions that were inlined at the address, and the function that contains them. The
 * first symbol has its source line already. Returns the number of symbols. */
static uint32_t add_inlined(Dwfl_Module *mod, Dwarf_Die *cu, Dwarf_Addr address,
			    struct ss_symbol *symbol)
{
	Dwarf_Die *scopes = NULL, innermost;
	Dwarf_Files *files = NULL;
	Dwarf_Addr bias;
	uint32_t count = 1;

	int n = dwarf_getscopes(cu, address, &scopes);
	if (n <= 0)
		return count;
	/* The scopes of an inlined function continue at its definition. Scopes that follow from the
	 * function's own entry continue at the place of the inlining. */
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
		symbol[0].function = name ? name : symbol[0].function;
	}
	while (i >= 0 && dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine &&
	       count < SS_NAMES_MAX) {
		Dwarf_Attribute attr;
		Dwarf_Word value;
		int outer = next_function(scopes, n, i + 1);

		if (outer < 0)
			break;
		struct ss_symbol *next = &symbol[count];
		*next = symbol[count - 1];
		next->source = NULL;
		next->line = 0;
		next->function = name_of(&scopes[outer]);
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

uint32_t ss_module_names_find(struct ss_module_names *m, uint64_t address, struct ss_symbol *symbol)
{
	Dwarf_Addr bias = 0;

	symbol[0].function = dwfl_module_addrname(m->mod, address);
	Dwarf_Die *cu = find_unit(m, address, &bias);
	if (!cu)
		return 1;
	Dwarf_Line *line = dwarf_getsrc_die(cu, address - bias);
	if (line) {
		Dwarf_Attribute folder;
		symbol[0].source = dwarf_linesrc(line, NULL, NULL);
		symbol[0].folder = dwarf_formstring(dwarf_attr(cu, DW_AT_comp_dir, &folder));
		dwarf_lineno(line, &symbol[0].line);
	}
	return add_inlined(m->mod, cu, address - bias, symbol);
}

uint64_t ss_module_names_start(struct ss_module_names *m)
{
	Dwarf_Addr start = 0;

	dwfl_module_info(m->mod, NULL, &start, NULL, NULL, NULL, NULL, NULL);
	return start;
}

/* ---- open and close ----------------------------------------------------- */

bool ss_module_names_can(void)
{
	return true;
}

struct ss_module_names *ss_module_names_open(const char *path, int fd, char *search)
{
	struct ss_module_names *m = calloc(1, sizeof(*m));

	elf_version(EV_CURRENT);
	if (!m)
		goto error;
	m->search = search;
	m->callbacks = (Dwfl_Callbacks){.find_elf = dwfl_build_id_find_elf,
					.find_debuginfo = dwfl_standard_find_debuginfo,
					.section_address = dwfl_offline_section_address,
					.debuginfo_path = &m->search};
	m->dwfl = dwfl_begin(&m->callbacks);
	if (!m->dwfl)
		goto error;
	dwfl_report_begin(m->dwfl);
	m->mod = dwfl_report_elf(m->dwfl, path, path, fd, 0, true);
	if (m->mod)
		fd = -1; /* libdwfl owns the descriptor now */
	dwfl_report_end(m->dwfl, NULL, NULL);
	if (m->mod)
		return m;

error:
	if (fd >= 0)
		close(fd);
	ss_module_names_close(m);
	return NULL;
}

void ss_module_names_close(struct ss_module_names *m)
{
	if (!m)
		return;
	if (m->dwfl)
		dwfl_end(m->dwfl);
	free(m->unit);
	free(m);
}
