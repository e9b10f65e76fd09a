/* SPDX-License-Identifier: MIT */
/*
 * The layouts of kernels by name. Two code objects may have kernels of one name, of several devices
 * or of several versions of a module: if their layouts differ, the kernel counts as unknown.
 *
 * Locks: `lock`, a leaf.
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/base/regular_file.h"
#include "core/check/code_object.h"
#include "driver/rocm/rocm.h"
#include "shim/check/checker.h"
#include "shim/check/kernel_args.h"
#include "shim/check/unpack.h"
#include "shim/process/real.h"
#include "trace/cut_guard.h"

struct kernel {
	UT_hash_handle hh;
	bool ambiguous;
	/* The file from which the layout was first read, as the linker knows it; NULL: none */
	const void *from;
	uint32_t count;
	struct ss_kernel_arg *arg;
	char name[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel *kernels;
/* Number of objects that had been loaded at the last look */
static unsigned long long looked_at = ~0ull;

/* Files that were read because one of their kernels was launched. */
struct file {
	const void *map;
	unsigned long long adds; /* number of objects that had been loaded by then */
	UT_hash_handle hh;
};
static struct file *files;

/* ---- the table ------------------------------------------------------------------ */

static bool same_layout(const struct kernel *k, const struct ss_kernel_layout *l)
{
	bool same = k->count == l->count;

	/* Fields are compared, not memory: a structure may have bytes that belong to no field. */
	for (uint32_t i = 0; same && i < k->count; i++)
		same = k->arg[i].offset == l->arg[i].offset && k->arg[i].size == l->arg[i].size &&
		       k->arg[i].pointer == l->arg[i].pointer;
	return same;
}

/* The lock is held. */
static void kernel_add(const struct ss_kernel_layout *l, void *from)
{
	size_t bytes = l->count * sizeof(l->arg[0]);
	struct kernel *k = NULL;

	HASH_FIND(hh, kernels, l->name, l->name_size, k);
	if (k) {
		k->ambiguous |= !same_layout(k, l);
		for (uint32_t i = 0; i < k->count && !k->ambiguous; i++) {
			k->arg[i].reads |= l->arg[i].reads;
			k->arg[i].writes |= l->arg[i].writes;
			k->arg[i].idle |= l->arg[i].idle;
		}
		return;
	}
	k = calloc(1, sizeof(*k) + l->name_size + 1);
	if (!k)
		return;
	k->arg = malloc(bytes ? bytes : 1);
	if (!k->arg) {
		free(k);
		return;
	}
	memcpy(k->name, l->name, l->name_size);
	memcpy(k->arg, l->arg, bytes);
	k->count = l->count;
	k->from = from;
	HASH_ADD_KEYPTR(hh, kernels, k->name, l->name_size, k);
	if (!SS_HASH_HAS(k)) {
		free(k->arg);
		free(k);
	}
}

/* The architectures of the devices. The lock is held. */
static const char *const *archs(void)
{
	static const char *list[SS_MAX_DEVICES + 1];
	int count = 0;

	for (int dev = 0; !list[0] && dev < ss_rocm_devices; dev++)
		if (!ss_rocm_arch(dev))
			return NULL; /* any architecture is possible */
	for (int dev = 0; !list[0] && dev < ss_rocm_devices; dev++)
		list[count++] = ss_rocm_arch(dev);
	return list;
}

/* The number of readable bytes from the address on: a loaded image need not be code, and its own
 * sizes may be wrong. 0 also without /proc. */
static size_t readable(const void *from)
{
	FILE *maps = from ? fopen("/proc/self/maps", "re") : NULL;
	uintptr_t begin, end, upto = (uintptr_t)from;
	char *line = NULL, may_read;
	size_t room = 0;

	while (maps && getline(&line, &room, maps) > 0)
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %c", &begin, &end, &may_read) == 3 &&
		    may_read == 'r' && begin <= upto && upto < end)
			upto = end;
	free(line);
	if (maps)
		fclose(maps);
	return upto - (uintptr_t)from;
}

void ss_check_code(const void *image)
{
	/* __CudaFatBinary: magic, version, address of the bundle. */
	struct {
		uint32_t magic, version;
		const void *binary;
	} wrapped;

	size_t size = readable(image), length;

	/* Each read goes only as far as the bytes before it allow, because the image may be a short
	 * string. */
	if (size < sizeof(wrapped.magic))
		return;
	memcpy(&wrapped.magic, image, sizeof(wrapped.magic));
	if (wrapped.magic == 0x48495046 && size >= sizeof(wrapped)) { /* HIPF */
		memcpy(&wrapped, image, sizeof(wrapped));
		image = wrapped.binary;
		size = readable(image);
	}
	pthread_mutex_lock(&lock);
	(void)ss_code_object_read_for(image, size, archs(), ss_unpack, kernel_add, NULL, &length);
	pthread_mutex_unlock(&lock);
}

/* ---- files ----------------------------------------------------------------------- */

/* Bundles follow each other in .hip_fatbin, each at a multiple of a page. The lock is held. */
static void section_read(const uint8_t *data, size_t size, const void *map)
{
	size_t length;

	for (size_t at = 0; at + 32 < size; at += length) {
		(void)ss_code_object_read_for(data + at, size - at, archs(), ss_unpack, kernel_add,
					      (void *)(uintptr_t)map, &length);
		length = length ? (length + 4095) & ~(size_t)4095 : 4096;
		if (length > size - at)
			return;
	}
}

/* Calls section_read() for each .hip_fatbin of a mapped ELF file. */
static void sections_read(const uint8_t *file, size_t size, const void *map)
{
	const Elf64_Shdr *headers, *names;
	Elf64_Ehdr elf;

	memcpy(&elf, file, sizeof(elf));
	if (memcmp(elf.e_ident, ELFMAG, SELFMAG) || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
	    elf.e_shentsize != sizeof(*headers) || elf.e_shoff % _Alignof(Elf64_Shdr) ||
	    elf.e_shoff > size || elf.e_shnum > (size - elf.e_shoff) / sizeof(*headers) ||
	    elf.e_shstrndx >= elf.e_shnum)
		return;
	headers = (const void *)(file + elf.e_shoff);
	names = &headers[elf.e_shstrndx];
	if (names->sh_offset > size || names->sh_size > size - names->sh_offset)
		return;
	for (unsigned i = 0; i < elf.e_shnum; i++) {
		const Elf64_Shdr *h = &headers[i];

		if (h->sh_type == SHT_NOBITS || h->sh_name >= names->sh_size ||
		    names->sh_size - h->sh_name < sizeof(".hip_fatbin") ||
		    memcmp(file + names->sh_offset + h->sh_name, ".hip_fatbin",
			   sizeof(".hip_fatbin")) ||
		    h->sh_offset > size || h->sh_size > size - h->sh_offset)
			continue;
		section_read(file + h->sh_offset, h->sh_size, map);
	}
}

/* Reads a file that is a code object, or contains some; `map`: the file as the linker knows it. */
static void file_read(const char *path, bool whole, const void *map)
{
	int fd = ss_regular_open(path);
	struct stat st;
	size_t length;
	void *file;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && st.st_size > (off_t)sizeof(Elf64_Ehdr)) {
		file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (file != MAP_FAILED) {
			ss_cut_guard_mapping(file, (size_t)st.st_size);
			if (whole)
				(void)ss_code_object_read_for(file, (size_t)st.st_size, archs(),
							      ss_unpack, kernel_add, NULL, &length);
			else
				sections_read(file, (size_t)st.st_size, map);
			ss_cut_guard_end(file);
			munmap(file, (size_t)st.st_size);
		}
	}
	close(fd);
}

void ss_check_code_file(const char *path)
{
	pthread_mutex_lock(&lock);
	if (path)
		file_read(path, true, NULL);
	pthread_mutex_unlock(&lock);
}

struct paths {
	char **path;
	size_t count;
	unsigned long long adds;
};

static int collect(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct paths *p = arg;
	char **more = realloc(p->path, (p->count + 1) * sizeof(*more));
	const char *name = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";

	(void)size;
	p->adds = info->dlpi_adds;
	if (!more)
		return 1;
	p->path = more;
	p->path[p->count] = strdup(name);
	p->count += p->path[p->count] != NULL;
	return 0;
}

static int count_objects(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(unsigned long long *)arg = info->dlpi_adds;
	return 1;
}

/* Reads the files that were loaded since the last look. Files that were read before only repeat
 * their facts. */
static void look(void)
{
	unsigned long long adds = 0;
	struct paths p = {0};

	dl_iterate_phdr(count_objects, &adds);
	pthread_mutex_lock(&lock);
	if (adds != looked_at) {
		pthread_mutex_unlock(&lock);
		/* Not under `lock`: this call takes the linker's lock */
		dl_iterate_phdr(collect, &p);
		pthread_mutex_lock(&lock);
		looked_at = p.adds;
		for (size_t i = 0; i < p.count; i++)
			file_read(p.path[i], false, NULL);
	}
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < p.count; i++)
		free(p.path[i]);
	free(p.path);
}

/* ---- launches ---------------------------------------------------------------------- */

static const char *name_of(const void *function, bool host)
{
	const char *name = NULL;

	ss_enter();
	if (host && ss_real.hipKernelNameRefByPtr)
		name = ss_real.hipKernelNameRefByPtr(function, NULL);
	else if (!host && ss_real.hipKernelNameRef)
		name = ss_real.hipKernelNameRef((hipFunction_t)(uintptr_t)function);
	ss_leave();
	return name;
}

bool ss_kernel_is_host(const void *function)
{
	const char *name = function ? name_of(function, true) : NULL;

	return name && name[0];
}

/* Reads the file of a host function, once. Returns that file, as the linker knows it. */
static const void *look_beside(const void *function)
{
	unsigned long long adds = 0;
	struct link_map *map = NULL;
	struct file *f = NULL;
	const void *key;
	Dl_info info;

	if (!dladdr1(function, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return NULL;
	key = map;
	dl_iterate_phdr(count_objects, &adds);
	pthread_mutex_lock(&lock);
	HASH_FIND_PTR(files, &key, f);
	/* Another file may have taken its place since. */
	if (!f || f->adds != adds)
		file_read(map->l_name[0] ? map->l_name : "/proc/self/exe", false, map);
	if (!f && (f = calloc(1, sizeof(*f)))) {
		f->map = key;
		HASH_ADD_PTR(files, map, f);
		if (!SS_HASH_HAS(f)) {
			free(f);
			f = NULL;
		}
	}
	if (f)
		f->adds = adds;
	pthread_mutex_unlock(&lock);
	return map;
}

static struct kernel *kernel_find(const char *name)
{
	struct kernel *k = NULL;

	pthread_mutex_lock(&lock);
	HASH_FIND(hh, kernels, name, strlen(name), k);
	pthread_mutex_unlock(&lock);
	return k;
}

/* The layout of a kernel, whose record is never freed. NULL: unknown. The file of a host function
 * has its layout, so large libraries whose kernels are never launched need not be read. */
static const struct kernel *kernel_of(const void *function, bool host)
{
	const char *name = function ? name_of(function, host) : NULL;
	const void *file;
	struct kernel *k;

	if (!name)
		return NULL;
	file = host ? look_beside(function) : NULL;
	k = file ? kernel_find(name) : NULL;
	if (!k || k->from != file) {
		look();
		k = kernel_find(name);
	}
	return k && !k->ambiguous ? k : NULL;
}

/* The buffer of HIP_LAUNCH_PARAM_BUFFER_POINTER, and its size. */
static const char *packed_of(void *const *extra, size_t *size)
{
	const char *buffer = NULL;

	*size = 0;
	for (; extra && *extra != HIP_LAUNCH_PARAM_END; extra += 2)
		if (*extra == HIP_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == HIP_LAUNCH_PARAM_BUFFER_SIZE)
			*size = *(const size_t *)extra[1];
		else
			return NULL;
	return buffer;
}

/* Does the kernel surely use this argument? It does if its code may load it, and if it has no other
 * argument with the same access (only reads, or only writes). A kernel with more than two pointers
 * may have some that it seldom uses. */
static bool is_sole(const struct kernel *k, const struct ss_kernel_arg *a)
{
	unsigned same = 0, pointers = 0;

	for (uint32_t i = 0; i < k->count; i++) {
		pointers += k->arg[i].pointer;
		same += k->arg[i].pointer && k->arg[i].reads == a->reads &&
			k->arg[i].writes == a->writes;
	}
	return same == 1 && pointers <= 2;
}

bool ss_kernel_args(const void *function, bool host, void *const *args, void *const *extra,
		    void (*fn)(const struct ss_kernel_word *word, void *arg), void *arg)
{
	const struct kernel *k = kernel_of(function, host);
	const char *packed;
	size_t packed_size;

	if (!k)
		return false;
	packed = packed_of(extra, &packed_size);
	if (k->count && !args && !packed)
		return false;
	for (uint32_t i = 0; i < k->count; i++) {
		const struct ss_kernel_arg *a = &k->arg[i];
		const char *value = packed ? packed + a->offset : args[i];

		if (!value ||
		    (packed && (a->offset > packed_size || a->size > packed_size - a->offset)))
			continue; /* the launch fails */
		for (uint32_t at = 0; at + sizeof(void *) <= a->size; at += sizeof(void *)) {
			struct ss_kernel_word word = {.pointer = a->pointer && !a->idle,
						      .reads = a->reads,
						      .writes = a->writes,
						      .sole = a->pointer && is_sole(k, a),
						      .kernel = k->name,
						      .argument = i + 1,
						      .at = at};

			memcpy(&word.value, value + at, sizeof(word.value));
			fn(&word, arg);
		}
	}
	return true;
}
