/* SPDX-License-Identifier: MIT */
/* Finds the file of a module that a trace names, also if the trace comes from another machine. */
#include <elfutils/libdwelf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/regular_file.h"
#include "trace/module_file.h"

/* Opens the file if it is this build of the module. */
static int open_if_same(const struct ss_trace_module_def *def, const char *path)
{
	const void *id;
	int fd = ss_regular_open(path);

	if (fd < 0 || def->build_id_length == 0)
		return fd;
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	ssize_t length = elf ? dwelf_elf_gnu_build_id(elf, &id) : -1;
	bool same = length == def->build_id_length &&
		    memcmp(id, def->build_id, (size_t)length) == 0;
	if (elf)
		elf_end(elf);
	if (!same) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Looks for the module in one directory of the debug path. */
static int open_in(const struct ss_trace_module_def *def, const char *dir, char *path, size_t size)
{
	const char *base = strrchr(def->path, '/');
	char hex[2 * SS_TRACE_BUILD_ID_MAX + 1] = "";
	int fd = -1;

	for (uint32_t i = 0; i < def->build_id_length; i++)
		snprintf(hex + 2 * i, 3, "%02x", def->build_id[i]);
	if (def->build_id_length > 1) {
		snprintf(path, size, "%s/.build-id/%.2s/%s.debug", dir, hex, hex + 2);
		fd = open_if_same(def, path);
		if (fd < 0) {
			snprintf(path, size, "%s/.build-id/%.2s/%s", dir, hex, hex + 2);
			fd = open_if_same(def, path);
		}
	}
	if (fd < 0) {
		snprintf(path, size, "%s/%s", dir, def->path);
		fd = open_if_same(def, path);
	}
	if (fd < 0) {
		snprintf(path, size, "%s/%s", dir, base ? base + 1 : def->path);
		fd = open_if_same(def, path);
	}
	return fd;
}

int ss_module_file_open(const struct ss_trace_module_def *def, char *const *dirs, size_t count,
			char *path, size_t size, bool *rebuilt)
{
	int fd = -1;

	/* The file itself is better than a copy without code, because the file leads to its debug
	 * file. */
	if (def->path[0] == '/') {
		snprintf(path, size, "%s", def->path);
		fd = open_if_same(def, path);
	}
	for (size_t i = 0; i < count && fd < 0; i++)
		fd = open_in(def, dirs[i], path, size);
	if (fd < 0)
		fd = open_in(def, "/usr/lib/debug", path, size);
	*rebuilt = fd < 0 && def->path[0] == '/' && access(def->path, R_OK) == 0;
	return fd;
}
