/* SPDX-License-Identifier: MIT */
/*
 * The table of segments of other processes that are mapped here, and of the blocks that are open in
 * them. The runtime maps whole segments. The blocks of one segment share its mapping, which is
 * closed with the last block.
 *
 * The runtime opens and closes each handle that the runtime of another process made. The table
 * records these openings as well, because a block of the same segment may be opened later.
 *
 * Locks: mappings_lock. Leaf.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/alloc/block_attributes.h"
#include "shim/share/mappings.h"
#include "shim/stream/sync_watch.h"

struct block {
	size_t offset, size;
	enum ss_via via;
	uint64_t devices;          /* devices on which the block was opened, a bit each */
	unsigned count, buffer_id; /* number of openings; id for the attribute BUFFER_ID */
	struct block *next;
};

struct mapping {
	char *base;
	size_t size;
	unsigned char handle[SS_HANDLE_BYTES];
	uint32_t serial;
	int dev;          /* the device that opened it first */
	uint64_t devices; /* all devices that opened it: since 7.0 one mapping may serve several */
	unsigned flags;
	unsigned users, opens; /* openings by the program; openings by us */
	bool shared;           /* some block was opened by a handle of ours */
	/* To be closed once the devices in `waits`, and in `devices`, are idle */
	bool ending;
	uint64_t waits;
	uint64_t since; /* number of the last free that did not wait */
	struct block *blocks;
	struct mapping *next;
};

static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping *mappings;
static uint64_t frees;
atomic_int ss_imports;

/* ---- the table; mappings_lock held -------------------------------------- */

/* Since 7.0 the HSA handle names process and address only, and another segment may have that
 * address now. Our own handles have a serial as well. */
static struct mapping *find_handle(const struct ss_handle *h, int dev)
{
	struct mapping *m;

	for (m = mappings; m; m = m->next)
		if (m->dev == dev && !memcmp(m->handle, h->real, sizeof(m->handle)) &&
		    m->serial == h->serial)
			break;
	return m;
}

static struct mapping *find_address(const void *ptr)
{
	struct mapping *m;

	for (m = mappings; m; m = m->next)
		if ((uintptr_t)ptr - (uintptr_t)m->base < m->size)
			break;
	return m;
}

static void set_ending(struct mapping *m, bool ending)
{
	if (m->ending != ending)
		atomic_fetch_add(&ss_sync_waiting, ending ? 1 : -1);
	m->ending = ending;
}

/* NULL: out of host memory. */
static struct block *attach(struct mapping *m, const struct ss_handle *h, bool ours,
			    enum ss_via via, int dev)
{
	struct block *b;

	for (b = m->blocks; b && (b->offset != h->offset || b->via != via); b = b->next)
		;
	if (!b) {
		b = calloc(1, sizeof(*b));
		if (!b)
			return NULL;
		b->offset = h->offset;
		b->via = via;
		b->buffer_id = ss_buffer_id_new();
		b->next = m->blocks;
		m->blocks = b;
	}
	b->size = h->size;
	b->count++;
	m->users++;
	if (m->users >= m->opens)
		set_ending(m, false);
	m->shared |= ours;
	b->devices |= 1ull << dev;
	m->devices |= 1ull << dev;
	return b;
}

static void detach(struct mapping *m, struct block *b)
{
	struct block **at;

	m->users--;
	if (--b->count)
		return;
	for (at = &m->blocks; *at != b; at = &(*at)->next)
		;
	*at = b->next;
	free(b);
}

static struct mapping *add(const struct ss_handle *h, void *base, int dev, unsigned flags)
{
	struct mapping *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->base = base;
	m->size = h->segment_size;
	m->serial = h->serial;
	memcpy(m->handle, h->real, sizeof(m->handle));
	m->dev = dev;
	m->flags = flags;
	m->next = mappings;
	mappings = m;
	if (m->serial)
		atomic_fetch_add(&ss_imports, 1);
	return m;
}

static void drop(struct mapping *m)
{
	struct mapping **at;
	struct block *b;

	for (at = &mappings; *at != m; at = &(*at)->next)
		;
	*at = m->next;
	if (m->serial)
		atomic_fetch_sub(&ss_imports, 1);
	set_ending(m, false);
	while ((b = m->blocks)) {
		m->blocks = b->next;
		free(b);
	}
	free(m);
}

/* ---- open --------------------------------------------------------------- */

bool ss_mapping_reopen(const struct ss_handle *h, bool ours, enum ss_via via, int dev, int flags,
		       void **ptr, hipError_t *err)
{
	struct mapping *m;
	bool found;

	pthread_mutex_lock(&mappings_lock);
	m = find_handle(h, dev);
	found = m && (ours || m->shared);
	if (found) {
		/* The runtime accepted the flags when it mapped the segment. */
		*err = flags >= 0 && (unsigned)flags != m->flags ? hipErrorInvalidValue :
		       attach(m, h, ours, via, dev)              ? hipSuccess :
								   hipErrorOutOfMemory;
		if (*err == hipSuccess)
			*ptr = m->base + h->offset;
	}
	pthread_mutex_unlock(&mappings_lock);
	return found;
}

hipError_t ss_mapping_add(const struct ss_handle *h, bool ours, enum ss_via via, void *base,
			  int dev, unsigned flags, void **ptr, void **close)
{
	struct mapping *m, *same = NULL;
	hipError_t err = hipErrorOutOfMemory;

	*close = base;
	pthread_mutex_lock(&mappings_lock);
	/* Since 7.0 the runtime itself counts openings of one handle, and confuses a segment that
	 * its owner has freed with the segment that has that address now. */
	for (m = mappings; m && m->base != base; m = m->next)
		;
	if (m) /* even after a failure: to the runtime the mapping belongs to dev now */
		m->devices |= 1ull << dev;
	if (m && m->serial != h->serial) {
		pthread_mutex_unlock(&mappings_lock);
		return hipErrorInvalidValue;
	}
	if (!m && ours)
		same = find_handle(h, dev); /* another thread has mapped it meanwhile */
	if (same)
		m = same;
	else if (!m)
		m = add(h, base, dev, flags);
	if (m && !same)
		m->opens++; /* before attach() compares `opens` with `users` */
	if (m && attach(m, h, ours, via, dev)) {
		*ptr = m->base + h->offset;
		err = hipSuccess;
		if (!same)
			*close = NULL;
	} else if (m && !same && !--m->opens) {
		drop(m);
	}
	pthread_mutex_unlock(&mappings_lock);
	return err;
}

/* ---- close -------------------------------------------------------------- */

/* The block that starts at ptr. If no handle of ours opened the mapping, any address in the mapping
 * names it, as for the runtime. */
static struct block *find_block(struct mapping *m, const void *ptr, enum ss_via via)
{
	size_t offset = (size_t)((const char *)ptr - m->base);
	struct block *b;

	for (b = m->blocks; b && (b->offset != offset || b->via != via); b = b->next)
		;
	return b || m->shared || via != SS_VIA_HANDLE ? b : m->blocks;
}

static void describe(const struct mapping *m, const struct block *b, struct ss_mapping_close *d)
{
	memcpy(d->block.real, m->handle, sizeof(m->handle));
	d->block.segment_size = m->size;
	d->block.serial = m->serial;
	d->block.offset = b->offset;
	d->block.size = b->size;
	d->base = m->base;
	d->via = b->via;
	d->flags = m->flags;
	d->buffer_id = b->buffer_id;
}

struct ss_mapping_close ss_mapping_release(void *ptr, enum ss_via via, int later)
{
	struct ss_mapping_close d = {0};
	struct mapping *m;
	struct block *b;

	pthread_mutex_lock(&mappings_lock);
	m = find_address(ptr);
	d.known = m != NULL;
	d.shared = m && m->shared;
	b = m ? find_block(m, ptr, via) : NULL;
	if (b) {
		d.open = true;
		d.devices = b->devices;
		d.dev = __builtin_ctzll(b->devices);
		describe(m, b, &d);
		if (later >= 0) {
			m->waits |= b->devices | 1ull << later;
			m->since = ++frees;
		}
		detach(m, b);
		/* An earlier free may have left devices without a wait. */
		if (m->users < m->opens && (later >= 0 || m->waits & ~d.devices)) {
			set_ending(m, true);
		} else if (m->users < m->opens) {
			d.close = m->shared ? m->base : ptr;
			m->opens--;
			if (!m->opens)
				drop(m);
		}
	}
	pthread_mutex_unlock(&mappings_lock);
	return d;
}

void ss_mapping_restore(const struct ss_mapping_close *d)
{
	struct mapping *m;
	struct block *b;

	pthread_mutex_lock(&mappings_lock);
	for (m = mappings; m && m->base != d->base; m = m->next)
		;
	if (!m)
		m = add(&d->block, d->base, d->dev, d->flags);
	if (m && m->serial == d->block.serial) {
		m->opens++;
		b = attach(m, &d->block, d->shared, d->via, d->dev);
		if (b) {
			b->buffer_id = d->buffer_id;
			b->devices |= d->devices;
			m->devices |= d->devices;
		} else if (!--m->opens) {
			drop(m);
		}
	}
	pthread_mutex_unlock(&mappings_lock);
}

struct ss_mapping_close ss_mapping_replaced(const struct ss_handle *h, void *base)
{
	struct ss_mapping_close d = {0};
	struct mapping *m;

	pthread_mutex_lock(&mappings_lock);
	for (m = mappings; m && m->base != base; m = m->next)
		;
	if (m && !m->users && m->serial != h->serial) {
		d.close = base;
		d.opens = m->opens;
		d.dev = m->dev;
		d.devices = m->waits | m->devices;
		drop(m);
	}
	pthread_mutex_unlock(&mappings_lock);
	return d;
}

uint64_t ss_mappings_waiting(uint64_t *asked)
{
	uint64_t waits = 0;

	pthread_mutex_lock(&mappings_lock);
	*asked = frees;
	for (struct mapping *m = mappings; m; m = m->next)
		if (m->ending)
			waits |= m->waits | m->devices;
	pthread_mutex_unlock(&mappings_lock);
	return waits;
}

/* The real close waits for one of the devices that opened the mapping, and only the runtime knows
 * which one. So all these devices must be idle. */
void *ss_mapping_take_idle(uint64_t idle, uint64_t asked, int *dev)
{
	struct mapping *m;
	void *base = NULL;

	pthread_mutex_lock(&mappings_lock);
	for (m = mappings; m; m = m->next)
		if (m->ending && m->since <= asked && !((m->waits | m->devices) & ~idle))
			break;
	if (m) {
		*dev = m->dev;
		base = m->base;
		m->opens--;
		if (!m->opens)
			drop(m);
		else if (m->opens <= m->users)
			set_ending(m, false);
	}
	pthread_mutex_unlock(&mappings_lock);
	return base;
}

/* ---- questions ---------------------------------------------------------- */

/* The smallest block around ptr. A handle of the runtime may have opened the whole segment beside
 * single blocks. */
static struct block *block_at(const struct mapping *m, const void *ptr)
{
	size_t at = (size_t)((const char *)ptr - m->base);
	struct block *best = NULL;

	for (struct block *b = m->blocks; b; b = b->next)
		if (at - b->offset < b->size && (!best || b->size < best->size))
			best = b;
	return best;
}

bool ss_import_find(const void *ptr, struct ss_block_info *out, unsigned *buffer_id)
{
	struct mapping *m;
	struct block *b = NULL;

	if (likely(!atomic_load_explicit(&ss_imports, memory_order_relaxed)))
		return false;
	pthread_mutex_lock(&mappings_lock);
	m = find_address(ptr);
	if (m && m->serial)
		b = block_at(m, ptr);
	if (b) {
		out->base = m->base + b->offset;
		out->size = b->size;
		out->device = m->dev;
		*buffer_id = b->buffer_id;
	}
	pthread_mutex_unlock(&mappings_lock);
	return b != NULL;
}

/* As for our own blocks: a command may use the bytes up to the next possible start of a block of
 * the pool, and may touch memory that was freed to a pool until the memory is closed. */
bool ss_import_left_slow(const void *ptr, uint64_t *left)
{
	const struct mapping *m;
	bool known;

	*left = 0;
	pthread_mutex_lock(&mappings_lock);
	m = find_address(ptr);
	known = m && m->serial && !m->ending;
	for (const struct block *b = known ? m->blocks : NULL; b; b = b->next) {
		size_t at = (size_t)((const char *)ptr - m->base) - b->offset;
		size_t size = b->size;

		if (b->via == SS_VIA_POOL)
			size = (size + SS_HANDLE_GRAIN - 1) / SS_HANDLE_GRAIN * SS_HANDLE_GRAIN;
		if (at < size && size - at > *left)
			*left = size - at;
	}
	pthread_mutex_unlock(&mappings_lock);
	return known;
}

bool ss_import_inside(const void *ptr)
{
	const struct mapping *m;
	const struct block *b;
	bool inside;

	pthread_mutex_lock(&mappings_lock);
	m = find_address(ptr);
	b = m ? block_at(m, ptr) : NULL;
	inside = b && b->offset;
	pthread_mutex_unlock(&mappings_lock);
	return inside;
}

void ss_import_reset(int dev)
{
	struct mapping *m, *next;

	pthread_mutex_lock(&mappings_lock);
	for (m = mappings; m; m = next) {
		next = m->next;
		if (m->dev == dev)
			drop(m);
	}
	pthread_mutex_unlock(&mappings_lock);
}
