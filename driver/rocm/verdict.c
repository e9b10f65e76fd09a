/* SPDX-License-Identifier: MIT */
/*
 * The validity of a stored verdict. All facts that a verdict depends on form a text. The file's
 * name is a hash of the text, and the file must hold the text word for word, so a verdict for other
 * facts is not found or not trusted. No locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "driver/rocm/calls.h"
#include "driver/rocm/loaded_object.h"
#include "driver/rocm/verdict.h"
#include "driver/rocm/verdict_file.h"

#define NOTE_BUILD_ID 3

enum { UNKNOWN, KNOWN }; /* KNOWN + an enum ss_verdict */
static _Atomic unsigned char known[SS_MAX_DEVICES];

/* ---- which build of a library ------------------------------------------------ */

struct build {
	uintptr_t within; /* an address in the library */
	char id[80];
};

static void take_note(struct build *b, const ElfW(Nhdr) * note, const unsigned char *desc)
{
	size_t n = 0;

	for (size_t i = 0; i < note->n_descsz && n + 3 < sizeof(b->id); i++)
		n += (size_t)sprintf(b->id + n, "%02x", desc[i]);
}

/* Identifies a library without a build id by its file. */
static void take_file(struct build *b, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0)
		snprintf(b->id, sizeof(b->id), "file %jx %jx %jx.%lx", (uintmax_t)st.st_ino,
			 (uintmax_t)st.st_size, (uintmax_t)st.st_mtim.tv_sec,
			 (unsigned long)st.st_mtim.tv_nsec);
}

static int find_build(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct build *b = arg;

	(void)size;
	if (!ss_elf_holds(info, b->within))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + ph->p_vaddr, end = at + ph->p_memsz;

		while (ph->p_type == PT_NOTE && at + sizeof(ElfW(Nhdr)) <= end) {
			const ElfW(Nhdr) *note = (const void *)at;
			uintptr_t name = at + sizeof(*note),
				  desc = name + ((note->n_namesz + 3) & ~3u);

			at = desc + ((note->n_descsz + 3) & ~3u);
			if (note->n_type == NOTE_BUILD_ID && note->n_namesz == 4 && at <= end &&
			    !memcmp((const void *)name, "GNU", 4))
				take_note(b, note, (const void *)desc);
		}
	}
	if (!b->id[0])
		take_file(b, info->dlpi_name);
	return 1;
}

/* The text is "" if the build is unknown. */
static struct build build_of(void *function)
{
	struct build b = {.within = (uintptr_t)function};

	if (function)
		dl_iterate_phdr(find_build, &b);
	return b;
}

/* ---- the text ------------------------------------------------------------------ */

/* The first line of a file; "-" if there is none. */
static void first_line(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, out, size - 1) : -1;

	if (fd >= 0)
		close(fd);
	snprintf(out + (n > 0 ? n : 0), n > 0 ? 1 : size, "%s", n > 0 ? "" : "-");
	out[strcspn(out, "\n")] = '\0';
}

/* False: the facts that the verdict depends on are not known well enough. */
static bool describe(int dev, char *text, size_t text_size, char *name, size_t name_size)
{
	struct build hip = build_of((void *)ss_rocm.f.hipMemMap),
		     hsa = build_of((void *)ss_rocm.f.hsa_iterate_agents);
	const char *arch = ss_rocm_arch(dev), *pci = ss_rocm.pci[dev];
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
	char version[64], source[64];
	struct utsname kernel;
	int n;

	if (!hip.id[0] || !hsa.id[0] || !arch || !pci[0] || !ss_runtime()->version ||
	    uname(&kernel) != 0)
		return false;
	first_line("/sys/module/amdgpu/version", version, sizeof(version));
	first_line("/sys/module/amdgpu/srcversion", source, sizeof(source));
	n = snprintf(text, text_size,
		     "somashim %s\nhip %d %s\nhsa %s\nkernel %s %s\namdgpu %s %s\ndevice %s "
		     "%s\n",
		     SOMASHIM_VERSION, ss_runtime()->version, hip.id, hsa.id, kernel.release,
		     kernel.version, version, source, arch, pci);
	if (n <= 0 || n >= (int)text_size)
		return false;
	for (const char *s = text; *s; s++)
		hash = (hash ^ (unsigned char)*s) * 0x100000001b3u;
	snprintf(name, name_size, "verdict-%016" PRIx64, hash);
	return true;
}

static const char *const results[SS_VERDICTS] = {
	[SS_VERDICT_NONE] = "",
	[SS_VERDICT_BEGUN] = "vmm begun",
	[SS_VERDICT_AGAIN] = "vmm begun again",
	[SS_VERDICT_PASSED] = "vmm passed",
	[SS_VERDICT_FAILED] = "vmm failed",
};

static enum ss_verdict read_verdict(int dev)
{
	char key[SS_VERDICT_TEXT], name[64], result[SS_VERDICT_RESULT];

	if (!describe(dev, key, sizeof(key), name, sizeof(name)) ||
	    !ss_verdict_file_read(name, key, result))
		return SS_VERDICT_NONE;
	for (int v = SS_VERDICT_BEGUN; v < SS_VERDICTS; v++)
		if (!strcmp(result, results[v]))
			return (enum ss_verdict)v;
	return SS_VERDICT_NONE;
}

enum ss_verdict ss_rocm_verdict_again(int dev)
{
	enum ss_verdict v = read_verdict(dev);

	atomic_store(&known[dev], KNOWN + (unsigned char)v);
	return v;
}

enum ss_verdict ss_rocm_verdict(int dev)
{
	unsigned char is = atomic_load(&known[dev]);

	return is == UNKNOWN ? ss_rocm_verdict_again(dev) : (enum ss_verdict)(is - KNOWN);
}

bool ss_rocm_verdict_possible(int dev)
{
	char key[SS_VERDICT_TEXT], name[64];

	return describe(dev, key, sizeof(key), name, sizeof(name)) && ss_verdict_file_possible();
}

int ss_rocm_verdict_remember(int dev, enum ss_verdict verdict)
{
	char text[SS_VERDICT_TEXT + SS_VERDICT_RESULT], name[64];
	size_t n;
	int err;

	if (!describe(dev, text, SS_VERDICT_TEXT, name, sizeof(name)))
		return ENOTSUP;
	n = strlen(text);
	snprintf(text + n, sizeof(text) - n, "%s\n", results[verdict]);
	err = ss_verdict_file_write(name, text);
	if (!err)
		atomic_store(&known[dev], KNOWN + (unsigned char)verdict);
	return err;
}

void ss_rocm_verdict_distrust(int dev)
{
	unsigned char passed = KNOWN + SS_VERDICT_PASSED;

	(void)ss_rocm_verdict(dev);
	if (atomic_compare_exchange_strong(&known[dev], &passed, KNOWN + SS_VERDICT_FAILED))
		(void)ss_rocm_verdict_remember(dev, SS_VERDICT_FAILED);
}
