/* SPDX-License-Identifier: MIT */
/*
 * Explains why a HIP runtime finds no device, by a list of checks from the hardware up to the
 * runtime. The first check that finds something wrong gives the reason.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/no_device.h"
#include "cli/plural.h"

#define AMD 0x1002
#define TARGETS 16

/* Facts about the machine that the checks use. */
struct look {
	const char *root, *library;
	int devices;              /* that the kernel offers for compute */
	char target[TARGETS][16]; /* as "gfx90a"; "": the kernel does not say */
	char *out;
};

__attribute__((format(printf, 2, 3))) static bool found(struct look *l, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(l->out, SS_NO_DEVICE_BYTES, format, args);
	va_end(args);
	return true;
}

/* ---- files below the root ------------------------------------------------ */

static const char *at(const struct look *l, const char *path, char full[PATH_MAX])
{
	snprintf(full, PATH_MAX, "%s%s", l->root, path);
	return full;
}

static bool exists(const struct look *l, const char *path)
{
	char full[PATH_MAX];

	return access(at(l, path, full), F_OK) == 0;
}

/* The beginning of the file, as text; "" if it cannot be read. */
static void read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

static void find_files(const struct look *l, const char *pattern, glob_t *g)
{
	char full[PATH_MAX];

	memset(g, 0, sizeof(*g));
	(void)glob(at(l, pattern, full), 0, NULL, g);
}

/* 0: the program may use this device file, else the error. */
static int open_error(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), error = fd < 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	return error;
}

static bool in_container(const struct look *l)
{
	static const char *const names[] = {"docker", "kubepods", "libpod", "containerd", "lxc"};
	char full[PATH_MAX], text[4096];
	bool is = exists(l, "/.dockerenv") || exists(l, "/run/.containerenv") ||
		  exists(l, "/run/systemd/container");

	read_text(at(l, "/proc/1/cgroup", full), text, sizeof(text));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		is |= strstr(text, names[i]) != NULL;
	return is;
}

/* ---- checks --------------------------------------------------------------- */

/* Is a display controller or an accelerator of AMD there? True if that is not known either. */
static bool has_gpu(const struct look *l)
{
	char path[PATH_MAX + 16], text[32];
	bool has = false;
	glob_t g;

	find_files(l, "/sys/bus/pci/devices/*", &g);
	for (size_t i = 0; i < g.gl_pathc && !has; i++) {
		snprintf(path, sizeof(path), "%s/vendor", g.gl_pathv[i]);
		read_text(path, text, sizeof(text));
		if (strtoul(text, NULL, 16) != AMD)
			continue;
		snprintf(path, sizeof(path), "%s/class", g.gl_pathv[i]);
		read_text(path, text, sizeof(text));
		unsigned long class = strtoul(text, NULL, 16) >> 16;
		has = class == 0x03 || class == 0x12;
	}
	has |= !g.gl_pathc;
	globfree(&g);
	return has;
}

static bool kfd_missing(struct look *l)
{
	if (exists(l, "/dev/kfd"))
		return false;
	if (!has_gpu(l))
		return found(l, "this machine has no GPU of AMD on its PCI bus");
	if (!exists(l, "/sys/module/amdgpu"))
		return found(l,
			     "/dev/kfd is missing, because the kernel module amdgpu is not "
			     "loaded%s",
			     in_container(l) ? " on the container's host" : "");
	if (in_container(l))
		return found(l, "/dev/kfd is missing in this container: start it with "
				"--device=/dev/kfd --device=/dev/dri");
	return found(l, "/dev/kfd is missing, although the kernel module amdgpu is loaded (a "
			"kernel without CONFIG_HSA_AMD, or a GPU that it does not offer for "
			"compute)");
}

/* Says why a device file cannot be opened. */
static bool refused(struct look *l, const char *path, int error)
{
	const char *name = path + strlen(l->root);
	struct stat st;

	if (error == EPERM && in_container(l))
		return found(l,
			     "%s cannot be opened: this container is not allowed to use it "
			     "(start it with --device=%s)",
			     name, name);
	if (error != EACCES || stat(path, &st) != 0)
		return found(l, "%s cannot be opened: %s", name, strerror(error));
	struct group *group = getgrgid(st.st_gid);
	if (group)
		return found(l,
			     "%s cannot be opened: it is for the group %s (%u), which this "
			     "process is not in%s",
			     name, group->gr_name, (unsigned)st.st_gid,
			     in_container(l) ? " (start the container with --group-add)" : "");
	return found(l,
		     "%s cannot be opened: it is for the group with the number %u, which this "
		     "process is not in%s",
		     name, (unsigned)st.st_gid,
		     in_container(l) ? " (start the container with --group-add)" : "");
}

static bool kfd_refused(struct look *l)
{
	char full[PATH_MAX];
	int error = open_error(at(l, "/dev/kfd", full));

	return error && refused(l, full, error);
}

/* One render node that can be opened is enough. */
static bool render_nodes(struct look *l)
{
	int error = ENOENT;
	bool is;
	glob_t g;

	find_files(l, "/dev/dri/renderD*", &g);
	for (size_t i = 0; i < g.gl_pathc && error; i++)
		error = open_error(g.gl_pathv[i]);
	if (!error)
		is = false;
	else if (g.gl_pathc)
		is = refused(l, g.gl_pathv[0], open_error(g.gl_pathv[0]));
	else
		is = found(l, "/dev/kfd is there, but no /dev/dri/renderD*%s",
			   in_container(l) ? ": start the container with --device=/dev/dri" : "");
	globfree(&g);
	return is;
}

static unsigned long property(const char *text, const char *name)
{
	const char *line = strstr(text, name);

	return line ? strtoul(line + strlen(name), NULL, 10) : 0;
}

/* Processors have nodes, too; those have no SIMD units. */
static bool topology(struct look *l)
{
	char text[4096];
	glob_t g;

	find_files(l, "/sys/class/kfd/kfd/topology/nodes/*/properties", &g);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		read_text(g.gl_pathv[i], text, sizeof(text));
		/* 90010: gfx90a */
		unsigned long version = property(text, "gfx_target_version ");
		if (!property(text, "simd_count "))
			continue;
		if (version && l->devices < TARGETS) {
			snprintf(l->target[l->devices], sizeof(l->target[0]), "gfx%lu%lx%lx",
				 version / 10000 % 100, version / 100 % 100, version % 100);
		}
		l->devices++;
	}
	bool none = g.gl_pathc && !l->devices;
	globfree(&g);
	return none && found(l, "the kernel offers no GPU for compute in "
				"/sys/class/kfd/kfd/topology/nodes");
}

/* The number of `devices` that a list leaves visible. A runtime reads the list up to the first
 * number that names no device. A name (GPU-...) always counts. */
static int left(const char *list, int devices)
{
	int n = 0;

	while (*list && n < devices) {
		char *end;
		long number = strtol(list, &end, 10);
		if (strncmp(list, "GPU-", 4) != 0 &&
		    (end == list || number < 0 || number >= devices))
			break;
		n++;
		list += strcspn(list, ",");
		list += *list == ',';
	}
	return n;
}

static bool hidden(struct look *l)
{
	static const char *const names[] = {
		"ROCR_VISIBLE_DEVICES",
		"HIP_VISIBLE_DEVICES",
		"CUDA_VISIBLE_DEVICES",
		"GPU_DEVICE_ORDINAL",
	};
	int devices = l->devices ? l->devices : INT_MAX;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *list = getenv(names[i]);
		if (!list)
			continue;
		devices = left(list, devices);
		if (!devices)
			return found(l, "%s='%.64s' leaves no device", names[i], list);
	}
	return false;
}

/* Does the HSA runtime beside this HIP runtime know the GPU? Then its name is in the file. */
static bool knows(const char *hsa, const char *target)
{
	int fd = open(hsa, O_RDONLY | O_CLOEXEC);
	size_t length = strlen(target), kept = 0;
	bool is = fd < 0;
	char text[65536]; /* begins with the end of the piece before */
	ssize_t n;

	while (!is && (n = read(fd, text + kept, sizeof(text) - kept)) > 0) {
		size_t size = kept + (size_t)n;
		is = memmem(text, size, target, length);
		kept = size < length ? size : length - 1;
		memmove(text, text + size - kept, kept);
	}
	if (fd >= 0)
		close(fd);
	return is;
}

static bool other_target(struct look *l)
{
	const char *slash = l->library ? strrchr(l->library, '/') : NULL;
	char path[PATH_MAX];

	for (int i = 0; slash && i < l->devices && i < TARGETS; i++) {
		snprintf(path, sizeof(path), "%.*s/libhsa-runtime64.so.1",
			 (int)(slash - l->library), l->library);
		if (*l->target[i] && !knows(path, l->target[i]))
			return found(l, "this machine has a %s, which %s does not know",
				     l->target[i], path);
	}
	return false;
}

static bool unknown(struct look *l)
{
	if (!l->devices)
		return found(l, "/dev/kfd and /dev/dri can be opened, and no variable hides a "
				"device");
	return found(l,
		     "the kernel offers %d %s (%s), /dev/kfd and /dev/dri can be opened, and no "
		     "variable hides a device: the runtime may not be for it, and "
		     "AMD_LOG_LEVEL=4 makes it say more",
		     l->devices, ss_plural((uint64_t)l->devices, "GPU", "GPUs"),
		     *l->target[0] ? l->target[0] : "of an unknown kind");
}

void ss_no_device_reason(const char *root, const char *library, char out[SS_NO_DEVICE_BYTES])
{
	static bool (*const checks[])(struct look *) = {
		kfd_missing, kfd_refused, render_nodes, topology, hidden, other_target, unknown,
	};
	struct look l = {.root = root, .library = library, .out = out};

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && !checks[i](&l); i++) {}
}
