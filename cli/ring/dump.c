/* SPDX-License-Identifier: MIT */
/* Copies a ring to a recording of its own. See dump.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/ring/dump.h"
#include "cli/ring/file.h"

#define SETTLE_NS 20000000 /* an event that has its time by now is in the file after this */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Ends a block of the program at its first record after `end`: blocks are copied one after the
 * other, and all must end at the same moment. */
static void cut(uint8_t *data, uint64_t end)
{
	struct ss_trace_block *b = (void *)data;
	uint64_t base = b->base_ns;
	uint32_t at = sizeof(*b), last = SS_TRACE_BLOCK_SIZE - 8;

	b->magic = SS_TRACE_BLOCK_MAGIC;
	while (at + sizeof(struct ss_trace_record) <= last) {
		const struct ss_trace_record *r = (const void *)(data + at);
		uint32_t length = r->words * 8u;
		if (r->kind == SS_TRACE_NONE || length == 0 || length > last - at)
			break;
		if (r->kind == SS_TRACE_TIME && length >= sizeof(struct ss_trace_time))
			base = ((const struct ss_trace_time *)r)->base_ns;
		if (base + r->dt > end && r->kind != SS_TRACE_THREAD)
			break;
		at += length;
	}
	memset(data + at, 0, SS_TRACE_BLOCK_SIZE - at);
}

static bool write_all(int fd, const void *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, (const char *)data + done, size - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n < 0 ? errno : ENOSPC;
			return false;
		}
		done += (size_t)n;
	}
	return true;
}

/* Is the block copied? A base for another beginning is not: it was being written, or is about to be
 * removed. */
static bool is_copied(const struct ss_trace_header *h, const struct ss_ring_block *b)
{
	return b->magic != SS_TRACE_BLOCK_BASE || b->tail == h->begin_ns;
}

static bool copy(const struct ss_ring_file *f, int fd, uint64_t end)
{
	uint8_t header[4096] = {0};
	struct ss_trace_header *h = (void *)header;
	size_t count;
	struct ss_ring_block *b = ss_ring_blocks(f, &count);
	uint8_t *data = malloc(SS_TRACE_BLOCK_SIZE);

	*h = *f->header;
	h->header_size = sizeof(header);
	h->ring_blocks = 0;
	h->size = sizeof(header);
	for (size_t i = 0; b && i < count; i++)
		h->size += is_copied(h, &b[i]) ? SS_TRACE_BLOCK_SIZE : 0;
	bool good = b && data && write_all(fd, header, sizeof(header));
	for (size_t i = 0; good && i < count; i++) {
		if (!is_copied(h, &b[i]))
			continue;
		ss_ring_read(f, b[i].number, data);
		if (b[i].magic != SS_TRACE_BLOCK_BASE)
			cut(data, end);
		good = write_all(fd, data, SS_TRACE_BLOCK_SIZE);
	}
	free(data);
	free(b);
	return good;
}

bool ss_ring_dump(const char *path, int fd, const char *to, unsigned wait_ms, char *err,
		  size_t err_size)
{
	static const struct timespec settle = {.tv_nsec = SETTLE_NS};
	struct ss_ring_file f;
	enum ss_ring_refusal why;

	if (!ss_ring_open(&f, path, wait_ms, err, err_size, &why)) {
		if (why == SS_RING_NONE) {
			snprintf(err, err_size,
				 "its recording %s is no ring (somashim record --ring): it is "
				 "whole, and "
				 "can be read as it is",
				 path);
		}
		return false;
	}
	uint64_t end = now_ns();
	nanosleep(&settle, NULL);
	bool good = copy(&f, fd, end);
	if (!good)
		snprintf(err, err_size, "%s: %s", to, strerror(errno));
	ss_ring_close(&f);
	return good;
}
