/* SPDX-License-Identifier: MIT */
/* Function, source file and line of a frame, from the file of its module. */
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uthash.h>

#include "cli/check/fields.h"
#include "cli/check/found.h"
#include "core/base/regular_file.h"

#define BASE 0x10000000u /* where position-independent files are put; any address will do */

struct module {
	char *path;
	Dwfl *dwfl;
	Dwfl_Module *mod;
	UT_hash_handle hh;
};

struct ss_frame_names {
	Dwfl_Callbacks callbacks;
	char *debug_path;
	struct module *modules;
};

struct ss_frame_names *ss_frame_names_open(void)
{
	struct ss_frame_names *n = calloc(1, sizeof(*n));

	if (n) {
		n->callbacks.find_elf = dwfl_build_id_find_elf;
		n->callbacks.find_debuginfo = dwfl_standard_find_debuginfo;
		n->callbacks.section_address = dwfl_offline_section_address;
		n->callbacks.debuginfo_path = &n->debug_path;
	}
	return n;
}

void ss_frame_names_close(struct ss_frame_names *n)
{
	struct module *m, *next;

	if (!n)
		return;
	HASH_ITER(hh, n->modules, m, next) {
		HASH_DEL(n->modules, m);
		if (m->dwfl)
			dwfl_end(m->dwfl);
		free(m->path);
		free(m);
	}
	free(n);
}

static struct module *module_get(struct ss_frame_names *n, const char *path)
{
	struct module *m;

	HASH_FIND_STR(n->modules, path, m);
	if (m || !(m = calloc(1, sizeof(*m))))
		return m;
	m->path = strdup(path);
	if (!m->path) {
		free(m);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, n->modules, m->path, strlen(m->path), m);
	/* The path is what a file of findings says, which may be another user's. */
	int fd = ss_regular_open(path);
	m->dwfl = fd >= 0 ? dwfl_begin(&n->callbacks) : NULL;
	if (m->dwfl) {
		dwfl_report_begin(m->dwfl);
		m->mod = dwfl_report_elf(m->dwfl, path, path, fd, BASE, false);
		dwfl_report_end(m->dwfl, NULL, NULL);
	}
	if (fd >= 0 && !m->mod) /* else libdwfl has taken it */
		close(fd);
	return m;
}

void ss_frame_names_add(struct ss_frame_names *n, json_t *frame)
{
	const char *path = json_string_value(json_object_get(frame, "module"));
	uint64_t offset = (uint64_t)json_integer_value(json_object_get(frame, "offset"));
	struct module *m = path ? module_get(n, path) : NULL;
	Dwarf_Addr start, address;
	GElf_Sym symbol;
	GElf_Off into;
	int line = 0;

	if (!m || !m->mod)
		return;
	/* An offset is from where the file is mapped; of a program that is not position-independent
	 * the addresses in the file begin elsewhere. The call lies in front of the return
	 * address. */
	dwfl_module_info(m->mod, NULL, &start, NULL, NULL, NULL, NULL, NULL);
	address = start + offset - 1;
	const char *name = dwfl_module_addrinfo(m->mod, address, &into, &symbol, NULL, NULL, NULL);
	if (name)
		json_object_set_new(frame, "function", harmless(name));
	Dwfl_Line *at = dwfl_module_getsrc(m->mod, address);
	const char *source = at ? dwfl_lineinfo(at, NULL, &line, NULL, NULL, NULL) : NULL;
	if (source) {
		json_object_set_new(frame, "source", harmless(source));
		json_object_set_new(frame, "line", json_integer(line));
		const char *folder = source[0] == '/' ? NULL : dwfl_line_comp_dir(at);
		if (folder)
			json_object_set_new(frame, "folder", harmless(folder));
	}
}
