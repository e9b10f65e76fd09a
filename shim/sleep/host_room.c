/* SPDX-License-Identifier: MIT */
/*
 * Reads /proc/meminfo and the limits of cgroups.
 *
 * Locks: none.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/kernel_memory.h"
#include "shim/sleep/host_room.h"

/* Bytes that are left to others on the machine, or in the cgroup. */
#define LEAVE_MACHINE (512ull << 20)
#define LEAVE_CGROUP (64ull << 20)

/* The number behind `key` at the start of a line. False: there is none. */
static bool value_of(const char *text, const char *key, uint64_t *out)
{
	size_t n = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, n) && (line[n] == ' ' || line[n] == ':'))
			return sscanf(line + n + 1, "%" SCNu64, out) == 1;
	}
	return false;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* ---- cgroups ------------------------------------------------------------------------ */

/* The files of a version of cgroups. */
struct files {
	const char *mount; /* beside /sys/fs/cgroup */
	const char *limit[2], *used, *cache;
};

static const struct files v1 = {
	"/memory",
	{"memory.limit_in_bytes", NULL},
	"memory.usage_in_bytes",
	"total_inactive_file",
};
static const struct files v2[] = {
	{"", {"memory.max", "memory.high"}, "memory.current", "inactive_file"},
	{"/unified", {"memory.max", "memory.high"}, "memory.current", "inactive_file"},
};

/* False: there is no such file, or it names no number, as "max". */
static bool number(const char *dir, const char *name, uint64_t *out)
{
	char path[PATH_MAX], text[64];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
	       ss_kernel_file(path, text, sizeof(text)) && sscanf(text, "%" SCNu64, out) == 1;
}

/* Bytes that the cgroup in `dir` may still take. Pages of files that are not in use count as
 * free, since the kernel drops them first. UINT64_MAX: there is no limit. */
static uint64_t room_in(const char *dir, const struct files *f)
{
	uint64_t most = UINT64_MAX, limit, used, cache = 0;
	char path[PATH_MAX], text[8192];

	for (int i = 0; i < 2 && f->limit[i]; i++)
		if (number(dir, f->limit[i], &limit) && limit < most)
			most = limit;
	if (most == UINT64_MAX || !number(dir, f->used, &used))
		return UINT64_MAX;
	if (snprintf(path, sizeof(path), "%s/memory.stat", dir) < (int)sizeof(path) &&
	    ss_kernel_file(path, text, sizeof(text)))
		(void)value_of(text, f->cache, &cache);
	return minus(most, minus(used, cache));
}

/* The same for the cgroup and all above it. In a container the name may be that of the host, which
 * is not there; what limits the container is then at the mount itself. */
static uint64_t room_above(const char *root, const struct files *f, const char *name)
{
	char dir[PATH_MAX];
	uint64_t least = UINT64_MAX, room;
	int base = snprintf(dir, sizeof(dir), "%s/sys/fs/cgroup%s", root, f->mount);
	char *slash;

	if (base >= (int)sizeof(dir) || strlen(name) >= sizeof(dir) - (size_t)base)
		return UINT64_MAX;
	strcpy(dir + base, name);
	for (;;) {
		room = room_in(dir, f);
		if (room < least)
			least = room;
		slash = strrchr(dir + base, '/');
		if (!slash)
			return least;
		*slash = '\0';
	}
}

/* "5:cpu,memory:/a/b" is of version 1, "0::/a/b" of version 2. Cuts the line at its parts. */
static uint64_t room_of_line(const char *root, char *line)
{
	char *controllers = strchr(line, ':'), *name, *part, *rest;
	uint64_t a, b;

	if (!controllers || !(name = strchr(controllers + 1, ':')))
		return UINT64_MAX;
	*name++ = '\0';
	if (*name != '/')
		return UINT64_MAX;
	controllers++;
	if (!*controllers) {
		a = room_above(root, &v2[0], name);
		b = room_above(root, &v2[1], name);
		return a < b ? a : b;
	}
	for (part = strtok_r(controllers, ",", &rest); part; part = strtok_r(NULL, ",", &rest))
		if (!strcmp(part, "memory"))
			return room_above(root, &v1, name);
	return UINT64_MAX;
}

static uint64_t room_of_cgroups(const char *root)
{
	char path[PATH_MAX], text[8192], *line, *rest;
	uint64_t least = UINT64_MAX, room;

	if (snprintf(path, sizeof(path), "%s/proc/self/cgroup", root) >= (int)sizeof(path) ||
	    !ss_kernel_file(path, text, sizeof(text)))
		return UINT64_MAX;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		room = room_of_line(root, line);
		if (room < least)
			least = room;
	}
	return least;
}

/* ---- the machine --------------------------------------------------------------------- */

static uint64_t room_of_machine(const char *root)
{
	char path[PATH_MAX], text[4096];
	uint64_t kib;

	if (snprintf(path, sizeof(path), "%s/proc/meminfo", root) >= (int)sizeof(path) ||
	    !ss_kernel_file(path, text, sizeof(text)) || !value_of(text, "MemAvailable", &kib))
		return UINT64_MAX;
	return kib << 10;
}

uint64_t ss_host_room(const char *root, const char **why)
{
	uint64_t machine = room_of_machine(root), group = room_of_cgroups(root);

	if (machine != UINT64_MAX)
		machine = minus(machine, LEAVE_MACHINE);
	if (group != UINT64_MAX)
		group = minus(group, LEAVE_CGROUP);
	*why = group < machine ? "the memory limit of the process's cgroup has no room for it" :
				 "the machine has too little host memory for it";
	return group < machine ? group : machine;
}
