/* SPDX-License-Identifier: MIT */
/*
 * Files of rings as hostile input: folding and dumping them comes to an end, and stays within the
 * file's bounds.
 *
 * Blocks have 64 KiB, most of it empty, so the input is the file without what is empty: the header
 * with its bits for HEADER_BLOCKS blocks, then for each block the length of its beginning (two
 * bytes), that beginning, and the last eight bytes of the block.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/ring/dump.h"
#include "cli/ring/fold.h"
#include "trace/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEADER_BLOCKS 64
#define BLOCKS_MOST 32

static void put(int fd, const void *data, size_t size, uint64_t at)
{
	if (pwrite(fd, data, size, (off_t)at) != (ssize_t)size)
		abort();
}

static void write_file(int fd, const uint8_t *data, size_t size)
{
	const size_t header = sizeof(struct ss_trace_header) + SS_TRACE_RING_SIZE(HEADER_BLOCKS);
	struct ss_trace_header h = {.header_size = 4096};
	const uint8_t *end = data + size;
	uint64_t at;

	put(fd, data, size < header ? size : header, 0);
	if (size < header)
		return;
	memcpy(&h, data, sizeof(h));
	data += header;
	at = h.header_size < 1u << 20 ? h.header_size : 4096;
	if (ftruncate(fd, (off_t)at) != 0)
		abort();
	for (int i = 0; i < BLOCKS_MOST && end - data >= 2; i++, at += SS_TRACE_BLOCK_SIZE) {
		size_t length = data[0] | (size_t)data[1] << 8, left = (size_t)(end - data) - 2;

		length = length < left ? length : left;
		put(fd, data + 2, length, at);
		data += 2 + length;
		if (end - data < 8)
			break;
		put(fd, data, 8, at + SS_TRACE_BLOCK_SIZE - 8);
		data += 8;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[] = "/dev/shm/somashim-fuzz-ring-XXXXXX", err[512];
	struct ss_trace_item e;
	int fd = mkostemp(path, O_CLOEXEC); /* a link to a memory file is not opened */

	if (fd < 0)
		abort();
	write_file(fd, data, size);
	for (int i = 0; i < 3 && ss_ring_fold(path, i, err, sizeof(err)) == SS_RING_FOLDED; i++) {
		struct ss_trace_reader *r = ss_trace_reader_open(path, err, sizeof(err));
		while (r && ss_trace_reader_next(r, &e)) {}
		ss_trace_reader_close(r);
	}
	if (size && data[size - 1] % 16 == 0) { /* it waits */
		int to = memfd_create("dump", MFD_CLOEXEC);
		(void)ss_ring_dump(path, to, "dump", 0, err, sizeof(err));
		close(to);
	}
	close(fd);
	unlink(path);
	return 0;
}
