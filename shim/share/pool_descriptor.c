/* SPDX-License-Identifier: MIT */
/*
 * The file descriptor that represents a pool. Like the runtime's descriptor it carries no memory,
 * only the properties that an importer needs to make a pool of its own. The descriptor is a sealed
 * memory file: the file outlives the exporter, can be sent and duplicated, and its contents never
 * change.
 *
 * A received descriptor may refer to any file with any bytes. Only sealed memory files are read,
 * because such a read can never block. No lock.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/quiet.h"
#include "shim/share/pool_descriptor.h"

#define VERSION 1
#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static const char magic[8] = "SSPOOL\n";

static size_t desc_size(unsigned devices)
{
	return offsetof(struct ss_pool_desc, device) + devices * sizeof(struct ss_pool_desc_device);
}

size_t ss_pool_desc_finish(struct ss_pool_desc *desc, unsigned devices, unsigned reuse)
{
	memcpy(desc->magic, magic, sizeof(magic));
	desc->version = VERSION;
	desc->devices = devices;
	desc->reuse = reuse;
	desc->reserved = 0;
	return desc_size(devices);
}

static bool is_valid(const struct ss_pool_desc *desc, size_t size)
{
	if (size < desc_size(1) || size > sizeof(*desc) ||
	    memcmp(desc->magic, magic, sizeof(magic)) || desc->version != VERSION ||
	    desc->reserved || !desc->devices || desc->reuse >> SS_POOL_DESC_REUSE ||
	    size != desc_size(desc->devices))
		return false;
	for (unsigned i = 0; i < desc->devices; i++)
		if (!memchr(desc->device[i].bus, 0, sizeof(desc->device[i].bus)))
			return false;
	return true;
}

bool ss_pool_desc_parse(const void *bytes, size_t size, struct ss_pool_desc *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out, bytes, size < sizeof(*out) ? size : sizeof(*out));
	return is_valid(out, size);
}

/* Devices without a serial number share one uuid, and partitions of a device may share the bus
 * address. So uuid and bus address must both agree. */
bool ss_pool_desc_same_device(const struct ss_pool_desc_device *a,
			      const struct ss_pool_desc_device *b)
{
	return !memcmp(a->uuid, b->uuid, sizeof(a->uuid)) && !strcmp(a->bus, b->bus);
}

int ss_pool_desc_write(const struct ss_pool_desc *desc, size_t size)
{
	int fd = memfd_create("somashim-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING), high;

	if (fd < 0)
		return -1;
	/* Callers treat 0 as no handle, and 0 to 2 are the standard streams. */
	if (fd < 3) {
		high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		close(fd);
		fd = high;
	}
	if (fd >= 0 && ss_quiet_write(fd, desc, size) == (ssize_t)size &&
	    !fcntl(fd, F_ADD_SEALS, SEALS))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

bool ss_pool_desc_read(int fd, struct ss_pool_desc *out)
{
	int seals = fcntl(fd, F_GET_SEALS);
	ssize_t size;
	char more;

	memset(out, 0, sizeof(*out));
	if (seals < 0 || (seals & SEALS) != SEALS)
		return false;
	size = pread(fd, out, sizeof(*out), 0);
	return size > 0 && pread(fd, &more, 1, sizeof(*out)) == 0 && is_valid(out, (size_t)size);
}
