/* SPDX-License-Identifier: MIT */
/*
 * The descriptor that stands for a pool. As the runtime's it carries no memory, only
 * what an importer makes a pool of its own from. It is a sealed memory file: it outlives
 * the exporter, may be sent and duplicated, and says the same to everybody for ever.
 *
 * What arrives may be any descriptor with any bytes: only sealed memory files are read,
 * which nobody can make us wait for. No lock.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/share/pool_descriptor.h"

#define VERSION 1
#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static const char magic[8] = "SSPOOL\n";

static size_t card_size(unsigned devices)
{
	return offsetof(struct ss_pool_desc, device) + devices * sizeof(struct ss_pool_desc_device);
}

size_t ss_pool_desc_finish(struct ss_pool_desc *card, unsigned devices, unsigned reuse)
{
	memcpy(card->magic, magic, sizeof(magic));
	card->version = VERSION;
	card->devices = devices;
	card->reuse = reuse;
	card->reserved = 0;
	return card_size(devices);
}

bool ss_pool_desc_parse(const void *bytes, size_t size, struct ss_pool_desc *out)
{
	memset(out, 0, sizeof(*out));
	if (size < card_size(1) || size > sizeof(*out))
		return false;
	memcpy(out, bytes, size);
	if (memcmp(out->magic, magic, sizeof(magic)) || out->version != VERSION ||
	    out->reserved || !out->devices || out->reuse >> SS_POOL_DESC_REUSE ||
	    size != card_size(out->devices))
		return false;
	for (unsigned i = 0; i < out->devices; i++)
		if (!memchr(out->device[i].bus, 0, sizeof(out->device[i].bus)))
			return false;
	return true;
}

/* Devices without a serial number share one uuid, partitions of one may share the bus:
 * both must agree. */
bool ss_pool_desc_same_device(const struct ss_pool_desc_device *a, const struct ss_pool_desc_device *b)
{
	return !memcmp(a->uuid, b->uuid, sizeof(a->uuid)) && !strcmp(a->bus, b->bus);
}

int ss_pool_desc_write(const struct ss_pool_desc *card, size_t size)
{
	int fd = memfd_create("somashim-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING), high;

	if (fd < 0)
		return -1;
	/* 0 by value is no handle, and 1 and 2 are not ours to take. */
	if (fd < 3) {
		high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		close(fd);
		fd = high;
	}
	if (fd >= 0 && write(fd, card, size) == (ssize_t)size && !fcntl(fd, F_ADD_SEALS, SEALS))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

bool ss_pool_desc_read(int fd, struct ss_pool_desc *out)
{
	int seals = fcntl(fd, F_GET_SEALS);
	bool good = false;
	ssize_t size;
	char *bytes; /* many for a stack */

	if (seals < 0 || (seals & SEALS) != SEALS || !(bytes = malloc(sizeof(*out) + 1)))
		return false;
	size = pread(fd, bytes, sizeof(*out) + 1, 0);
	good = size > 0 && ss_pool_desc_parse(bytes, (size_t)size, out);
	free(bytes);
	return good;
}
