/* SPDX-License-Identifier: MIT */
/*
 * The file of a recording, which grows by one block at a time. Room on the disk is reserved before
 * a block is mapped: a write to a mapped page without room would kill the program (SIGBUS). The
 * child of a fork does not get the mappings.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/mapped_file.h"
#include "trace/file.h"
#include "trace/file_name.h"

#define RING_WAITS 1000 /* of a millisecond */

/* The descriptor still is the file that was opened. */
static bool is_ours(const struct ss_trace_file *f, struct stat *st)
{
	return fstat(f->fd, st) == 0 && st->st_dev == f->dev && st->st_ino == f->ino;
}

static void *map(struct ss_trace_file *f, off_t offset, size_t size)
{
	/* Read before the file's size, because other threads make the file grow */
	uint64_t least = atomic_load(&f->size);
	struct stat st;

	if (!is_ours(f, &st)) {
		errno = EBADF;
		return NULL;
	}
	if ((uint64_t)st.st_size < least) {
		errno = SS_TRACE_CUT;
		return NULL;
	}
	void *p = ss_file_reserve(f->fd, offset, size) ? ss_file_map(f->fd, offset, size) : NULL;
	if (p)
		madvise(p, size, MADV_DONTFORK);
	for (uint64_t old = atomic_load(&f->size), end = (uint64_t)offset + size;
	     p && old < end && !atomic_compare_exchange_weak(&f->size, &old, end);) {}
	return p;
}

bool ss_trace_file_open(struct ss_trace_file *f, const char *pattern, uint32_t ring, char *path,
			size_t size, unsigned *number)
{
	struct stat st;
	int fd = ss_file_new(pattern, O_RDWR, path, size, number);

	if (fd < 0)
		return false;
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
	*f = (struct ss_trace_file){.fd = fd,
				    .dev = st.st_dev,
				    .ino = st.st_ino,
				    .header_size = page > 4096 ? (uint32_t)page : 4096};
	if (ring) { /* the same number again for the rest of older blocks */
		uint64_t bytes = sizeof(struct ss_trace_header) + SS_TRACE_RING_SIZE(2 * ring);
		f->header_size = (uint32_t)((bytes + f->header_size - 1) / f->header_size *
					    f->header_size);
	}
	f->header = map(f, 0, f->header_size);
	if (f->header && ring) {
		f->header->ring_blocks = 2 * ring;
		f->ring = (void *)(f->header + 1);
		f->ring->limit = ring;
	}
	if (!f->header) {
		int err = errno;
		close(fd);
		f->fd = -1;
		errno = err;
		return false;
	}
	return true;
}

static off_t offset_of(const struct ss_trace_file *f, uint32_t number)
{
	return (off_t)f->header_size + (off_t)number * SS_TRACE_BLOCK_SIZE;
}

/* ---- rings --------------------------------------------------------------- */

/* Counts one more block of the program. False: the program has reached its limit. */
static bool count_block(struct ss_trace_ring *ring)
{
	uint32_t used = __atomic_load_n(&ring->used, __ATOMIC_RELAXED);

	while (used < ring->limit)
		if (__atomic_compare_exchange_n(&ring->used, &used, used + 1, true,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return true;
	return false;
}

/* Takes a free block of the ring, or a new one. */
static bool take_block(struct ss_trace_ring *ring, uint32_t blocks, uint32_t *number)
{
	if (!count_block(ring))
		return false;
	for (uint32_t word = 0; word < (blocks + 63) / 64; word++) {
		uint64_t bits = __atomic_load_n(&ring->free[word], __ATOMIC_RELAXED);
		while (bits) {
			uint64_t bit = bits & -bits;
			if (__atomic_fetch_and(&ring->free[word], ~bit, __ATOMIC_ACQ_REL) & bit) {
				*number = word * 64 + (uint32_t)__builtin_ctzll(bit);
				return true;
			}
			bits &= ~bit;
		}
	}
	uint32_t next = __atomic_load_n(&ring->next, __ATOMIC_RELAXED);
	while (next < blocks) {
		if (__atomic_compare_exchange_n(&ring->next, &next, next + 1, true,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			*number = next;
			return true;
		}
	}
	__atomic_fetch_sub(&ring->used, 1, __ATOMIC_ACQ_REL);
	return false;
}

/* Waits for the process that frees blocks of the ring. A lost event makes figures wrong; a wait
 * does not. */
static bool await_block(struct ss_trace_file *f, uint32_t *number)
{
	static const struct timespec time = {.tv_nsec = 1000000};

	for (int i = 0; !take_block(f->ring, f->header->ring_blocks, number); i++) {
		if (i == RING_WAITS || atomic_load(&f->starved)) {
			atomic_store(&f->starved, true);
			return false;
		}
		nanosleep(&time, NULL);
	}
	atomic_store(&f->starved, false);
	return true;
}

/* ---- blocks -------------------------------------------------------------- */

/* The file stores its size for readers, so that they recognize a copy that was cut. */
static void has_grown(struct ss_trace_header *h, uint64_t size)
{
	uint64_t old = __atomic_load_n(&h->size, __ATOMIC_RELAXED);

	while (old < size && !__atomic_compare_exchange_n(&h->size, &old, size, true,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

void *ss_trace_file_block(struct ss_trace_file *f, uint32_t *number)
{
	if (!f->ring) {
		*number = atomic_fetch_add_explicit(&f->next, 1, memory_order_relaxed);
	} else if (!await_block(f, number)) {
		errno = EBUSY;
		return NULL;
	}
	void *block = map(f, offset_of(f, *number), SS_TRACE_BLOCK_SIZE);
	if (block)
		has_grown(f->header, (uint64_t)offset_of(f, *number) + SS_TRACE_BLOCK_SIZE);
	return block;
}

void ss_trace_file_done(struct ss_trace_file *f, void *block, uint64_t last_ns)
{
	if (f->ring) {
		*(uint64_t *)((char *)block + SS_TRACE_BLOCK_SIZE - sizeof(last_ns)) = last_ns;
		__atomic_store_n((uint32_t *)block, SS_TRACE_BLOCK_DONE, __ATOMIC_RELEASE);
	}
	munmap(block, SS_TRACE_BLOCK_SIZE);
}

void ss_trace_file_punch(struct ss_trace_file *f, uint32_t number, uint32_t used)
{
	uint32_t from = (used + 4095) & ~4095u;

	struct stat st;

	if (from < SS_TRACE_BLOCK_SIZE && is_ours(f, &st)) {
		(void)!fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				 offset_of(f, number) + from, SS_TRACE_BLOCK_SIZE - from);
	}
}

void ss_trace_file_close(struct ss_trace_file *f)
{
	struct stat st;

	if (f->fd >= 0 && is_ours(f, &st))
		close(f->fd);
	f->fd = -1;
}

void ss_trace_file_undo(struct ss_trace_file *f)
{
	int err = errno;

	munmap(f->header, f->header_size);
	f->header = NULL;
	f->ring = NULL;
	(void)!ftruncate(f->fd, 0);
	ss_trace_file_close(f);
	errno = err;
}
