/* SPDX-License-Identifier: MIT */
/*
 * Files that are written by way of memory. A page of such a file without a block on the disk kills
 * the thread that writes to it (SIGBUS), and a file that grows beyond RLIMIT_FSIZE does, too
 * (SIGXFSZ). So the room is reserved before the page is used, or the page is not used.
 */
#ifndef SS_BASE_MAPPED_FILE_H
#define SS_BASE_MAPPED_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* Gives the bytes of a file blocks on the disk, and the file their length. New bytes are 0. On
 * filesystems that cannot reserve, zeros are written over the bytes, so no thread may have
 * written there before. False with errno set: the disk or the quota is full, or the limit of
 * this process is too low. Raises no signal. */
static inline bool ss_file_reserve(int fd, off_t offset, size_t size)
{
	static const char zeros[4096];
	struct rlimit limit;
	int rc;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    (uint64_t)offset + size > limit.rlim_cur) {
		errno = EFBIG;
		return false;
	}
	do {
		rc = fallocate(fd, 0, offset, (off_t)size);
	} while (rc != 0 && errno == EINTR);
	if (rc == 0)
		return true;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return false;
	while (size) {
		ssize_t n = pwrite(fd, zeros, size < sizeof(zeros) ? size : sizeof(zeros), offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n < 0 ? errno : ENOSPC;
			return false;
		}
		offset += n;
		size -= (size_t)n;
	}
	return true;
}

/* Maps bytes of a file for which ss_file_reserve() has made room. NULL with errno set. */
static inline void *ss_file_map(int fd, off_t offset, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

	if (p == MAP_FAILED)
		return NULL;
	/* Faults of one page after the other would cost more than the writes themselves. This
	 * call also finds out, without a signal, that a page has no room after all. */
	if (madvise(p, size, MADV_POPULATE_WRITE) != 0 && errno == EFAULT) {
		munmap(p, size);
		errno = ENOSPC;
		return NULL;
	}
	return p;
}

#endif
