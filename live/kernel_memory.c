/* SPDX-License-Identifier: MIT */
/* Reads the kernel's figures of a process's device memory. See kernel_memory.h. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/kernel_memory.h"

#define CLIENTS 256 /* of the kernel's DRM: a file that was opened again is of one client */
#define FILES 65536 /* descriptors that are looked at */
#define NODES 256

const char *ss_kernel_root(void)
{
	const char *root = secure_getenv("SOMASIM_KERNEL_ROOT");

	return root ? root : "";
}

bool ss_kernel_file(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd >= 0 ? read(fd, out, size - 1) : -1;

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static struct ss_kernel_device *device_of(struct ss_kernel_device *out, size_t *count,
					  const char *pci)
{
	for (size_t i = 0; i < *count; i++)
		if (strcmp(out[i].pci, pci) == 0)
			return &out[i];
	if (*count == SS_KERNEL_DEVICES)
		return NULL;
	out[*count] = (struct ss_kernel_device){.vram = 0};
	snprintf(out[*count].pci, sizeof(out->pci), "%s", pci);
	return &out[(*count)++];
}

/* The value of "KEY:\tvalue", up to the end of its line. False: there is no such key. */
static bool value_of(const char *text, const char *key, char *out, size_t size)
{
	size_t length = strlen(key);

	for (const char *line = text; line && *line;) {
		if (strncmp(line, key, length) == 0 && line[length] == ':') {
			const char *value = line + length + 1 + strspn(line + length + 1, " \t");
			snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
			return true;
		}
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return false;
}

/* "1024 KiB" */
static uint64_t bytes_of(const char *text)
{
	char *unit;
	unsigned long long n = strtoull(text, &unit, 10);
	unsigned shift = strstr(unit, "KiB") ? 10 :
			 strstr(unit, "MiB") ? 20 :
			 strstr(unit, "GiB") ? 30 :
					       0;

	return n < UINT64_MAX >> 31 ? (uint64_t)n << shift : 0;
}

struct clients {
	uint64_t id[CLIENTS];
	size_t count;
};

/* The room for a query. It is too large for the stack of the thread that asks, which may be any
 * thread of the program. */
struct room {
	struct clients clients;
	char path[PATH_MAX];
	char text[8192]; /* of one file */
};

static bool is_new(struct clients *c, uint64_t id)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->id[i] == id)
			return false;
	if (c->count < CLIENTS)
		c->id[c->count++] = id;
	return true;
}

/* Adds the memory of the file that room->path describes. */
static void add_file(struct room *room, struct ss_kernel_device *out, size_t *count)
{
	static const char *const keys[] = {"drm-memory-vram", "drm-resident-vram",
					   "drm-total-vram"};
	char *text = room->text, pci[32], value[64];
	struct ss_kernel_device *d;

	if (!ss_kernel_file(room->path, text, sizeof(room->text)) ||
	    !value_of(text, "drm-pdev", pci, sizeof(pci)))
		return;
	if (value_of(text, "drm-client-id", value, sizeof(value)) &&
	    !is_new(&room->clients, strtoull(value, NULL, 10)))
		return;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (value_of(text, keys[i], value, sizeof(value))) {
			d = device_of(out, count, pci);
			if (d)
				d->vram += bytes_of(value);
			return;
		}
	}
}

/* False: the path is too long. */
static __attribute__((format(printf, 2, 3))) bool name(struct room *room, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(room->path, sizeof(room->path), format, args);
	va_end(args);
	return n >= 0 && n < (int)sizeof(room->path);
}

static void read_files(const char *root, const char *process, struct room *room,
		       struct ss_kernel_device *out, size_t *count)
{
	char target[64];
	struct dirent *e;
	unsigned files = 0;

	room->clients.count = 0;
	DIR *d = name(room, "%s/proc/%s/fd", root, process) ? opendir(room->path) : NULL;
	while (d && files++ < FILES && (e = readdir(d))) {
		if (!name(room, "%s/proc/%s/fd/%.16s", root, process, e->d_name))
			continue;
		ssize_t n = readlink(room->path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		if (strncmp(target, "/dev/dri/", 9) == 0 &&
		    name(room, "%s/proc/%s/fdinfo/%.16s", root, process, e->d_name))
			add_file(room, out, count);
	}
	if (d)
		closedir(d);
}

/* ---- KFD ------------------------------------------------------------------ */

/* A number of "key value" lines. */
static bool number_of(const char *text, const char *key, uint64_t *out)
{
	size_t length = strlen(key);

	for (const char *line = text; line && *line;) {
		if (strncmp(line, key, length) == 0 && line[length] == ' ') {
			*out = strtoull(line + length, NULL, 10);
			return true;
		}
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return false;
}

/* Adds KFD's count for the process on the GPU of a node of its topology. */
static void add_node(const char *root, unsigned pid, unsigned node, struct room *room,
		     struct ss_kernel_device *out, size_t *count)
{
	static const char nodes[] = "sys/class/kfd/kfd/topology/nodes";
	uint64_t id, location = 0, domain = 0;
	struct ss_kernel_device *d;
	char *text = room->text, pci[32];

	if (!name(room, "%s/%s/%u/gpu_id", root, nodes, node) ||
	    !ss_kernel_file(room->path, text, sizeof(room->text)) ||
	    !(id = strtoull(text, NULL, 10)))
		return;
	if (!name(room, "%s/%s/%u/properties", root, nodes, node) ||
	    !ss_kernel_file(room->path, text, sizeof(room->text)) ||
	    !number_of(text, "location_id", &location))
		return;
	number_of(text, "domain", &domain);
	if (!name(room, "%s/sys/class/kfd/kfd/proc/%u/vram_%" PRIu64, root, pid, id) ||
	    !ss_kernel_file(room->path, text, sizeof(room->text)))
		return;
	uint64_t vram = strtoull(text, NULL, 10);
	snprintf(pci, sizeof(pci), "%04x:%02x:%02x.%x", (unsigned)(domain & 0xffff),
		 (unsigned)(location >> 8 & 0xff), (unsigned)(location >> 3 & 0x1f),
		 (unsigned)(location & 7));
	d = device_of(out, count, pci);
	if (d && vram > d->vram && vram < UINT64_MAX / 2)
		d->vram = vram;
}

static void read_kfd(const char *root, unsigned pid, struct room *room,
		     struct ss_kernel_device *out, size_t *count)
{
	struct dirent *e;
	unsigned nodes = 0;

	/* The kernel's process ids equal those of this process only outside of containers. */
	if (!name(room, "%s/sys/class/kfd/kfd/proc/%u", root, pid) ||
	    access(room->path, F_OK) != 0 ||
	    !name(room, "%s/sys/class/kfd/kfd/topology/nodes", root))
		return;
	DIR *d = opendir(room->path);
	while (d && nodes++ < NODES && (e = readdir(d)))
		if (e->d_name[0] >= '0' && e->d_name[0] <= '9')
			add_node(root, pid, (unsigned)strtoul(e->d_name, NULL, 10), room, out,
				 count);
	if (d)
		closedir(d);
}

size_t ss_kernel_memory(const char *root, uint32_t pid,
			struct ss_kernel_device out[SS_KERNEL_DEVICES])
{
	struct room *room = malloc(sizeof(*room));
	char process[16] = "self";
	size_t count = 0;

	if (!room)
		return 0;
	if (pid)
		snprintf(process, sizeof(process), "%u", pid);
	read_files(root, process, room, out, &count);
	read_kfd(root, pid ? pid : (unsigned)getpid(), room, out, &count);
	free(room);
	return count;
}

/* ---- libraries -------------------------------------------------------------- */

const char *ss_memory_library(const char *path)
{
	static const char *const known[][2] = {
		{"librccl.so", "RCCL"},
		{"libMIOpen.so", "MIOpen"},
		{"librocblas.so", "rocBLAS"},
		{"libhipblaslt.so", "hipBLASLt"},
		{"librocfft.so", "rocFFT"},
		{"librocsparse.so", "rocSPARSE"},
		{"librocsolver.so", "rocSOLVER"},
		{"libmigraphx.so", "MIGraphX"},
		{"libucp.so", "UCX"},
		{"librocshmem", "rocSHMEM"},
	};
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strncmp(base, known[i][0], strlen(known[i][0])) == 0)
			return known[i][1];
	return NULL;
}
