/* SPDX-License-Identifier: MIT */
/*
 * The tools `init` and `unused`. Each new block is filled with a word of its own, in the order of
 * the stream that allocates. If a copy to the host carries only this word, the copied bytes were
 * never written. If a freed block contains only this word, the block was never written. A block
 * whose fill failed has no word, so it makes no finding.
 *
 * On the software device kernels do not run, so a launch there counts as a write to every block.
 *
 * No lock.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "driver/rocm/rocm.h"
#include "shim/check/call.h"
#include "shim/check/host_memory.h"
#include "shim/check/init.h"
#include "shim/check/read_back.h"
#include "shim/check/skips.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"

#define BYTES_MOST ((size_t)64 << 20) /* larger blocks are not read */

/* Numbers of blocks: the last one, and the last one at a launch */
static _Atomic uint64_t newest, written;

static uint32_t word_of(uint64_t block)
{
	return (uint32_t)((block + 0x5eed) * 0x9e3779b97f4a7c15ull >> 32) | 1;
}

static bool is_on(void)
{
	return (ss_options.check & (SS_CHECK_INIT | SS_CHECK_UNUSED)) && !ss_capture_live() &&
	       !ss_exiting();
}

static bool is_software_device(void)
{
	static atomic_int known; /* 1: no, 2: yes */

	if (!atomic_load(&known))
		atomic_store(&known, dlsym(RTLD_DEFAULT, "somasim_fail") ? 2 : 1);
	return atomic_load(&known) == 2;
}

void ss_init_launched(void)
{
	if ((ss_options.check & (SS_CHECK_INIT | SS_CHECK_UNUSED)) && is_software_device())
		atomic_store(&written, atomic_load(&newest));
}

void ss_init_fill(struct ss_timeline *tl, void *ptr)
{
	struct ss_finding about;
	uint64_t last;

	if (!is_on())
		return;
	(void)ss_check_block(ss_check_state, ptr, &about);
	if (!about.block || about.size < sizeof(uint32_t))
		return;
	for (last = atomic_load(&newest); last < about.block;)
		if (atomic_compare_exchange_weak(&newest, &last, about.block))
			break;
	(void)ss_fill_words(tl, ptr, word_of(about.block), about.size / sizeof(uint32_t));
}

/* The number of bytes, from about->address on, that still have their first value. */
static size_t bytes_left(const unsigned char *bytes, size_t count, const struct ss_finding *about)
{
	uint64_t at = about->address - about->base, end = about->size / 4 * 4;
	uint32_t word = word_of(about->block);
	size_t left = 0;

	for (size_t i = 0; i < count && at + i < end; i++)
		left += bytes[i] == ((const unsigned char *)&word)[(at + i) % 4];
	return left;
}

static bool is_written_by_now(const struct ss_finding *about)
{
	return about->block <= atomic_load(&written);
}

static void compare_copy(const unsigned char *bytes, size_t count, const struct ss_finding *about)
{
	struct ss_finding f = *about;
	size_t left = bytes_left(bytes, count, about);

	f.fault = SS_FAULT_UNINITIALIZED;
	if (left * 100 >= count * ss_options.check_init_percent)
		ss_check_changed(ss_check_state, &f, f.address - f.base, left);
}

/* Is this memory, which is not ours, host memory? */
static bool is_host(const void *ptr)
{
	hipPointerAttribute_t a;
	int earlier = ss_rocm_error_earlier();
	hipError_t err;

	if (ss_check_is_host_memory(ptr))
		return true;
	err = REAL(hipPointerGetAttributes, &a, ptr);
	if (err != hipSuccess)
		ss_rocm_error_restore(earlier, err);
	/* Up to 5.x this query is an error for memory that is neither pinned nor of a device. */
	return err != hipSuccess || a.hostPointer || !a.devicePointer;
}

void ss_init_copied(struct ss_timeline *tl, const void *from, size_t bytes, const void *to)
{
	struct ss_finding about;

	/* A program may well write the same word in a few bytes. */
	if (!is_on() || !(ss_options.check & SS_CHECK_INIT) || bytes < 16 || bytes > BYTES_MOST)
		return;
	(void)ss_check_block(ss_check_state, from, &about);
	if (!about.block || is_written_by_now(&about) ||
	    (uintptr_t)from - about.base + bytes > about.size || !is_host(to))
		return;
	about.address = (uintptr_t)from;
	about.use = (struct ss_check_site){.what = ss_call_name(), .stack = ss_call_stack()};
	if (!ss_read_later(tl, from, bytes, &about, compare_copy))
		ss_check_skip_bytes();
}

static void compare_block(const unsigned char *bytes, size_t count, const struct ss_finding *about)
{
	struct ss_finding f = *about;

	f.fault = SS_FAULT_UNUSED;
	if (bytes_left(bytes, count, about) == count)
		ss_check_changed(ss_check_state, &f, 0, count);
}

void ss_init_freeing(struct ss_timeline *tl, const void *ptr)
{
	struct ss_finding about;
	size_t count;

	if (!is_on() || !(ss_options.check & SS_CHECK_UNUSED))
		return;
	(void)ss_check_block(ss_check_state, ptr, &about);
	count = about.size / 4 * 4;
	if (!about.block || about.base != (uintptr_t)ptr || !count || is_written_by_now(&about))
		return;
	about.address = about.base;
	about.free = (struct ss_check_site){.what = ss_call_name(), .stack = ss_call_stack()};
	if (count > BYTES_MOST ||
	    !(tl ? ss_read_later(tl, ptr, count, &about, compare_block) :
		   (about.classic || about.alloc.stream.dev == ss_current_device(NULL)) &&
			      ss_read_wait() && ss_read_now(ptr, count, &about, compare_block)))
		ss_check_skip_bytes();
}
