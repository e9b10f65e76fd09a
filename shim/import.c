/* SPDX-License-Identifier: MIT */
/*
 * Memory of other processes. The runtime maps whole segments; the blocks of one
 * segment that are open here share one mapping, which goes with the last of them.
 *
 * Handles that the runtime made itself, for whomever, are opened and closed by it
 * one for one, and only noted: a block of the same segment may come later.
 *
 * Locks: imports_lock. Leaf.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/handle.h"
#include "shim/shim.h"

struct block {
	size_t offset, size;
	unsigned count;
	struct block *next;
};

struct mapping {
	char *base;
	size_t size;
	unsigned char handle[SS_HANDLE_BYTES];
	int dev;
	unsigned flags;
	unsigned users, opens; /* what the program opened; what the runtime did */
	bool shared;           /* some of it was opened by a handle of ours */
	struct block *blocks;
	struct mapping *next;
};

static pthread_mutex_t imports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping *imports;
static _Atomic int shared_count; /* how many mappings are shared */

/* ---- the table; imports_lock held --------------------------------------- */

static struct mapping *find_handle(const struct ss_handle *h, int dev)
{
	struct mapping *m;

	for (m = imports; m; m = m->next)
		if (m->dev == dev && !memcmp(m->handle, h->real, sizeof(m->handle)))
			break;
	return m;
}

static struct mapping *find_address(const void *ptr)
{
	struct mapping *m;

	for (m = imports; m; m = m->next)
		if ((uintptr_t)ptr - (uintptr_t)m->base < m->size)
			break;
	return m;
}

static bool attach(struct mapping *m, size_t offset, size_t size, bool ours)
{
	struct block *b;

	for (b = m->blocks; b && b->offset != offset; b = b->next)
		;
	if (!b) {
		b = calloc(1, sizeof(*b));
		if (!b)
			return false;
		b->offset = offset;
		b->next = m->blocks;
		m->blocks = b;
	}
	b->size = size;
	b->count++;
	m->users++;
	if (ours && !m->shared) {
		m->shared = true;
		atomic_fetch_add(&shared_count, 1);
	}
	return true;
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

static struct mapping *add(const struct ss_handle *h, void *base, size_t size, int dev,
			   unsigned flags)
{
	struct mapping *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->base = base;
	m->size = size;
	memcpy(m->handle, h->real, sizeof(m->handle));
	m->dev = dev;
	m->flags = flags;
	m->next = imports;
	imports = m;
	return m;
}

static void drop(struct mapping *m)
{
	struct mapping **at;
	struct block *b;

	for (at = &imports; *at != m; at = &(*at)->next)
		;
	*at = m->next;
	if (m->shared)
		atomic_fetch_sub(&shared_count, 1);
	while ((b = m->blocks)) {
		m->blocks = b->next;
		free(b);
	}
	free(m);
}

/* ---- open --------------------------------------------------------------- */

/* Is what the runtime mapped as large as the handle says? */
static bool covers(void *base, uint64_t size)
{
	hipDeviceptr_t start = NULL;
	size_t real = 0;

	return REAL(hipMemGetAddressRange, &start, &real, base) != hipSuccess ||
	       (start == base && real >= size);
}

static hipError_t publish(const struct ss_handle *h, bool ours, void *base, int dev,
			  unsigned flags, void **ptr)
{
	struct mapping *m, *same = NULL;
	void *extra = NULL;
	bool ok = false;

	pthread_mutex_lock(&imports_lock);
	/* Since 7.0 the runtime itself counts openings of one handle. */
	for (m = imports; m && m->base != base; m = m->next)
		;
	if (!m && ours)
		same = find_handle(h, dev);
	if (same) /* another thread was faster */
		extra = base;
	else if (!m)
		m = add(h, base, h->segment_size, dev, flags);
	if (same)
		m = same;
	if (m) {
		ok = attach(m, h->offset, h->size, ours);
		if (ok && !extra)
			m->opens++;
		else if (!ok && !m->users)
			drop(m);
		if (ok)
			*ptr = m->base + h->offset;
	}
	pthread_mutex_unlock(&imports_lock);
	if (extra || !ok)
		(void)REAL(hipIpcCloseMemHandle, base);
	return ok ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t do_hipIpcOpenMemHandle(void **ptr, hipIpcMemHandle_t handle, unsigned int flags)
{
	hipIpcMemHandle_t real;
	enum ss_handle_kind kind;
	struct ss_handle h;
	struct mapping *m;
	void *base = NULL;
	hipError_t err;
	bool ours;
	int dev;

	ss_seen(-1, SS_SEEN_IPC);
	kind = ss_handle_parse(&handle, &h);
	dev = ss_current_device(&err);
	if (kind == SS_HANDLE_BAD)
		return ss_fail(hipErrorInvalidValue);
	if (!ptr || dev < 0)
		return ss_said(REAL(hipIpcOpenMemHandle, ptr, handle, flags));
	ours = kind == SS_HANDLE_OURS;
	if (ours && h.pid == (uint32_t)getpid())
		return ss_fail(hipErrorInvalidContext);
	pthread_mutex_lock(&imports_lock);
	m = find_handle(&h, dev);
	if (m && (ours || m->shared)) {
		/* The flags were right when it was mapped. */
		err = flags != m->flags ? hipErrorInvalidValue :
		      attach(m, h.offset, h.size, ours) ? hipSuccess : hipErrorOutOfMemory;
		if (err == hipSuccess)
			*ptr = m->base + h.offset;
		pthread_mutex_unlock(&imports_lock);
		return err == hipSuccess ? ss_said(err) : ss_fail(err);
	}
	pthread_mutex_unlock(&imports_lock);
	memcpy(&real, h.real, sizeof(real));
	err = REAL(hipIpcOpenMemHandle, &base, real, flags);
	if (err != hipSuccess)
		return ss_said(err);
	if (ours && !covers(base, h.segment_size)) {
		(void)REAL(hipIpcCloseMemHandle, base);
		return ss_fail(hipErrorInvalidValue);
	}
	err = publish(&h, ours, base, dev, flags, ptr);
	return err == hipSuccess ? ss_said(err) : ss_fail(err);
}

/* ---- close -------------------------------------------------------------- */

/* The block that starts here; where the runtime alone has opened the mapping, any
 * address in it will do, as for the runtime. */
static struct block *find_block(struct mapping *m, const void *ptr)
{
	size_t offset = (size_t)((const char *)ptr - m->base);
	struct block *b;

	for (b = m->blocks; b && b->offset != offset; b = b->next)
		;
	return b || m->shared ? b : m->blocks;
}

/* The real call waits for the device before it unmaps, and programs tell their
 * peer that they are done when it returns. */
static hipError_t only_wait(int dev)
{
	struct ss_switch s;
	hipError_t err;

	if (ss_exiting() || ss_capture_live() || !ss_switch_open(&s, dev))
		return hipSuccess;
	err = ss_sync_streams(dev);
	ss_switch_close(&s);
	return err;
}

hipError_t do_hipIpcCloseMemHandle(void *ptr)
{
	struct mapping *m;
	struct block *b = NULL;
	bool known, last;
	void *base = ptr;
	hipError_t err;
	int dev = 0;

	pthread_mutex_lock(&imports_lock);
	m = find_address(ptr);
	known = m != NULL;
	last = !known;
	if (m && (b = find_block(m, ptr))) {
		dev = m->dev;
		base = m->shared ? m->base : ptr;
		detach(m, b);
		last = m->users < m->opens;
		if (last)
			m->opens--;
		if (!m->users)
			drop(m);
	}
	pthread_mutex_unlock(&imports_lock);
	if (known && !b)
		return ss_fail(hipErrorInvalidValue);
	/* It has left the table: should the runtime refuse, it stays mapped. */
	err = last ? REAL(hipIpcCloseMemHandle, base) : only_wait(dev);
	return ss_said(err);
}

bool ss_import_find(const void *ptr, void **base, size_t *size)
{
	struct mapping *m;
	struct block *b = NULL;

	if (likely(!atomic_load_explicit(&shared_count, memory_order_relaxed)))
		return false;
	pthread_mutex_lock(&imports_lock);
	m = find_address(ptr);
	if (m && m->shared) {
		size_t at = (size_t)((const char *)ptr - m->base);

		for (b = m->blocks; b && (at - b->offset >= b->size || !b->offset); b = b->next)
			;
		if (b) {
			*base = m->base + b->offset;
			*size = b->size;
		}
	}
	pthread_mutex_unlock(&imports_lock);
	return b != NULL;
}

void ss_import_reset(int dev)
{
	struct mapping *m, *next;

	pthread_mutex_lock(&imports_lock);
	for (m = imports; m; m = next) {
		next = m->next;
		if (m->dev == dev)
			drop(m);
	}
	pthread_mutex_unlock(&imports_lock);
}
