/* SPDX-License-Identifier: MIT */
/* The file of a ring. See file.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/ring/file.h"
#include "trace/cut_guard.h"
#include "trace/reader_file.h"

#define HEADER_MOST (1u << 20) /* bytes */
#define NAP_MS 5

static off_t offset_of(const struct ss_ring_file *f, uint32_t number)
{
	return (off_t)f->mapped + (off_t)number * SS_TRACE_BLOCK_SIZE;
}

/* Nothing that a file says is trusted. */
static const char *check(const struct ss_trace_header *h, const struct stat *st,
			 enum ss_ring_refusal *why)
{
	if (memcmp(h->magic, SS_TRACE_MAGIC, sizeof(h->magic)) != 0 || h->major != SS_TRACE_MAJOR ||
	    h->endian != SS_TRACE_ENDIAN)
		return "no recording";
	if (h->ring_blocks == 0) {
		*why = SS_RING_NONE;
		return "not a ring";
	}
	if (h->block_size != SS_TRACE_BLOCK_SIZE || h->header_size > HEADER_MOST ||
	    h->header_size > (uint64_t)st->st_size ||
	    h->header_size < sizeof(*h) + SS_TRACE_RING_SIZE(h->ring_blocks))
		return "its sizes make no sense";
	return NULL;
}

/* The lock is of another kind than flock(), by which the program shows that it runs. A kernel or
 * filesystem without such locks lets everybody pass. */
static bool lock(int fd, unsigned wait_ms)
{
	static const struct timespec nap = {.tv_nsec = NAP_MS * 1000000};
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	for (unsigned waited = 0;; waited += NAP_MS) {
		if (fcntl(fd, F_OFD_SETLK, &whole) == 0 || (errno != EAGAIN && errno != EACCES))
			return true;
		if (waited >= wait_ms)
			return false;
		nanosleep(&nap, NULL);
	}
}

bool ss_ring_open(struct ss_ring_file *f, const char *path, unsigned wait_ms, char *err,
		  size_t err_size, enum ss_ring_refusal *why)
{
	struct ss_trace_header h = {0};
	struct stat st;

	*why = SS_RING_WRONG;
	*f = (struct ss_ring_file){
		.fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW)};
	if (f->fd < 0 || fstat(f->fd, &st) != 0) {
		snprintf(err, err_size, "%s: %s", path, strerror(errno));
		goto error;
	}
	const char *wrong = st.st_uid != geteuid() && geteuid() != 0 ? "another user's" :
			    !S_ISREG(st.st_mode) || pread(f->fd, &h, sizeof(h), 0) != sizeof(h) ?
								       "no recording" :
								       check(&h, &st, why);
	if (!wrong && !lock(f->fd, wait_ms)) {
		*why = SS_RING_LOCKED;
		wrong = "another process has it locked";
	}
	if (wrong) {
		snprintf(err, err_size, "%s: %s", path, wrong);
		goto error;
	}
	f->mapped = h.header_size;
	f->total = h.ring_blocks;
	void *map = mmap(NULL, f->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (map == MAP_FAILED) {
		snprintf(err, err_size, "%s: %s", path, strerror(errno));
		goto error;
	}
	ss_cut_guard_mapping(map, f->mapped); /* the program's file may be cut */
	f->header = map;
	f->ring = (void *)(f->header + 1);
	return true;

error:
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	return false;
}

void ss_ring_close(struct ss_ring_file *f)
{
	ss_cut_guard_end(f->header);
	munmap(f->header, f->mapped);
	close(f->fd); /* the lock ends with it */
}

struct ss_ring_block *ss_ring_blocks(const struct ss_ring_file *f, size_t *count)
{
	uint32_t next = __atomic_load_n(&f->ring->next, __ATOMIC_ACQUIRE);
	uint32_t total = f->total;
	struct ss_ring_block *b = malloc((total + 1u) * sizeof(*b));

	*count = 0;
	for (uint32_t n = 0; b && n < next && n < total; n++) {
		struct ss_trace_block head;
		struct ss_ring_block *to = &b[*count];
		if (ss_trace_read_at(f->fd, &head, sizeof(head), (uint64_t)offset_of(f, n)) !=
			    sizeof(head) ||
		    head.magic == 0)
			continue; /* free, or about to be used */
		*to = (struct ss_ring_block){.number = n, .magic = head.magic};
		if (head.magic != SS_TRACE_BLOCK_MAGIC) {
			(void)ss_trace_read_at(f->fd, &to->tail, sizeof(to->tail),
					       (uint64_t)offset_of(f, n + 1) - sizeof(to->tail));
		}
		++*count;
	}
	return b;
}

void ss_ring_read(const struct ss_ring_file *f, uint32_t number, uint8_t *data)
{
	size_t got = ss_trace_read_at(f->fd, data, SS_TRACE_BLOCK_SIZE,
				      (uint64_t)offset_of(f, number));

	memset(data + got, 0, SS_TRACE_BLOCK_SIZE - got);
}

/* The number of a free block; UINT32_MAX: there is none. */
static uint32_t take(struct ss_ring_file *f)
{
	uint32_t total = f->total;

	for (uint32_t word = 0; word < (total + 63) / 64; word++) {
		uint64_t bits = __atomic_load_n(&f->ring->free[word], __ATOMIC_RELAXED);
		while (bits) {
			uint32_t bit = (uint32_t)__builtin_ctzll(bits);
			uint64_t old = __atomic_fetch_and(&f->ring->free[word], ~(1ull << bit),
							  __ATOMIC_ACQ_REL);
			if (old >> bit & 1)
				return word * 64 + bit;
			bits = old & ~(1ull << bit);
		}
	}
	uint32_t next = __atomic_load_n(&f->ring->next, __ATOMIC_RELAXED);
	while (next < total)
		if (__atomic_compare_exchange_n(&f->ring->next, &next, next + 1, true,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return next;
	errno = ENOSPC;
	return UINT32_MAX;
}

uint32_t ss_ring_add(struct ss_ring_file *f, const uint8_t *data)
{
	uint32_t number = take(f);
	size_t done = 0;

	while (number != UINT32_MAX && done < SS_TRACE_BLOCK_SIZE) {
		ssize_t n = pwrite(f->fd, data + done, SS_TRACE_BLOCK_SIZE - done,
				   offset_of(f, number) + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int err = n < 0 ? errno : ENOSPC;
			ss_ring_free(f, number, false);
			errno = err;
			return UINT32_MAX;
		}
		done += (size_t)n;
	}
	return number;
}

void ss_ring_free(struct ss_ring_file *f, uint32_t number, bool program)
{
	static const uint8_t zeros[4096];

	/* A hole reads as 0, as the program expects of a new block. Some filesystems have none. */
	if (fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset_of(f, number),
		      SS_TRACE_BLOCK_SIZE) != 0) {
		for (uint32_t at = 0; at < SS_TRACE_BLOCK_SIZE; at += sizeof(zeros)) {
			(void)!pwrite(f->fd, zeros, sizeof(zeros),
				      offset_of(f, number) + (off_t)at);
		}
	}
	__atomic_fetch_or(&f->ring->free[number / 64], 1ull << number % 64, __ATOMIC_ACQ_REL);
	if (program)
		__atomic_fetch_sub(&f->ring->used, 1, __ATOMIC_ACQ_REL);
}
