/* SPDX-License-Identifier: MIT */
/* What a loaded object's own tables say, for callbacks of dl_iterate_phdr(). */
#ifndef SS_DRIVER_OBJECT_H
#define SS_DRIVER_OBJECT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_elf {
	const char *strings;
	const ElfW(Sym) *symbols;
	const uint32_t *gnu_hash, *hash;
	const ElfW(Rela) *rela[2]; /* of data, of the PLT */
	size_t relas[2];
};

bool ss_elf_dynamic(const struct dl_phdr_info *info, struct ss_elf *out);
/* Does the object define this name for others? */
bool ss_elf_exports(const struct dl_phdr_info *info, const char *name);
/* The address that the object gives to this name, without regard to symbol versions; NULL if
 * it does not define the name. Not for thread-local or indirect (IFUNC) symbols. */
void *ss_elf_symbol(const struct dl_phdr_info *info, const char *name);
bool ss_elf_holds(const struct dl_phdr_info *info, uintptr_t addr);

#endif
