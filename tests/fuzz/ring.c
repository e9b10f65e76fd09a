/* SPDX-License-Identifier: MIT */
/* Files of rings as hostile input: folding and dumping them comes to an end, and stays within the
 * file's bounds. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/ring/dump.h"
#include "cli/ring/fold.h"
#include "trace/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[] = "/dev/shm/somashim-fuzz-ring-XXXXXX", err[512];
	struct ss_trace_item e;
	int fd = mkostemp(path, O_CLOEXEC); /* a link to a memory file is not opened */

	if (fd < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
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
