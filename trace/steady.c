/* SPDX-License-Identifier: MIT */
/*
 * A file that is being written differs at each look: events are added, and a ring's beginning
 * moves, which frees its oldest blocks. A reader looks at least twice, so the reader gets one
 * state: all events up to a moment, of a ring that does not change.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "trace/steady.h"

#define LOCK_MS 10000     /* a process that moves a beginning needs less */
#define SETTLE_NS 20000000 /* after this time, events that have their time now are in the file */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* False: another process keeps the file locked. On a filesystem without locks no process moves a
 * beginning. */
static bool lock(int fd)
{
	static const struct timespec time = {.tv_nsec = 1000000};
	struct flock whole = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	for (int ms = 0; fcntl(fd, F_OFD_SETLK, &whole) != 0; ms++) {
		if (errno != EAGAIN && errno != EACCES && errno != EINTR)
			return true;
		if (ms == LOCK_MS)
			return false;
		nanosleep(&time, NULL);
	}
	return true;
}

/* A file without a name, in TMPDIR or /tmp. -1 with errno set. */
static int nameless(void)
{
	const char *dirs[] = {getenv("TMPDIR"), "/tmp"};
	char path[PATH_MAX];

	for (size_t i = 0; i < 2; i++) {
		if (!dirs[i] || !*dirs[i])
			continue;
		snprintf(path, sizeof(path), "%s/somashim-ring.XXXXXX", dirs[i]);
		int fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0) {
			unlink(path);
			return fd;
		}
	}
	return -1;
}

static bool write_at(int fd, const uint8_t *data, size_t size, uint64_t offset)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = pwrite(fd, data + done, size - done, (off_t)(offset + done));
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

/* Copies the header and all used blocks. -1 with errno set. */
static int copy(const struct ss_trace_file_def *f)
{
	uint32_t header = f->header.header_size, block = f->header.block_size, magic;
	uint8_t *data = malloc(header > block ? header : block);
	struct stat st;
	int fd = data && fstat(f->fd, &st) == 0 ? nameless() : -1;
	bool good = fd >= 0 && ftruncate(fd, st.st_size) == 0 &&
		    ss_trace_read_at(f->fd, data, header, 0) == header &&
		    write_at(fd, data, header, 0);

	for (uint64_t at = header; good && at < (uint64_t)st.st_size; at += block) {
		if (ss_trace_read_at(f->fd, &magic, sizeof(magic), at) != sizeof(magic) || !magic)
			continue;
		size_t n = ss_trace_read_at(f->fd, data, block, at);
		good = write_at(fd, data, n, at);
	}
	if (!good && fd >= 0) {
		int error = errno;
		close(fd);
		errno = error;
	}
	free(data);
	return good ? fd : -1;
}

bool ss_trace_steady(struct ss_trace_file_def *f, enum ss_trace_writer *writer, char *err,
		     size_t err_size)
{
	static const struct timespec settle = {.tv_nsec = SETTLE_NS};
	bool ring = f->header.ring_blocks != 0;

	if (ring && !lock(f->fd)) {
		snprintf(err, err_size, "%s: another process keeps it locked", f->path);
		return false;
	}
	/* This order is needed, because the recording may grow, and may end, meanwhile. */
	*writer = ss_trace_writer_of(f->fd);
	if (*writer != SS_TRACE_WRITER_GONE) {
		f->end_ns = now_ns();
		nanosleep(&settle, NULL);
	}
	if (ring && *writer != SS_TRACE_WRITER_GONE) {
		int fd = copy(f);
		if (fd < 0) {
			snprintf(err, err_size,
				 "%s: it cannot be copied, which it must be while "
				 "it is written: %s",
				 f->path, strerror(errno));
			return false;
		}
		close(f->fd);
		f->fd = fd;
	}
	if (ss_trace_read_at(f->fd, &f->header, sizeof(f->header), 0) != sizeof(f->header)) {
		snprintf(err, err_size, "%s: it was cut while it was read", f->path);
		return false;
	}
	/* The recording has ended meanwhile, and its header says so: then all of it is shown. */
	if (f->header.state != SS_TRACE_RUNNING)
		f->end_ns = UINT64_MAX;
	return true;
}
