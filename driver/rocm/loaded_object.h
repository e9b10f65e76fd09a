/* SPDX-License-Identifier: MIT */
/* Reads the ELF tables of a loaded object, in a callback of dl_iterate_phdr(). */
#ifndef SS_ROCM_LOADED_OBJECT_H
#define SS_ROCM_LOADED_OBJECT_H

#include "driver/rocm/elf_tables.h"

/* False if the object has no symbol table. */
bool ss_elf_dynamic(const struct dl_phdr_info *info, struct ss_elf *out);
/* Does the object export the name? */
bool ss_elf_exports(const struct dl_phdr_info *info, const char *name);
/* The address that the object gives to this name, without regard to symbol versions; NULL if
 * it does not define the name. Not for thread-local or indirect (IFUNC) symbols. */
void *ss_elf_symbol(const struct dl_phdr_info *info, const char *name);
/* Is the object a HIP runtime? A runtime also registers code objects; another interposer has no
 * reason to. */
bool ss_elf_is_hip(const struct ss_elf *elf);
/* Does the object define the name as a function? */
bool ss_elf_function(const struct ss_elf *elf, const char *name);
/* Does the address lie in the object? */
bool ss_elf_holds(const struct dl_phdr_info *info, uintptr_t addr);
/* The number of objects that were loaded with the program. These objects are the first in the
 * loader's list, they stay, and all are in its global scope. 0: unknown, because this library was
 * loaded later. */
unsigned ss_objects_started(void);

#endif
