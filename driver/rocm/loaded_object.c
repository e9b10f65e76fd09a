/* SPDX-License-Identifier: MIT */
/* Reads the ELF tables of a loaded object. Takes no lock and allocates nothing. */
#include <elf.h>
#include <string.h>

#include "driver/rocm/loaded_object.h"

bool ss_elf_dynamic(const struct dl_phdr_info *info, struct ss_elf *d)
{
	const ElfW(Dyn) *dyn = NULL;

	memset(d, 0, sizeof(*d));
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dyn = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
		ElfW(Addr) at = dyn->d_un.d_ptr;

		/* glibc has turned these into addresses, except where the section is
		 * read-only, as in the vDSO. */
		if (at < info->dlpi_addr)
			at += info->dlpi_addr;
		switch (dyn->d_tag) {
		case DT_STRTAB:
			d->strings = (const void *)at;
			break;
		case DT_SYMTAB:
			d->symbols = (const void *)at;
			break;
		case DT_GNU_HASH:
			d->gnu_hash = (const void *)at;
			break;
		case DT_HASH:
			d->hash = (const void *)at;
			break;
		case DT_RELA:
			d->rela[0] = (const void *)at;
			break;
		case DT_JMPREL:
			d->rela[1] = (const void *)at;
			break;
		case DT_RELASZ:
			d->relas[0] = dyn->d_un.d_val / sizeof(ElfW(Rela));
			break;
		case DT_PLTRELSZ:
			d->relas[1] = dyn->d_un.d_val / sizeof(ElfW(Rela));
			break;
		default:
			break;
		}
	}
	return d->strings && d->symbols && (d->gnu_hash || d->hash);
}

static bool defines(const struct ss_elf *d, uint32_t i, const char *name)
{
	return d->symbols[i].st_shndx != SHN_UNDEF &&
	       !strcmp(d->strings + d->symbols[i].st_name, name);
}

/* 0: none; the first symbol of a table is never a name's. */
static uint32_t in_gnu_hash(const struct ss_elf *d, const char *name)
{
	const uint32_t *h = d->gnu_hash;
	uint32_t buckets = h[0], first = h[1], bloom = h[2], hash = 5381, i;
	const uint32_t *bucket = h + 4 + bloom * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = bucket + buckets;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	if (!buckets)
		return 0;
	i = bucket[hash % buckets];
	if (i < first)
		return 0;
	for (;; i++) {
		uint32_t got = chain[i - first];

		if ((got | 1) == (hash | 1) && defines(d, i, name))
			return i;
		if (got & 1)
			return 0;
	}
}

static uint32_t in_hash(const struct ss_elf *d, const char *name)
{
	for (uint32_t i = 1; i < d->hash[1]; i++)
		if (defines(d, i, name))
			return i;
	return 0;
}

void *ss_elf_symbol(const struct dl_phdr_info *info, const char *name)
{
	struct ss_elf d;
	uint32_t i;

	if (!ss_elf_dynamic(info, &d))
		return NULL;
	i = d.gnu_hash ? in_gnu_hash(&d, name) : in_hash(&d, name);
	return i ? (void *)(info->dlpi_addr + d.symbols[i].st_value) : NULL;
}

bool ss_elf_exports(const struct dl_phdr_info *info, const char *name)
{
	return ss_elf_symbol(info, name) != NULL;
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
