/* SPDX-License-Identifier: MIT */
/*
 * Reads the symbol tables of a loaded object. Calls no function, not even of libc, so these
 * functions work before the object that includes this file is relocated, and without a libc.
 */
#ifndef SS_ROCM_ELF_TABLES_H
#define SS_ROCM_ELF_TABLES_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_elf {
	uintptr_t base;
	const char *strings;
	const ElfW(Sym) * symbols;
	const uint32_t *gnu_hash, *hash;
	const ElfW(Rela) * rela[2]; /* relocations of data, and of the PLT */
	size_t relas[2];            /* their numbers */
};

/* Reads the tables of the object that is loaded at `base` and has this dynamic section. False if
 * the object has no symbol table. */
static inline bool ss_elf_read(uintptr_t base, const ElfW(Dyn) * dyn, struct ss_elf *d)
{
	/* Fields are set one by one, because a compiler may turn any other form into a call of
	 * memset(). */
	d->base = base;
	d->strings = NULL;
	d->symbols = NULL;
	d->gnu_hash = d->hash = NULL;
	d->rela[0] = d->rela[1] = NULL;
	d->relas[0] = d->relas[1] = 0;
	for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
		uintptr_t at = dyn->d_un.d_ptr;

		/* glibc has turned these into addresses, unless the section is read-only, as in the
		 * vDSO. */
		if (at < base)
			at += base;
		if (dyn->d_tag == DT_STRTAB)
			d->strings = (const char *)at;
		else if (dyn->d_tag == DT_SYMTAB)
			d->symbols = (const ElfW(Sym) *)at;
		else if (dyn->d_tag == DT_GNU_HASH)
			d->gnu_hash = (const uint32_t *)at;
		else if (dyn->d_tag == DT_HASH)
			d->hash = (const uint32_t *)at;
		else if (dyn->d_tag == DT_RELA)
			d->rela[0] = (const ElfW(Rela) *)at;
		else if (dyn->d_tag == DT_JMPREL)
			d->rela[1] = (const ElfW(Rela) *)at;
		else if (dyn->d_tag == DT_RELASZ)
			d->relas[0] = dyn->d_un.d_val / sizeof(ElfW(Rela));
		else if (dyn->d_tag == DT_PLTRELSZ)
			d->relas[1] = dyn->d_un.d_val / sizeof(ElfW(Rela));
	}
	return d->strings && d->symbols && (d->gnu_hash || d->hash);
}

static inline bool ss_elf_same(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		;
	return *a == *b;
}

static inline bool ss_elf_defines(const struct ss_elf *d, uint32_t i, const char *name)
{
	return d->symbols[i].st_shndx != SHN_UNDEF &&
	       ss_elf_same(d->strings + d->symbols[i].st_name, name);
}

static inline const ElfW(Sym) * ss_elf_find_gnu(const struct ss_elf *d, const char *name)
{
	const uint32_t *h = d->gnu_hash;
	uint32_t buckets = h[0], first = h[1], bloom = h[2], hash = 5381, i;
	const uint32_t *bucket = h + 4 + bloom * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = bucket + buckets;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	i = buckets ? bucket[hash % buckets] : 0;
	for (; i >= first && i != 0; i++) {
		uint32_t got = chain[i - first];

		if ((got | 1) == (hash | 1) && ss_elf_defines(d, i, name))
			return &d->symbols[i];
		if (got & 1)
			break;
	}
	return NULL;
}

/* The object's own definition of the name, of any symbol version, or NULL. */
static inline const ElfW(Sym) * ss_elf_find(const struct ss_elf *d, const char *name)
{
	if (d->gnu_hash)
		return ss_elf_find_gnu(d, name);
	for (uint32_t i = 1; i < d->hash[1]; i++) /* symbol 0 is none */
		if (ss_elf_defines(d, i, name))
			return &d->symbols[i];
	return NULL;
}

/* The address that the object gives to the name, if it defines it as a symbol of this type
 * (STT_FUNC, STT_OBJECT); 0: it does not. */
static inline uintptr_t ss_elf_address(const struct ss_elf *d, const char *name, int type)
{
	const ElfW(Sym) *s = ss_elf_find(d, name);

	return s && ELF64_ST_TYPE(s->st_info) == type ? d->base + s->st_value : 0;
}

/* Is the object this library, or another copy of it, of any version (copies.h)? */
static inline bool ss_elf_is_copy(const struct ss_elf *d)
{
	return ss_elf_address(d, "somashim_report", STT_OBJECT) != 0;
}

#endif
