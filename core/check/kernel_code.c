/* SPDX-License-Identifier: MIT */
/*
 * The descriptor of a kernel ("name.kd", 64 bytes) says which registers the kernel gets, and the
 * symbol with its name has its code. Arguments are loaded by scalar loads with a constant offset
 * (SMEM), which GFX9 to GFX11 write in almost the same way. The code is searched word by word, not
 * decoded, so a constant may look like a load.
 */
#include <elf.h>
#include <string.h>

#include "core/check/kernel_code.h"

#define DESCRIPTOR_SIZE 64
#define DESCRIPTOR_REGISTERS 56 /* a word with a bit for each group of registers */
#define DESCRIPTOR_PRELOAD 58   /* which arguments are in registers from the start */
#define DESCRIPTOR_SUFFIX ".kd"
#define HAS_KERNARG (1u << 3)

/* Numbers of processors (EF_AMDGPU_MACH) that write scalar loads in this way: GFX9 to GFX11. */
static const struct {
	uint8_t first, last;
} machines[] = {{0x2c, 0x39}, {0x3e, 0x47}, {0x4a, 0x4c}, {0x4f, 0x4f},
		{0x51, 0x55}, {0x58, 0x58}, {0x5f, 0x5f}};

static bool is_known(const uint8_t *elf)
{
	Elf64_Ehdr head;
	bool known = false;

	memcpy(&head, elf, sizeof(head));
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		known |= (uint8_t)head.e_flags >= machines[i].first &&
			 (uint8_t)head.e_flags <= machines[i].last;
	return known;
}

static bool fits(size_t size, uint64_t at, uint64_t bytes)
{
	return at <= size && bytes <= size - at;
}

/* The first section from `index` on, of this type (SHT_NULL: of any). */
static bool section_of(const uint8_t *elf, size_t size, uint32_t index, uint32_t type,
		       Elf64_Shdr *out)
{
	Elf64_Ehdr head;

	memcpy(&head, elf, sizeof(head));
	if (head.e_shentsize != sizeof(*out) ||
	    !fits(size, head.e_shoff, (uint64_t)head.e_shnum * sizeof(*out)))
		return false;
	for (; index < head.e_shnum; index++) {
		memcpy(out, elf + head.e_shoff + index * sizeof(*out), sizeof(*out));
		if (type == SHT_NULL || out->sh_type == type)
			return fits(size, out->sh_offset, out->sh_size);
	}
	return false;
}

static uint32_t word_at(const uint8_t *at, uint64_t index)
{
	uint32_t word;

	memcpy(&word, at + index * sizeof(word), sizeof(word));
	return word;
}

/* The hash of the System V ABI. */
static uint32_t hash_of(const char *name)
{
	uint32_t h = 0;

	for (; *name; name++) {
		h = (h << 4) + (unsigned char)*name;
		h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff;
	}
	return h;
}

static bool symbol_of(const uint8_t *elf, size_t size, const char *name, Elf64_Sym *out)
{
	Elf64_Shdr symbols, hash, strings;
	size_t length = strlen(name) + 1;
	const uint8_t *table;
	uint32_t buckets, chains, i, steps = 0;

	if (!section_of(elf, size, 0, SHT_HASH, &hash) || hash.sh_size < 8 ||
	    !section_of(elf, size, hash.sh_link, SHT_NULL, &symbols) ||
	    !section_of(elf, size, symbols.sh_link, SHT_NULL, &strings))
		return false;
	table = elf + hash.sh_offset;
	buckets = word_at(table, 0);
	chains = word_at(table, 1);
	if (!buckets || ((uint64_t)buckets + chains + 2) * 4 > hash.sh_size)
		return false;
	for (i = word_at(table, 2 + hash_of(name) % buckets); i && i < chains && steps < chains;
	     i = word_at(table, 2 + (uint64_t)buckets + i), steps++) {
		if (!fits(symbols.sh_size, (uint64_t)i * sizeof(*out), sizeof(*out)))
			return false;
		memcpy(out, elf + symbols.sh_offset + i * sizeof(*out), sizeof(*out));
		if (fits(strings.sh_size, out->st_name, length) &&
		    !memcmp(elf + strings.sh_offset + out->st_name, name, length))
			return true;
	}
	return false;
}

/* The bytes of a symbol. NULL: the file does not have them. */
static const uint8_t *bytes_of(const uint8_t *elf, size_t size, const Elf64_Sym *symbol)
{
	Elf64_Ehdr head;

	memcpy(&head, elf, sizeof(head));
	for (unsigned i = 0; i < head.e_phnum; i++) {
		uint64_t at = head.e_phoff + (uint64_t)i * sizeof(Elf64_Phdr), in;
		Elf64_Phdr p;

		if (at < head.e_phoff || !fits(size, at, sizeof(p)))
			return NULL;
		memcpy(&p, elf + at, sizeof(p));
		in = symbol->st_value - p.p_vaddr;
		if (p.p_type == PT_LOAD && symbol->st_value >= p.p_vaddr &&
		    fits(p.p_filesz, in, symbol->st_size) && fits(size, p.p_offset, p.p_filesz))
			return elf + p.p_offset + in;
	}
	return NULL;
}

/* The code, and the first of the two registers that it gets the address of the arguments in. NULL:
 * there is none. */
static const uint8_t *code_of(const uint8_t *elf, size_t size, char *name, size_t *length,
			      unsigned *base)
{
	/* Registers of the groups in front of that address */
	static const unsigned before[] = {4, 2, 2};
	size_t end = strlen(name);
	const uint8_t *descriptor;
	uint16_t has, preloaded;
	Elf64_Sym s;

	strcpy(name + end, DESCRIPTOR_SUFFIX);
	if (!symbol_of(elf, size, name, &s) || s.st_size < DESCRIPTOR_SIZE ||
	    !(descriptor = bytes_of(elf, size, &s)))
		return NULL;
	memcpy(&has, descriptor + DESCRIPTOR_REGISTERS, sizeof(has));
	memcpy(&preloaded, descriptor + DESCRIPTOR_PRELOAD, sizeof(preloaded));
	name[end] = '\0';
	if (!(has & HAS_KERNARG) || preloaded || !symbol_of(elf, size, name, &s))
		return NULL;
	*length = s.st_size;
	*base = 0;
	for (unsigned i = 0; i < 3; i++)
		*base += has & 1u << i ? before[i] : 0;
	return bytes_of(elf, size, &s);
}

bool kernel_code_read(const uint8_t *elf, size_t size, const char *name, size_t length,
		      struct kernel_loads *out)
{
	const uint8_t *code;
	char symbol[1024];
	size_t bytes;
	unsigned base;
	bool any = false;

	if (!is_known(elf) || length + sizeof(DESCRIPTOR_SUFFIX) > sizeof(symbol) ||
	    memchr(name, '\0', length))
		return false;
	memcpy(symbol, name, length);
	symbol[length] = '\0';
	code = code_of(elf, size, symbol, &bytes, &base);
	if (!code)
		return false;
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i + 1 < bytes / 4; i++) {
		uint32_t load = word_at(code, i), at = word_at(code, i + 1) & 0x1fffff;
		uint32_t kind = load >> 26, width = load >> 18 & 0xff;

		/* 1, 2, 4, 8 or 16 words; GFX9, or GFX10 and 11 */
		if ((kind != 0x30 && kind != 0x3d) || width > 4 || (load & 0x3f) != base / 2)
			continue;
		for (uint32_t n = 0; n < 1u << width && at / 4 + n < KERNEL_ARGUMENT_WORDS; n++)
			any = out->word[at / 4 + n] = true;
	}
	return any;
}

bool kernel_code_loads(const struct kernel_loads *loads, uint32_t offset, uint32_t size)
{
	bool any = false;

	for (uint64_t at = offset / 4; at * 4 < (uint64_t)offset + size; at++) {
		if (at >= KERNEL_ARGUMENT_WORDS)
			return true;
		any |= loads->word[at];
	}
	return any;
}
