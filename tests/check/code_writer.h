/* SPDX-License-Identifier: MIT */
/* Writes small code objects for tests: an ELF file with one note, the metadata of kernels. */
#ifndef TEST_CHECK_CODE_WRITER_H
#define TEST_CHECK_CODE_WRITER_H

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct code_writer {
	uint8_t data[8192];
	size_t size;
};

static inline void put_byte(struct code_writer *w, unsigned byte)
{
	w->data[w->size++] = (uint8_t)byte;
}

static inline void put_text(struct code_writer *w, const char *text)
{
	put_byte(w, 0xd9);
	put_byte(w, (unsigned)strlen(text));
	memcpy(w->data + w->size, text, strlen(text));
	w->size += strlen(text);
}

static inline void put_number(struct code_writer *w, unsigned n)
{
	put_byte(w, 0xcd);
	put_byte(w, n >> 8);
	put_byte(w, n & 0xff);
}

/* The arguments of a kernel, a letter each: p a pointer, r one that is only read, c one to what is
 * constant, q one that is only read in the words of older compilers, w one that is only written, i
 * four bytes, l eight bytes, s a structure of 24 bytes, h one that the compiler adds. */
static inline void put_args(struct code_writer *w, const char *args)
{
	unsigned offset = 0;

	put_byte(w, 0x90 | (unsigned)strlen(args));
	for (; *args; args++) {
		unsigned size = *args == 'i' ? 4 : *args == 's' ? 24 : 8;

		offset = (offset + (size > 4 ? 7 : 3)) & ~(size > 4 ? 7u : 3u);
		put_byte(w, strchr("rcqw", *args) ? 0x84 : 0x83);
		if (*args == 'c') {
			put_text(w, ".is_const");
			put_byte(w, 0xc3);
		} else if (strchr("rqw", *args)) {
			put_text(w, *args == 'q' ? ".access" : ".actual_access");
			put_text(w, *args == 'w' ? "write_only" : "read_only");
		}
		put_text(w, ".offset");
		put_number(w, offset);
		put_text(w, ".size");
		put_number(w, size);
		put_text(w, ".value_kind");
		put_text(w, strchr("prcqw", *args) ? "global_buffer" :
			    *args == 'h'           ? "hidden_global_offset_x" :
						     "by_value");
		offset += size;
	}
}

/* `kernels` is a list of names and arguments that NULL ends. Returns the image. */
static inline const void *code_object(struct code_writer *w, const char *const *kernels)
{
	Elf64_Phdr note = {.p_type = PT_NOTE, .p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr)};
	Elf64_Ehdr elf = {.e_type = ET_DYN,
			  .e_machine = 224,
			  .e_version = 1,
			  .e_ehsize = sizeof(elf),
			  .e_phoff = sizeof(elf),
			  .e_phentsize = sizeof(note),
			  .e_phnum = 1};
	Elf64_Nhdr head = {.n_namesz = 7, .n_type = 32};
	size_t begin = note.p_offset + sizeof(head) + 8;
	unsigned count = 0;

	memset(w, 0, sizeof(*w));
	memcpy(elf.e_ident, ELFMAG, SELFMAG);
	elf.e_ident[EI_CLASS] = ELFCLASS64;
	elf.e_ident[EI_DATA] = ELFDATA2LSB;
	while (kernels[2 * count])
		count++;
	w->size = begin;
	put_byte(w, 0x82);
	put_text(w, "amdhsa.version");
	put_byte(w, 0x92);
	put_byte(w, 1);
	put_byte(w, 1);
	put_text(w, "amdhsa.kernels");
	put_byte(w, 0x90 | count);
	for (unsigned i = 0; i < count; i++) {
		put_byte(w, 0x83);
		put_text(w, ".name");
		put_text(w, kernels[2 * i]);
		put_text(w, ".kernarg_segment_size");
		put_number(w, 256);
		put_text(w, ".args");
		put_args(w, kernels[2 * i + 1]);
	}
	head.n_descsz = (uint32_t)(w->size - begin);
	w->size = (w->size + 3) & ~(size_t)3;
	note.p_filesz = w->size - note.p_offset;
	elf.e_shoff = w->size; /* the section table stands at the end, and is empty */
	memcpy(w->data, &elf, sizeof(elf));
	memcpy(w->data + sizeof(elf), &note, sizeof(note));
	memcpy(w->data + note.p_offset, &head, sizeof(head));
	memcpy(w->data + note.p_offset + sizeof(head), "AMDGPU", 7);
	return w->data;
}

/* ---- bundles ---------------------------------------------------------------------- */

/* A bundle of clang: the empty entry of the host, and code objects for architectures; `archs` ends
 * with NULL. Returns its size. */
static inline size_t code_bundle_of(uint8_t *out, const struct code_writer *w,
				    const char *const *archs)
{
	static const char host[] = "host-x86_64-unknown-linux--";
	uint64_t entry[3] = {4096, 0, sizeof(host) - 1}, count = 1;
	size_t at = 32, end = 4096;

	memset(out, 0, 4096);
	memcpy(out, "__CLANG_OFFLOAD_BUNDLE__", 24);
	memcpy(out + at, entry, sizeof(entry));
	memcpy(out + at + 24, host, entry[2]);
	at += 24 + entry[2];
	for (; archs[count - 1]; count++, w++) {
		char target[96];

		snprintf(target, sizeof(target), "hipv4-amdgcn-amd-amdhsa--%s", archs[count - 1]);
		entry[0] = end;
		entry[1] = w->size;
		entry[2] = strlen(target);
		memcpy(out + at, entry, sizeof(entry));
		memcpy(out + at + 24, target, entry[2]);
		at += 24 + entry[2];
		memcpy(out + end, w->data, w->size);
		end += w->size;
	}
	memcpy(out + 24, &count, 8);
	return end;
}

static inline size_t code_bundle(uint8_t *out, const struct code_writer *w)
{
	return code_bundle_of(out, w, (const char *const[]){"gfx90a", NULL});
}

/* A stream of zlib with one block, which is stored as it is. */
static inline size_t pack_zlib(uint8_t *out, const uint8_t *data, size_t size)
{
	uint32_t a = 1, b = 0;
	uint8_t head[] = {0x78, 0x01, 1, size & 0xff, size >> 8, ~size & 0xff, ~size >> 8 & 0xff};

	for (size_t i = 0; i < size; i++) {
		a = (a + data[i]) % 65521;
		b = (b + a) % 65521;
	}
	memcpy(out, head, sizeof(head));
	memcpy(out + sizeof(head), data, size);
	out += sizeof(head) + size;
	out[0] = b >> 8;
	out[1] = b & 0xff;
	out[2] = a >> 8;
	out[3] = a & 0xff;
	return sizeof(head) + size + 4;
}

/* A frame of zstd with one block, which is stored as it is. */
static inline size_t pack_zstd(uint8_t *out, const uint8_t *data, size_t size)
{
	uint32_t whole = (uint32_t)size, block = whole << 3 | 1;
	static const uint8_t head[] = {0x28, 0xb5, 0x2f, 0xfd, 0xa0};

	memcpy(out, head, sizeof(head));
	memcpy(out + 5, &whole, 4);
	memcpy(out + 9, &block, 3);
	memcpy(out + 12, data, size);
	return 12 + size;
}

/* A compressed bundle as clang writes it: version 1, 2 or 3; zstd or zlib. Returns its size. */
static inline size_t code_packed(uint8_t *out, const struct code_writer *w, unsigned version,
				 int zstd)
{
	static uint8_t bundle[16384];
	size_t size = code_bundle(bundle, w), word = version < 3 ? 4 : 8;
	size_t head = 8 + (version < 2 ? 1 : 2) * word + 8, all;

	memset(out, 0, head);
	memcpy(out, "CCOB", 4);
	out[4] = (uint8_t)version;
	out[6] = zstd ? 1 : 0;
	all = head +
	      (zstd ? pack_zstd(out + head, bundle, size) : pack_zlib(out + head, bundle, size));
	if (version >= 2)
		memcpy(out + 8, &all, word);
	memcpy(out + head - 8 - word, &size, word);
	return all;
}

#endif
