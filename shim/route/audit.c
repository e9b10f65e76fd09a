/* SPDX-License-Identifier: MIT */
/*
 * libsomashim-audit.so, the LD_AUDIT companion of the preload, for programs that load objects with
 * RTLD_DEEPBIND. The auditor binds every reference that would bind to the real runtime to the
 * preloaded libsomashim instead.
 *
 * An auditor is loaded into a namespace of its own, in which a libc would be a second copy, so this
 * file uses no libc. The auditor must not call dlsym() either, which would call the auditor again,
 * so it reads the symbol table of libsomashim itself. The loader does not show an auditor function
 * addresses that are taken without a PLT slot (rtld-audit(7)). The preload catches those, except
 * with RTLD_DEEPBIND.
 */
#include <elf.h>
#include <link.h>

#include "driver/rocm/elf_tables.h"
#include "shim/process/report.h"

#define EXPORT __attribute__((visibility("default")))

/* The kind of an object. Stored in the low bits of its cookie; the other bits are its link map. */
enum kind { OTHER, SHIM, RUNTIME, KIND_MASK = 3 };

unsigned int la_version(unsigned int version);
unsigned int la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie);
uintptr_t la_symbind64(Elf64_Sym *sym, unsigned int ndx, uintptr_t *refcook, uintptr_t *defcook,
		       unsigned int *flags, const char *name);

static struct link_map *shim;

/* Is the file name `prefix`, perhaps followed by a version, or by the hash that Python
 * wheels add? */
static bool called(const char *path, const char *prefix)
{
	const char *base = path;

	for (const char *c = path; *c; c++)
		if (*c == '/')
			base = c + 1;
	while (*prefix && *base == *prefix) {
		base++;
		prefix++;
	}
	return !*prefix && (!*base || *base == '.' || *base == '-');
}

/* The address of `name` in `map`, if map itself defines it with that type, else 0. */
static uintptr_t defined(const struct link_map *map, const char *name, int type)
{
	struct ss_elf elf;

	return ss_elf_read(map->l_addr, map->l_ld, &elf) ? ss_elf_address(&elf, name, type) : 0;
}

/* Counts one more reference that leads to us, for `somashim run`. */
static void count(enum ss_route route)
{
	union ss_report_page *page = (union ss_report_page *)defined(shim, "somashim_report",
								     STT_OBJECT);

	if (page)
		ss_report_add(&page->r.route[route]);
}

EXPORT unsigned int la_version(unsigned int version)
{
	/* The loader refuses an auditor that is newer than the loader. */
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

EXPORT unsigned int la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie)
{
	enum kind kind = OTHER;

	if (lmid != LM_ID_BASE)
		return 0;
	if (called(map->l_name, "libsomashim.so")) {
		if (!shim) /* other copies stand aside (driver/rocm/copies.h) */
			shim = map;
		kind = SHIM;
	} else if (called(map->l_name, "libamdhip64") || called(map->l_name, "libhsa-runtime64")) {
		kind = RUNTIME;
	}
	*cookie = (uintptr_t)map | kind;
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

EXPORT uintptr_t la_symbind64(Elf64_Sym *sym, unsigned int ndx, uintptr_t *refcook,
			      uintptr_t *defcook, unsigned int *flags, const char *name)
{
	enum kind from = *refcook & KIND_MASK, to = *defcook & KIND_MASK;
	const struct link_map *self = (const struct link_map *)(*refcook - from);
	uintptr_t at = 0;

	(void)ndx;
	/* An object that defines the name itself is another interposer, which asks for the next
	 * definition after its own. If the answer were our function, and the interposer were after
	 * us, a call would never end. */
	if (from == OTHER && to == RUNTIME && shim && !defined(self, name, STT_FUNC)) {
		at = defined(shim, name, STT_FUNC);
		if (at)
			count(*flags & LA_SYMB_DLSYM ? SS_ROUTE_DLSYM : SS_ROUTE_PAST);
	} else if (from == OTHER && to == SHIM) {
		count(*flags & LA_SYMB_DLSYM ? SS_ROUTE_DLSYM : SS_ROUTE_LINK);
	} else if (from == RUNTIME && to == SHIM) { /* the runtime calls an export of its own */
		at = defined(self, name, STT_FUNC);
	}
	return at ? at : sym->st_value;
}
