/* SPDX-License-Identifier: MIT */
/* Allocations and frees of blocks with their padding, of host memory, and of pools. */
#include <string.h>

#include "shim/check/call.h"
#include "shim/check/host_memory.h"
#include "shim/check/init.h"
#include "shim/check/inside.h"
#include "shim/check/padding.h"
#include "shim/check/read_back.h"
#include "shim/check/unbegun.h"

size_t ss_check_size(size_t size)
{
	size_t padding = ss_padding_bytes(), room;

	/* The end of a block, which kernels are often given, is never the start of another one. */
	return size && !__builtin_add_overflow(size, padding ? padding : 1, &room) ? room : size;
}

void ss_check_allocated(struct ss_timeline *tl, void *ptr, size_t size, size_t room)
{
	bool ask = (ss_options.check & SS_CHECK_GUARD) || ss_options.check_front;
	struct ss_block_info info = {0};
	size_t front = 0, behind;
	bool filled = false;

	if (ask && ss_lookup(ss_core, ptr, &info)) {
		room = info.guarded ? info.room : room;
		front = ss_padding_front(info.front);
	}
	behind = ss_padding_bytes() ? room - size : 0;
	if (front || behind)
		filled = ss_padding_fill(tl, ptr, size, front, behind);
	ss_check_memory_seen(ptr);
	struct ss_mark mark = tl ? ss_timeline_mark(tl) : (struct ss_mark){0};

	ss_check_alloc(ss_check_state, ptr, size, front, room, tl, ss_call_name(), ss_call_stack());
	if (filled) {
		ss_check_filled(ss_check_state, ptr, behind, mark.slot, mark.n);
		ss_padding_prove(tl, ptr, front, behind);
	}
	ss_init_fill(tl, ptr);
}

size_t ss_check_asked(const void *ptr, size_t size)
{
	struct ss_finding about;

	(void)ss_check_block(ss_check_state, ptr, &about);
	return about.block ? about.size : size;
}

uint64_t ss_check_left(const void *ptr, uint64_t left)
{
	struct ss_finding about;
	uint64_t at;

	(void)ss_check_block(ss_check_state, ptr, &about);
	at = (uintptr_t)ptr - about.base;
	return !about.block ? left : at < about.size ? about.size - at : 0;
}

static void read_padding(struct ss_timeline *tl, void *ptr)
{
	struct ss_finding about;
	uint64_t padding = ss_check_block(ss_check_state, ptr, &about);

	if (!padding && !about.front)
		return;
	about.free = (struct ss_check_site){.what = ss_call_name(), .stack = ss_call_stack()};
	ss_padding_read(tl, &about, padding);
}

void ss_check_freeing(struct ss_timeline *tl, void *ptr)
{
	struct ss_check_unbegun unbegun[SS_UNBEGUN_ROOM];

	ss_unbegun(unbegun);
	ss_read_arrived();
	if (ss_options.check & SS_CHECK_BOUNDS)
		read_padding(tl, ptr);
	ss_init_freeing(tl, ptr);
	if (ss_check_free(ss_check_state, ptr, tl, unbegun, ss_call_name(), ss_call_stack()))
		ss_call_of_thread()->freed = ptr;
}

bool ss_check_not_freed(void *ptr)
{
	if (ss_call_of_thread()->freed != ptr)
		return false;
	ss_check_free_failed(ss_check_state, ptr);
	return true;
}

void ss_check_freed(struct ss_timeline *tl, void *ptr, bool ok)
{
	struct ss_check_site first;

	if (!ok && ss_check_not_freed(ptr))
		return;
	/* hipFree, which some releases allow for pinned memory */
	if (!tl && ss_check_is_pinned(ptr))
		ss_check_wrong_free(ss_check_state, ptr, ss_call_name(), ss_call_stack());
	else if (!ok && ss_check_host_memory_was(ptr, &first))
		ss_check_freed_twice(ss_check_state, ptr, &first, ss_call_name(), ss_call_stack());
	else if (!ok)
		ss_check_bad_free(ss_check_state, ptr, tl, ss_call_name(), ss_call_stack());
	if (ok)
		ss_check_host_memory_gone(ptr);
}

void ss_check_host_memory_gone(void *ptr)
{
	struct ss_check_site site = {.what = ss_call_name(), .stack = ss_call_stack()};

	ss_call_of_thread()->gone = ss_check_host_memory_end(ptr, &site) ? ptr : NULL;
}

void ss_check_host_memory_kept(void *ptr)
{
	if (ss_call_of_thread()->gone == ptr)
		ss_check_host_memory_back(ptr);
}

void ss_check_handing_out(struct ss_timeline *tl, void *ptr, size_t size)
{
	ss_check_call("somashim_handed_out");
	if (tl && !ss_timeline_capturing(tl))
		ss_check_handed_out(ss_check_state, ptr, size, tl, ss_call_name(), ss_call_stack());
}

void ss_check_returning(struct ss_timeline *tl, void *ptr)
{
	struct ss_check_unbegun unbegun[SS_UNBEGUN_ROOM];

	ss_check_call("somashim_returned");
	if (!tl || ss_timeline_capturing(tl))
		return;
	ss_unbegun(unbegun);
	ss_check_returned(ss_check_state, ptr, tl, unbegun, ss_call_name(), ss_call_stack());
}

void ss_check_host_free(void *ptr)
{
	struct ss_finding about;

	(void)ss_check_block(ss_check_state, ptr, &about);
	if (about.block)
		ss_check_wrong_free(ss_check_state, ptr, ss_call_name(), ss_call_stack());
}

void ss_check_pool_destroyed(hipMemPool_t handle)
{
	ss_check_pool_end(ss_check_state, handle, ss_call_name(), ss_call_stack());
}

void ss_check_pool_used(hipMemPool_t handle)
{
	ss_check_pool_use(ss_check_state, handle, ss_call_name(), ss_call_stack());
}
