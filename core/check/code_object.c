/* SPDX-License-Identifier: MIT */
/* Bundles, ELF notes and the metadata in them. Every offset is checked against the size of its
 * container. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/check/code_object.h"
#include "core/check/kernel_code.h"
#include "core/check/msgpack.h"

#define NOTE_METADATA 32 /* NT_AMDGPU_METADATA */
#define BUNDLE_MAGIC "__CLANG_OFFLOAD_BUNDLE__"
#define PACKED_MAGIC "CCOB"
#define UNPACKED_MAX ((uint64_t)4 << 30)
/* Packing makes real code objects 4 to 30 times smaller. An image that claims more is made to
 * exhaust memory. */
#define UNPACKED_TIMES 256u
#define UNPACKED_FREE ((uint64_t)16 << 20)

struct reader {
	void (*fn)(const struct ss_kernel_layout *, void *);
	void *arg;
	const char *const *archs; /* NULL: all */
	const uint8_t *elf;       /* the file that is being read */
	size_t elf_size;
	struct ss_kernel_layout kernel;
};

static bool is(const struct msgpack_value *v, const char *text)
{
	return v->type == MSGPACK_TEXT && v->length == strlen(text) &&
	       !memcmp(v->text, text, v->length);
}

/* Reads one argument. The program does not pass arguments whose kind begins with "hidden". */
static bool read_arg(struct msgpack *m, struct ss_kernel_layout *k)
{
	struct ss_kernel_arg a = {.reads = true, .writes = true};
	struct msgpack_value map, key, v;
	bool hidden = false, known = false, constant = false, actual = false;
	bool known_access = false;

	if (!msgpack_next(m, &map) || map.type != MSGPACK_MAP)
		return false;
	for (uint64_t i = 0; i < map.number; i++) {
		struct msgpack before;

		if (!msgpack_next(m, &key))
			return false;
		before = *m;
		if (!msgpack_skip(m))
			return false;
		if (!msgpack_next(&before, &v))
			return false;
		if (is(&key, ".offset"))
			a.offset = (uint32_t)v.number;
		if (is(&key, ".size"))
			a.size = (uint32_t)v.number;
		if (is(&key, ".is_const"))
			constant = v.type == MSGPACK_OTHER && v.number;
		/* Older compilers write the second key alone, and only for arguments that are
		 * read. */
		if (is(&key, ".actual_access") || (is(&key, ".access") && !actual)) {
			actual = is(&key, ".actual_access");
			known_access = true;
			a.reads = !is(&v, "write_only");
			a.writes = !is(&v, "read_only");
		}
		if (is(&key, ".value_kind")) {
			known = true;
			hidden = v.type == MSGPACK_TEXT && v.length >= 6 &&
				 !memcmp(v.text, "hidden", 6);
			a.pointer = is(&v, "global_buffer");
		}
	}
	if (hidden)
		return true;
	if (constant && !known_access)
		a.writes = false;
	if (!known || k->count == SS_KERNEL_ARGS_MAX)
		return false;
	k->arg[k->count++] = a;
	return true;
}

/* Which pointers does the code not load, though it loads other arguments? */
static void find_idle(const struct reader *r, struct ss_kernel_layout *k)
{
	struct kernel_loads loads;
	bool some = false;

	if (!kernel_code_read(r->elf, r->elf_size, k->name, k->name_size, &loads))
		return;
	for (uint32_t i = 0; i < k->count; i++)
		some |= kernel_code_loads(&loads, k->arg[i].offset, k->arg[i].size);
	for (uint32_t i = 0; i < k->count && some; i++)
		k->arg[i].idle = k->arg[i].pointer &&
				 !kernel_code_loads(&loads, k->arg[i].offset, k->arg[i].size);
}

static bool read_kernel(struct reader *r, struct msgpack *m)
{
	struct ss_kernel_layout *k = &r->kernel;
	struct msgpack_value map, key, v;

	k->name = NULL;
	k->count = 0;
	if (!msgpack_next(m, &map) || map.type != MSGPACK_MAP)
		return false;
	for (uint64_t i = 0; i < map.number; i++) {
		if (!msgpack_next(m, &key))
			return false;
		if (is(&key, ".args")) {
			if (!msgpack_next(m, &v) || v.type != MSGPACK_LIST)
				return false;
			for (uint64_t n = 0; n < v.number; n++)
				if (!read_arg(m, k))
					return false;
		} else if (is(&key, ".name")) {
			if (!msgpack_next(m, &v) || v.type != MSGPACK_TEXT)
				return false;
			k->name = v.text;
			k->name_size = v.length;
		} else if (!msgpack_skip(m)) {
			return false;
		}
	}
	if (k->name) {
		find_idle(r, k);
		r->fn(k, r->arg);
	}
	return true;
}

static bool read_metadata(struct reader *r, const uint8_t *data, size_t size)
{
	struct msgpack m = {data, data + size};
	struct msgpack_value map, key, list;

	if (!msgpack_next(&m, &map) || map.type != MSGPACK_MAP)
		return false;
	for (uint64_t i = 0; i < map.number; i++) {
		if (!msgpack_next(&m, &key))
			return false;
		if (!is(&key, "amdhsa.kernels")) {
			if (!msgpack_skip(&m))
				return false;
			continue;
		}
		if (!msgpack_next(&m, &list) || list.type != MSGPACK_LIST)
			return false;
		for (uint64_t n = 0; n < list.number; n++)
			if (!read_kernel(r, &m))
				return false;
	}
	return true;
}

static size_t align4(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static bool read_notes(struct reader *r, const uint8_t *at, size_t size)
{
	while (size >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t name, all;

		memcpy(&note, at, sizeof(note));
		name = sizeof(note) + align4(note.n_namesz);
		all = name + align4(note.n_descsz);
		if (all < name || name > size || note.n_descsz > size - name)
			return false;
		if (note.n_type == NOTE_METADATA && note.n_namesz == 7 &&
		    !memcmp(at + sizeof(note), "AMDGPU", 7) &&
		    !read_metadata(r, at + name, note.n_descsz))
			return false;
		if (all > size)
			return true;
		at += all;
		size -= all;
	}
	return true;
}

static bool read_elf(struct reader *r, const uint8_t *image, size_t size)
{
	Elf64_Ehdr elf;
	bool good = true;

	if (size < sizeof(elf))
		return false;
	memcpy(&elf, image, sizeof(elf));
	r->elf = image;
	r->elf_size = size;
	if (memcmp(elf.e_ident, ELFMAG, SELFMAG) || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
	    elf.e_phentsize != sizeof(Elf64_Phdr))
		return false;
	for (unsigned i = 0; i < elf.e_phnum && good; i++) {
		size_t at = elf.e_phoff + i * sizeof(Elf64_Phdr);
		Elf64_Phdr header;

		if (at < elf.e_phoff || at > size || size - at < sizeof(header))
			return false;
		memcpy(&header, image + at, sizeof(header));
		if (header.p_type != PT_NOTE)
			continue;
		if (header.p_offset > size || header.p_filesz > size - header.p_offset)
			return false;
		good = read_notes(r, image + header.p_offset, header.p_filesz);
	}
	return good;
}

/* An entry of a bundle: its place, and its target. */
struct entry {
	uint64_t offset, size;
	const char *target;
	size_t length;
};

/* Takes the entry at *at of a bundle. False: there is no entry that fits in. */
static bool take_entry(const uint8_t *image, size_t size, size_t *at, struct entry *e)
{
	uint64_t words[3];

	if (size - *at < sizeof(words))
		return false;
	memcpy(words, image + *at, sizeof(words));
	*at += sizeof(words);
	if (words[2] > size - *at || words[0] > size || words[1] > size - words[0])
		return false;
	*e = (struct entry){words[0], words[1], (const char *)image + *at, words[2]};
	*at += words[2];
	return true;
}

/* Does the entry have code of one of the architectures, or (NULL) of any? A target ends with the
 * name of its architecture, and features may follow: "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+". */
static bool is_for(const struct entry *e, const uint8_t *image, const char *const *archs)
{
	/* The entry of the host is empty. */
	if (e->size <= SELFMAG || memcmp(image + e->offset, ELFMAG, SELFMAG))
		return false;
	for (; archs && *archs; archs++) {
		size_t n = strlen(*archs);

		for (size_t i = 1; i + n <= e->length; i++)
			if (!memcmp(e->target + i, *archs, n) && e->target[i - 1] == '-' &&
			    (i + n == e->length || e->target[i + n] == ':'))
				return true;
	}
	return !archs;
}

/* Reads the entries for these architectures. *there: the bundle has such entries; *any: some could
 * be read. False: the bundle is broken. */
static bool read_entries(struct reader *r, const uint8_t *image, size_t size,
			 const char *const *archs, bool *there, bool *any, size_t *length)
{
	size_t at = sizeof(BUNDLE_MAGIC) - 1 + sizeof(uint64_t);
	uint64_t count;
	struct entry e;

	if (size < at)
		return false;
	memcpy(&count, image + at - sizeof(count), sizeof(count));
	for (uint64_t i = 0; i < count; i++) {
		if (!take_entry(image, size, &at, &e))
			return false;
		if (*length < e.offset + e.size)
			*length = e.offset + e.size;
		if (!is_for(&e, image, archs))
			continue;
		*there = true;
		*any |= read_elf(r, image + e.offset, e.size);
	}
	return true;
}

static bool read_bundle(struct reader *r, const uint8_t *image, size_t size, size_t *length)
{
	bool there = false, any = false, good;

	good = read_entries(r, image, size, r->archs, &there, &any, length);
	if (good && !there && r->archs)
		good = read_entries(r, image, size, NULL, &there, &any, length);
	return good && any;
}

/* Magic, version, method, then (version 2 on) the size of the whole and the size of the unpacked
 * contents, which have 8 bytes from version 3 on, then 8 bytes of a hash. */
static bool read_packed(struct reader *r, const uint8_t *image, size_t size, ss_unpack_fn *unpack,
			size_t *length)
{
	uint16_t version, how;
	uint64_t all = size, room = 0;
	size_t word, head, unpacked = 0;
	uint8_t *out;
	bool good;

	if (size < 8)
		return false;
	memcpy(&version, image + 4, sizeof(version));
	memcpy(&how, image + 6, sizeof(how));
	word = version >= 3 ? 8 : 4;
	head = 8 + (version >= 2 ? 2 : 1) * word + 8;
	if (!unpack || version < 1 || version > 3 || how > SS_PACKED_ZSTD || size < head)
		return false;
	if (version >= 2) {
		all = 0;
		memcpy(&all, image + 8, word);
	}
	memcpy(&room, image + head - 8 - word, word);
	if (all < head || all > size || !room || room > UNPACKED_MAX ||
	    (room > UNPACKED_FREE && room / UNPACKED_TIMES > all))
		return false;
	*length = version >= 2 ? all : 0;
	/* Pages beyond the contents, which a wrong size claims, are never touched. */
	out = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		   -1, 0);
	if (out == MAP_FAILED)
		return false;
	good = unpack((enum ss_packing)how, image + head, all - head, out, room) &&
	       room >= sizeof(BUNDLE_MAGIC) - 1 &&
	       !memcmp(out, BUNDLE_MAGIC, sizeof(BUNDLE_MAGIC) - 1) &&
	       read_bundle(r, out, room, &unpacked);
	munmap(out, room);
	return good;
}

/* Reads no byte after the first that differs: `size` may be the rest of a mapping, in which the
 * program's image is shorter. */
static bool begins_with(const char *image, size_t size, const char *magic)
{
	for (size_t i = 0; magic[i]; i++)
		if (i == size || image[i] != magic[i])
			return false;
	return true;
}

bool ss_code_object_read_for(const void *image, size_t size, const char *const *archs,
			     ss_unpack_fn *unpack,
			     void (*fn)(const struct ss_kernel_layout *, void *), void *arg,
			     size_t *length)
{
	struct reader *r;
	bool good = false;

	*length = 0;
	r = malloc(sizeof(*r));
	if (!r)
		return false;
	r->fn = fn;
	r->arg = arg;
	r->archs = archs && *archs ? archs : NULL;
	if (begins_with(image, size, BUNDLE_MAGIC))
		good = read_bundle(r, image, size, length);
	else if (begins_with(image, size, PACKED_MAGIC))
		good = read_packed(r, image, size, unpack, length);
	else if (begins_with(image, size, ELFMAG))
		good = read_elf(r, image, size);
	free(r);
	return good;
}

bool ss_code_object_read(const void *image, size_t size, ss_unpack_fn *unpack,
			 void (*fn)(const struct ss_kernel_layout *, void *), void *arg)
{
	size_t length;

	return ss_code_object_read_for(image, size, NULL, unpack, fn, arg, &length);
}
