/* SPDX-License-Identifier: MIT */
/*
 * Detects bypasses: ways past the shim. Unseen work makes our conclusions from the seen work wrong.
 * So the first sign of a bypass is logged, and from then on event clocks and queries prove nothing,
 * and hipFree waits for the device (ss_distrust).
 *
 * The signs in the list of loaded objects are a second HIP runtime, an object that HIP is linked
 * into statically, and an object whose references to our entries are bound to the runtime
 * (RTLD_DEEPBIND). An address that such an object gets from the loader leaves no trace in that
 * list. The shim notices its calls when a stream is used that the shim did not see created
 * (stream/timeline.c).
 *
 * Locks: none. Two threads that look at the same time find the same.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/rocm/loaded_object.h"
#include "shim/entries.h"
#include "shim/process/bypass.h"
#include "shim/process/log.h"
#include "shim/process/report.h"
#include "shim/process/service.h"

struct walk {
	int runtimes;
	/* The first runtime; valid later, too, since it is never unloaded */
	struct dl_phdr_info runtime;
	char why[512];
};

static atomic_bool table_taken;

void ss_bypass_table_taken(void)
{
	atomic_store(&table_taken, true);
}

void ss_bypass_report(const char *format, ...)
{
	static atomic_bool said;
	char what[512];
	va_list args;

	if (atomic_exchange(&said, true))
		return;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	ss_shim_log("%s: from now on event clocks and queries prove nothing, and hipFree waits",
		    what);
	ss_report_add(&somashim_report.r.bypassed);
	ss_distrust(ss_core);
}

/* ---- what an object is -------------------------------------------------- */

static bool is_us(const struct dl_phdr_info *info)
{
	return ss_elf_holds(info, (uintptr_t)&ss_bypass_report);
}

static bool is_runtime(const struct dl_phdr_info *info)
{
	struct ss_elf elf;

	return ss_elf_dynamic(info, &elf) && ss_elf_is_hip(&elf);
}

static const char *name_of(const struct dl_phdr_info *info)
{
	return info->dlpi_name[0] ? info->dlpi_name : "the program";
}

static bool is_entry(const char *name)
{
#define NAME(x) #x
#define E(kind, extra, entry, node, since, params, args) NAME(entry),
	static const char *const names[] = {SS_ENTRIES(E)};
#undef E
#undef NAME

	if (strncmp(name, "hip", 3) && strncmp(name, "_Z24hip", 7))
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* ---- an object that HIP is linked into ---------------------------------- */

/* Device code has a section of its own. Section headers are not loaded, so read the file. */
static bool has_device_code(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf64_Shdr *sections = NULL, *names;
	char *strings = NULL;
	bool found = false;
	Elf64_Ehdr head;
	size_t size;

	if (fd < 0)
		return false;
	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_shentsize != sizeof(*sections) ||
	    head.e_shstrndx >= head.e_shnum)
		goto out;
	size = (size_t)head.e_shnum * sizeof(*sections);
	sections = malloc(size);
	if (!sections || pread(fd, sections, size, (off_t)head.e_shoff) != (ssize_t)size)
		goto out;
	names = &sections[head.e_shstrndx];
	if (names->sh_size > 1 << 20 || !(strings = calloc(1, names->sh_size + 1)) ||
	    pread(fd, strings, names->sh_size, (off_t)names->sh_offset) != (ssize_t)names->sh_size)
		goto out;
	for (int i = 0; i < head.e_shnum; i++)
		found |= sections[i].sh_name < names->sh_size &&
			 !strcmp(strings + sections[i].sh_name, ".hip_fatbin");
out:
	free(strings);
	free(sections);
	close(fd);
	return found;
}

/* True once per object, because files do not change. */
static bool first_look(const struct dl_phdr_info *info)
{
	static _Atomic uint64_t known[1024];
	uint64_t key = info->dlpi_addr;

	for (const char *c = info->dlpi_name; *c; c++)
		key = (key ^ (unsigned char)*c) * 0x100000001b3;
	return atomic_exchange(&known[key >> 7 & 1023], key) != key;
}

/* One line of a process's maps: "start-end perms offset device inode path". */
struct mapped {
	unsigned long offset, inode;
	char device[16];
};

/* Is it the code of a runtime? */
static bool is_runtime_code(const char *line, struct mapped *m)
{
	const char *base = strrchr(line, '/');

	return base && strstr(line, " r-xp ") && !strncmp(base, "/libamdhip64.", 13) &&
	       sscanf(line, "%*s %*s %lx %15s %lu", &m->offset, m->device, &m->inode) == 3;
}

/* Counts the mappings of runtimes' code. The loader's list shows one namespace only; this count
 * finds a runtime that was loaded by dlmopen(), too. A tool may have changed the protection of
 * single pages, which splits the mapping. The parts of a split mapping begin at different offsets
 * of the file, two loads at the same offset. */
static int mapped_runtimes(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	struct mapped first[8], m;
	char *line = NULL; /* on the heap: a line may be longer than a small stack */
	size_t size = 0;
	int n = 0, files = 0, i;

	while (f && getline(&line, &size, f) > 0) {
		if (!is_runtime_code(line, &m))
			continue;
		for (i = 0; i < files; i++)
			if (first[i].inode == m.inode && !strcmp(first[i].device, m.device))
				break;
		if (i == files && files < 8)
			first[files++] = m;
		n += i == files || first[i].offset == m.offset;
	}
	if (f)
		fclose(f);
	free(line);
	return n;
}

/* ---- the list ----------------------------------------------------------- */

static int find_runtimes(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct walk *w = arg;

	(void)size;
	if (is_us(info) || !is_runtime(info))
		return 0;
	if (w->runtimes++ == 0) {
		w->runtime = *info;
		return 0;
	}
	snprintf(w->why, sizeof(w->why), "two HIP runtimes are loaded, %s and %s",
		 name_of(&w->runtime), name_of(info));
	return 1;
}

/* The name of the object's first reference to an entry of ours that is bound to the runtime,
 * or NULL. Sets *registers if the object hands its device code to another object's runtime. */
static const char *bound_past(const struct walk *w, const struct dl_phdr_info *info,
			      const struct ss_elf *elf, bool *registers)
{
	for (int t = 0; t < 2; t++)
		for (size_t i = 0; elf->rela[t] && i < elf->relas[t]; i++) {
			const Elf64_Rela *r = &elf->rela[t][i];
			const Elf64_Sym *s = &elf->symbols[ELF64_R_SYM(r->r_info)];
			const char *name = elf->strings + s->st_name;
			uintptr_t at;

			if (!ELF64_R_SYM(r->r_info) || s->st_shndx != SHN_UNDEF)
				continue;
			*registers |= !strcmp(name, "__hipRegisterFatBinary");
			if (!is_entry(name))
				continue;
			at = __atomic_load_n((uintptr_t *)(info->dlpi_addr + r->r_offset),
					     __ATOMIC_RELAXED);
			if (w->runtimes && ss_elf_holds(&w->runtime, at))
				return name;
		}
	return NULL;
}

static int inspect(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct walk *w = arg;
	bool registers = false;
	const char *name;
	struct ss_elf elf;

	(void)size;
	/* Another interposer has to call the runtime that is after us in the list. */
	if (is_us(info) || !ss_elf_dynamic(info, &elf) || ss_elf_exports(info, "hipMalloc"))
		return 0;
	name = bound_past(w, info, &elf, &registers);
	if (name)
		snprintf(w->why, sizeof(w->why),
			 "%s calls the runtime's %s past the shim "
			 "(RTLD_DEEPBIND? `somashim run --audit' sees such calls)",
			 name_of(info), name);
	else if (!registers && first_look(info) &&
		 has_device_code(info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe"))
		snprintf(w->why, sizeof(w->why), "%s has a HIP of its own, linked statically",
			 name_of(info));
	return w->why[0] != '\0';
}

static int count_adds(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(unsigned long long *)arg = info->dlpi_adds;
	return 1;
}

unsigned long long ss_bypass_check(void)
{
	static _Atomic unsigned long long known;
	unsigned long long adds = 0;
	struct walk w = {0};

	dl_iterate_phdr(count_adds, &adds);
	if (atomic_load(&known) == adds || ss_distrusted(ss_core))
		return adds;
	dl_iterate_phdr(find_runtimes, &w);
	if (!w.why[0] && mapped_runtimes() > 1)
		snprintf(w.why, sizeof(w.why), "two HIP runtimes are loaded, one by dlmopen()");
	if (atomic_load(&table_taken)) /* the runtime's functions lead to us */
		w.runtimes = 0;
	if (!w.why[0])
		dl_iterate_phdr(inspect, &w);
	if (w.why[0])
		ss_bypass_report("%s", w.why);
	/* This store is last: another thread must not take the objects for checked before the
	 * report. */
	atomic_store(&known, adds);
	return adds;
}

bool ss_hip_loaded(void)
{
	struct walk w = {0};

	dl_iterate_phdr(find_runtimes, &w);
	if (!w.runtimes)
		dl_iterate_phdr(inspect, &w);
	return w.runtimes || w.why[0];
}

static int find_behind(struct dl_phdr_info *info, size_t size, void *arg)
{
	bool *passed_us = arg;

	(void)size;
	if (is_us(info)) {
		*passed_us = true;
		return 0;
	}
	/* 2: a runtime in front of us stops the walk, and may call another one. */
	return is_runtime(info) ? *passed_us ? 1 : 2 : 0;
}

bool ss_hip_loaded_after_us(void)
{
	bool passed_us = false;

	return dl_iterate_phdr(find_behind, &passed_us) == 1;
}
