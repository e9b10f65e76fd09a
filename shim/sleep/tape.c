/* SPDX-License-Identifier: MIT */
/*
 * Makes, fills and reads a tape.
 *
 * A file has no name, so a process that is killed leaves none. Its blocks are allocated first: a
 * full disk is an error before anything was copied. It is read and written by calls and is not
 * mapped, because a page that the disk cannot read ends the process by SIGBUS. Memory is not mapped
 * by a child, which would double it by writing, nor written into a core dump.
 *
 * Locks: none.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/base/mapped_file.h"
#include "shim/sleep/host_room.h"
#include "shim/sleep/tape.h"

#define PAGE 4096ull
#define TMPFS_MAGIC 0x01021994 /* linux/magic.h */
#define RAMFS_MAGIC 0x858458f6

static const char *text_of(int error)
{
	switch (error) {
	case ENOSPC: return "the disk of the store's directory has too little room for it";
	case EDQUOT: return "the quota on the disk of the store's directory is used up";
	case EFBIG: return "files may not be so large (RLIMIT_FSIZE, or the file system)";
	case EOPNOTSUPP:
	case EISDIR:
	case EINVAL:
		return "the file system of the store's directory has no files without a name "
		       "(O_TMPFILE)";
	case ENOENT:
	case ENOTDIR: return "the store's directory is none";
	case EACCES:
	case EPERM:
	case EROFS: return "the store's directory may not be written to";
	case EMFILE:
	case ENFILE: return "no file can be opened for the store, because too many are open";
	default: return "the store's file cannot be made";
	}
}

/* ---- files -------------------------------------------------------------------------- */

static int open_file(const char *dir)
{
	return open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_NOCTTY, 0600);
}

bool ss_tape_dir_usable(const char *dir, const char **why)
{
	int fd = open_file(dir);

	if (fd < 0) {
		*why = text_of(errno);
		return false;
	}
	close(fd);
	return true;
}

/* Are the bytes of the file host memory? */
static bool is_memory(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == TMPFS_MAGIC || (unsigned long)fs.f_type == RAMFS_MAGIC);
}

static bool has_room(uint64_t bytes, const char *root, const char **why)
{
	const char *short_of;

	if (ss_host_room(root, &short_of) >= bytes)
		return true;
	*why = short_of;
	return false;
}

static bool make_file(struct ss_tape *t, const char *dir, uint64_t beside, const char *root,
		      const char **why)
{
	t->fd = open_file(dir);
	if (t->fd < 0) {
		*why = text_of(errno);
		return false;
	}
	if (!has_room(beside + (is_memory(t->fd) ? t->size : 0), root, why))
		return false;
	if (ss_file_reserve(t->fd, 0, t->size))
		return true;
	*why = text_of(errno);
	return false;
}

static bool make_memory(struct ss_tape *t, uint64_t beside, const char *root, const char **why)
{
	void *p;

	if (!has_room(t->size + beside, root, why))
		return false;
	p = mmap(NULL, t->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (p == MAP_FAILED) {
		*why = "the process may not map so much memory (ulimit -v, or overcommit)";
		return false;
	}
	(void)madvise(p, t->size, MADV_DONTFORK);
	(void)madvise(p, t->size, MADV_DONTDUMP);
	(void)madvise(p, t->size, MADV_HUGEPAGE);
	t->memory = p;
	return true;
}

bool ss_tape_open(struct ss_tape *t, const char *dir, uint64_t bytes, uint64_t beside,
		  const char *root, const char **why)
{
	bool ok;

	*t = (struct ss_tape){.fd = -1, .size = (bytes + PAGE - 1) / PAGE * PAGE};
	if (!bytes)
		return true;
	ok = dir ? make_file(t, dir, beside, root, why) : make_memory(t, beside, root, why);
	if (!ok)
		ss_tape_close(t);
	return ok;
}

/* ---- bytes -------------------------------------------------------------------------- */

bool ss_tape_write(struct ss_tape *t, uint64_t at, const void *from, uint64_t size)
{
	const char *p = from;

	if (t->memory) {
		memcpy(t->memory + at, from, size);
		return true;
	}
	while (size) {
		ssize_t n = pwrite(t->fd, p, size, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		at += (uint64_t)n;
		size -= (uint64_t)n;
	}
	return true;
}

bool ss_tape_read(const struct ss_tape *t, uint64_t at, void *to, uint64_t size)
{
	char *p = to;

	if (t->memory) {
		memcpy(to, t->memory + at, size);
		return true;
	}
	while (size) {
		ssize_t n = pread(t->fd, p, size, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		at += (uint64_t)n;
		size -= (uint64_t)n;
	}
	return true;
}

bool ss_tape_sync(struct ss_tape *t)
{
	int rc = 0;

	/* An error of the disk would otherwise be seen by nobody. */
	if (t->fd >= 0)
		do {
			rc = fdatasync(t->fd);
		} while (rc != 0 && errno == EINTR);
	return rc == 0;
}

void ss_tape_close(struct ss_tape *t)
{
	if (t->memory)
		munmap(t->memory, t->size);
	if (t->fd >= 0)
		close(t->fd);
	*t = (struct ss_tape){.fd = -1};
}
