/* SPDX-License-Identifier: MIT */
/* Reads the ELF tables of a loaded object. Takes no lock and allocates nothing. */
#include <elf.h>
#include <string.h>

#include "driver/rocm/loaded_object.h"

static unsigned started;

bool ss_elf_dynamic(const struct dl_phdr_info *info, struct ss_elf *d)
{
	const ElfW(Dyn) *dyn = NULL;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dyn = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return ss_elf_read(info->dlpi_addr, dyn, d);
}

void *ss_elf_symbol(const struct dl_phdr_info *info, const char *name)
{
	const ElfW(Sym) * s;
	struct ss_elf d;

	if (!ss_elf_dynamic(info, &d))
		return NULL;
	s = ss_elf_find(&d, name);
	return s ? (void *)(info->dlpi_addr + s->st_value) : NULL;
}

bool ss_elf_exports(const struct dl_phdr_info *info, const char *name)
{
	return ss_elf_symbol(info, name) != NULL;
}

bool ss_elf_is_hip(const struct ss_elf *elf)
{
	return ss_elf_find(elf, "hipMalloc") && ss_elf_find(elf, "__hipRegisterFatBinary");
}

bool ss_elf_function(const struct ss_elf *elf, const char *name)
{
	const ElfW(Sym) *s = ss_elf_find(elf, name);

	return s && (ELF64_ST_TYPE(s->st_info) == STT_FUNC ||
		     ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC);
}

bool ss_elf_holds(const struct dl_phdr_info *info, uintptr_t addr)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && addr >= info->dlpi_addr + p->p_vaddr &&
		    addr < info->dlpi_addr + p->p_vaddr + p->p_memsz)
			return true;
	}
	return false;
}

struct count {
	unsigned objects;
	bool passed_us, libc_behind;
};

static int count_one(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *base = strrchr(info->dlpi_name, '/');
	struct count *c = arg;

	(void)size;
	c->objects++;
	c->libc_behind |= c->passed_us && base && !strncmp(base, "/libc.so", 8);
	c->passed_us |= ss_elf_holds(info, (uintptr_t)&started);
	return 0;
}

/* The C library is after us in the loader's list only if we were loaded with the program. */
__attribute__((constructor)) static void count_started(void)
{
	struct count c = {0};

	dl_iterate_phdr(count_one, &c);
	started = c.libc_behind ? c.objects : 0;
}

unsigned ss_objects_started(void)
{
	return started;
}
