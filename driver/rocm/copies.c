/* SPDX-License-Identifier: MIT */
/* Finds other copies of this library. No lock of its own. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>

#include "driver/rocm/copies.h"
#include "driver/rocm/loaded_object.h"

#define COPIES 8 /* further copies are ignored */

__attribute__((visibility("default"))) extern const char somashim_version[];
const char somashim_version[] = SOMASHIM_VERSION;

struct copies {
	struct {
		const char *path, *version;
	} copy[COPIES];
	int count, us; /* number of copies; our place among them */
};

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct copies *c = arg;
	struct ss_elf elf;

	(void)size;
	if (c->count == COPIES || !ss_elf_dynamic(info, &elf) || !ss_elf_is_copy(&elf))
		return 0;
	if (ss_elf_holds(info, (uintptr_t)&look))
		c->us = c->count;
	c->copy[c->count].path = info->dlpi_name;
	c->copy[c->count].version = (const char *)ss_elf_address(&elf, "somashim_version",
								 STT_OBJECT);
	c->count++;
	return 0;
}

bool ss_copy_aside(void)
{
	static atomic_int known; /* 1: no, 2: yes. No object is ever added in front of us. */
	int is = atomic_load_explicit(&known, memory_order_relaxed);

	if (!is) {
		struct copies c = {0};

		dl_iterate_phdr(look, &c);
		is = c.us > 0 ? 2 : 1;
		atomic_store_explicit(&known, is, memory_order_relaxed);
	}
	return is == 2;
}

static const char *version_of(const struct copies *c, int i)
{
	return c->copy[i].version ? c->copy[i].version : "an older version";
}

void ss_copies_tell(void (*tell)(const char *, const char *, const char *, const char *))
{
	struct copies c = {0};

	dl_iterate_phdr(look, &c);
	/* A copy in front of us tells the user, if that copy knows of copies. */
	for (int i = 0; i < c.us; i++)
		if (c.copy[i].version)
			return;
	for (int i = 1; i < c.count; i++)
		tell(c.copy[0].path, version_of(&c, 0), c.copy[i].path, version_of(&c, i));
}
