/* SPDX-License-Identifier: MIT */
/*
 * Counts the openings of each block that this process exported and imported itself.
 *
 * Locks: list_lock (the list of blocks). Leaf.
 */
#include <pthread.h>
#include <stdlib.h>

#include "shim/process/service.h"
#include "shim/share/export.h"
#include "shim/share/self_import.h"

struct opened {
	void *ptr;
	uint64_t id; /* id of the block, because another block may lie at ptr later */
	unsigned count;
	struct opened *next;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened *list;
atomic_int ss_self_imports; /* number of entries */

bool ss_self_import_add(const struct ss_handle *h, void **ptr, hipError_t *err)
{
	struct ss_block_info info;
	struct opened *s;
	uint64_t serial;
	char *segment = ss_export_segment(h, &serial);

	if (!segment)
		return false;
	*err = hipErrorInvalidValue;
	/* The segment may have been released, and another one may have its address. */
	if (!ss_ipc_exported(ss_core, segment + h->offset, serial) ||
	    !ss_lookup(ss_core, segment + h->offset, &info) || !info.live ||
	    info.base != segment + h->offset || info.size != h->size)
		return true;
	pthread_mutex_lock(&list_lock);
	for (s = list; s && (s->ptr != info.base || s->id != info.id); s = s->next)
		;
	if (!s && (s = calloc(1, sizeof(*s)))) {
		s->ptr = info.base;
		s->id = info.id;
		s->next = list;
		list = s;
		atomic_fetch_add(&ss_self_imports, 1);
	}
	if (s)
		s->count++;
	pthread_mutex_unlock(&list_lock);
	*err = s ? hipSuccess : hipErrorOutOfMemory;
	if (s)
		*ptr = info.base;
	return true;
}

bool ss_self_import_release(void *ptr)
{
	struct ss_block_info info;
	struct opened **at, *s;
	bool more;

	if (!ss_lookup(ss_core, ptr, &info) || !info.live || info.base != ptr)
		return false;
	pthread_mutex_lock(&list_lock);
	for (at = &list; *at && ((*at)->ptr != ptr || (*at)->id != info.id); at = &(*at)->next)
		;
	s = *at;
	more = s != NULL;
	if (s && !--s->count) {
		*at = s->next;
		free(s);
		atomic_fetch_sub(&ss_self_imports, 1);
	}
	pthread_mutex_unlock(&list_lock);
	return more;
}
