/* SPDX-License-Identifier: MIT */
/*
 * The file of a recording. It grows by one block at a time. Room on the disk is reserved before
 * a block is mapped: a write to a mapped page without room would kill the program (SIGBUS). The
 * child of a fork does not get the mappings.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/file.h"
#include "trace/file_name.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* The descriptor still is the file that was opened. */
static bool is_ours(const struct ss_trace_file *f) {
	struct stat st;

	return fstat(f->fd, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino;
}

/* Reserves room on the disk. Some filesystems cannot, so zeros are written there. */
static bool reserve(int fd, off_t offset, size_t size) {
	static const char zeros[4096];
	struct rlimit limit;
	int rc;

	/* Growing beyond this limit would raise a signal that ends the program. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    (uint64_t)offset + size > limit.rlim_cur) {
		errno = EFBIG;
		return false;
	}
	do {
		rc = fallocate(fd, 0, offset, (off_t)size);
	} while (rc != 0 && errno == EINTR);
	if (rc == 0) {
		return true;
	}
	if (errno != EOPNOTSUPP && errno != ENOSYS) {
		return false;
	}
	while (size) {
		ssize_t n = pwrite(fd, zeros, size < sizeof(zeros) ? size : sizeof(zeros), offset);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			errno = n < 0 ? errno : ENOSPC;
			return false;
		}
		offset += n;
		size -= (size_t)n;
	}
	return true;
}

static void *map(struct ss_trace_file *f, off_t offset, size_t size) {
	if (!is_ours(f)) {
		errno = EBADF;
		return NULL;
	}
	if (!reserve(f->fd, offset, size)) {
		return NULL;
	}
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, offset);
	if (p == MAP_FAILED) {
		return NULL;
	}
	madvise(p, size, MADV_DONTFORK);
	/* Faults of one page after the other would cost more than the events. This also finds out,
	 * without a signal, that a page has no room after all. */
	if (madvise(p, size, MADV_POPULATE_WRITE) != 0 && errno == EFAULT) {
		munmap(p, size);
		errno = ENOSPC;
		return NULL;
	}
	return p;
}

bool ss_trace_file_open(struct ss_trace_file *f, const char *pattern, char *path, size_t size,
		unsigned *number) {
	struct stat st;
	int fd = ss_file_new(pattern, O_RDWR, path, size, number);

	if (fd < 0) {
		return false;
	}
	if (fstat(fd, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_size != 0)) {
		close(fd);
		errno = S_ISREG(st.st_mode) ? EEXIST : ENODEV; /* the latter cannot be mapped */
		return false;
	}
	fd = ss_file_move_up(fd);
	if (fstat(fd, &st) != 0) {
		close(fd);
		return false;
	}
	long page = sysconf(_SC_PAGESIZE);
	*f = (struct ss_trace_file){ .fd = fd, .dev = st.st_dev, .ino = st.st_ino,
		.header_size = page > 4096 ? (uint32_t)page : 4096 };
	f->header = map(f, 0, f->header_size);
	if (!f->header) {
		int err = errno;
		close(fd);
		f->fd = -1;
		errno = err;
		return false;
	}
	return true;
}

void *ss_trace_file_block(struct ss_trace_file *f, uint32_t *number) {
	*number = atomic_fetch_add_explicit(&f->next, 1, memory_order_relaxed);
	return map(f, (off_t)f->header_size + (off_t)*number * SS_TRACE_BLOCK_SIZE,
		   SS_TRACE_BLOCK_SIZE);
}

void ss_trace_file_unmap(void *block) {
	munmap(block, SS_TRACE_BLOCK_SIZE);
}

void ss_trace_file_punch(struct ss_trace_file *f, uint32_t number, uint32_t used) {
	uint32_t from = (used + 4095) & ~4095u;

	if (from < SS_TRACE_BLOCK_SIZE && is_ours(f)) {
		(void)!fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)f->header_size + (off_t)number * SS_TRACE_BLOCK_SIZE + from,
			SS_TRACE_BLOCK_SIZE - from);
	}
}

void ss_trace_file_close(struct ss_trace_file *f) {
	if (f->fd >= 0 && is_ours(f)) {
		close(f->fd);
	}
	f->fd = -1;
}
