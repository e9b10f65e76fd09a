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

/* The arguments of a kernel, a letter each: p a pointer, i four bytes, l eight bytes, s a structure
 * of 24 bytes, h one that the compiler adds. */
static inline void put_args(struct code_writer *w, const char *args)
{
	unsigned offset = 0;

	put_byte(w, 0x90 | (unsigned)strlen(args));
	for (; *args; args++) {
		unsigned size = *args == 'i' ? 4 : *args == 's' ? 24 : 8;

		offset = (offset + (size > 4 ? 7 : 3)) & ~(size > 4 ? 7u : 3u);
		put_byte(w, 0x83);
		put_text(w, ".offset");
		put_number(w, offset);
		put_text(w, ".size");
		put_number(w, size);
		put_text(w, ".value_kind");
		put_text(w, *args == 'p' ? "global_buffer" :
			    *args == 'h' ? "hidden_global_offset_x" :
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

#endif
