/* SPDX-License-Identifier: MIT */
/*
 * Finds libraries that register memory with network cards by themselves. The kernel's peer memory
 * (amdgpu with ib_core) needs no export: ibv_reg_mr() takes the pointer.
 *
 * Locks: the loader's, in dl_iterate_phdr.
 */
#include <dirent.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "shim/sleep/stays.h"

/* `cards`: a directory of /sys that lists the cards; without one nothing can be registered. NULL:
 * the library has many ways, so it counts always. */
static const struct registrar {
	const char *library, *cards, *why;
} registrars[] = {
	{"libuct", NULL, "UCX is loaded, which may have registered memory of the device"},
	{"libibverbs", "/sys/class/infiniband",
	 "libibverbs is loaded, and a network card may write to memory that is registered with it"},
	{"libcxi", "/sys/class/cxi",
	 "libcxi is loaded, and a network card may write to memory that is registered with it"},
};

static bool has_cards(const char *root, const char *directory)
{
	char path[PATH_MAX];
	struct dirent *e;
	bool any = false;
	DIR *d;

	if (!directory)
		return true;
	if (snprintf(path, sizeof(path), "%s%s", root, directory) >= (int)sizeof(path) ||
	    !(d = opendir(path)))
		return false;
	while (!any && (e = readdir(d)))
		any = e->d_name[0] != '.';
	closedir(d);
	return any;
}

/* "/opt/lib/libuct.so.0", and "libuct-5e8f.so.0.0.0" of a wheel. */
static bool is_library(const char *path, const char *name)
{
	const char *slash = path ? strrchr(path, '/') : NULL, *file = slash ? slash + 1 : path;
	size_t n = strlen(name);

	return file && !strncmp(file, name, n) && (file[n] == '.' || file[n] == '-');
}

/* Notes in *arg, a bit each, which libraries are loaded. */
static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	unsigned *loaded = arg;

	(void)size;
	for (unsigned i = 0; i < sizeof(registrars) / sizeof(registrars[0]); i++)
		if (is_library(info->dlpi_name, registrars[i].library))
			*loaded |= 1u << i;
	return 0;
}

const char *ss_sleep_registered(const char *root)
{
	unsigned loaded = 0;

	dl_iterate_phdr(look, &loaded);
	for (unsigned i = 0; i < sizeof(registrars) / sizeof(registrars[0]); i++)
		if (loaded >> i & 1 && has_cards(root, registrars[i].cards))
			return registrars[i].why;
	return NULL;
}
