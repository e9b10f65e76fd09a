/* SPDX-License-Identifier: MIT */
/*
 * How a block inside a segment is named to another process.
 *
 * The runtime's handle is [0:32) HSA handle, [32:40) size, [40:48) offset, [48:52)
 * process, [52:56) the owner's device in newer ones, the rest unused (observed on
 * 7.2.4, 6.4.3, 5.7.1). Opening it ignores the offset, so one with an offset in it
 * would show a plain importer the wrong bytes. A size of 0 is refused by every
 * version: that is what marks ours, which has no use for the size (segments are
 * whole frames) and keeps the rest where it was:
 *
 *   [32:40) 0
 *   [40:48) 4 bits version, 24 bits frames of the segment, 36 bits grains of offset
 *   [56:64) 19 bits check, 45 bits size of the block
 *
 * What arrives may be anything. The check catches chance; what a forger gets is
 * no more than the real handle gives him, as the importer verifies the range
 * against what was really mapped.
 */
#include <string.h>

#include "shim/handle.h"

#define VERSION 1ull
#define FRAME (2ull << 20)
#define GRAIN 512ull
#define SIZE_BITS 45
#define OFFSET_BITS 36
#define FRAME_BITS 24

enum { AT_SIZE = 32, AT_OFFSET = 40, AT_PID = 48, AT_REST = 56 };

static uint64_t word(const void *bytes, size_t at)
{
	uint64_t v;

	memcpy(&v, (const char *)bytes + at, sizeof(v));
	return v;
}

static void set_word(void *bytes, size_t at, uint64_t v)
{
	memcpy((char *)bytes + at, &v, sizeof(v));
}

/* FNV-1a of everything with the check itself left out. */
static uint64_t check(const void *bytes, uint64_t size)
{
	const unsigned char *b = bytes;
	uint64_t h = 14695981039346656037ull;

	for (size_t i = 0; i < AT_REST; i++)
		h = (h ^ b[i]) * 1099511628211ull;
	for (int i = 0; i < 64; i += 8)
		h = (h ^ (size >> i & 255)) * 1099511628211ull;
	return (h ^ h >> 32) & ((1u << (64 - SIZE_BITS)) - 1);
}

bool ss_handle_pack(const struct ss_handle *h, void *out)
{
	if (word(h->real, AT_SIZE) != h->segment_size || word(h->real, AT_OFFSET) ||
	    word(h->real, AT_REST) || h->segment_size % FRAME || h->offset % GRAIN ||
	    h->segment_size / FRAME >> FRAME_BITS || h->offset / GRAIN >> OFFSET_BITS ||
	    !h->size || h->size >> SIZE_BITS)
		return false;
	memcpy(out, h->real, SS_HANDLE_BYTES);
	set_word(out, AT_SIZE, 0);
	set_word(out, AT_OFFSET, VERSION << (FRAME_BITS + OFFSET_BITS) |
				 h->segment_size / FRAME << OFFSET_BITS | h->offset / GRAIN);
	set_word(out, AT_REST, check(out, h->size) << SIZE_BITS | h->size);
	return true;
}

enum ss_handle_kind ss_handle_parse(const void *bytes, struct ss_handle *h)
{
	uint64_t where = word(bytes, AT_OFFSET), rest = word(bytes, AT_REST);

	memset(h, 0, sizeof(*h));
	memcpy(h->real, bytes, SS_HANDLE_BYTES);
	memcpy(&h->pid, h->real + AT_PID, sizeof(h->pid));
	h->segment_size = word(bytes, AT_SIZE);
	h->size = h->segment_size;
	/* No offset is as large as our version makes it: ours, but spoilt. */
	if (h->segment_size)
		return where >> (FRAME_BITS + OFFSET_BITS) == VERSION ? SS_HANDLE_BAD
								      : SS_HANDLE_REAL;
	h->size = rest & ((1ull << SIZE_BITS) - 1);
	h->offset = (where & ((1ull << OFFSET_BITS) - 1)) * GRAIN;
	h->segment_size = (where >> OFFSET_BITS & ((1ull << FRAME_BITS) - 1)) * FRAME;
	if (where >> (FRAME_BITS + OFFSET_BITS) != VERSION ||
	    rest >> SIZE_BITS != check(bytes, h->size) || !h->size || !h->offset ||
	    h->offset >= h->segment_size || h->size > h->segment_size - h->offset)
		return SS_HANDLE_BAD;
	set_word(h->real, AT_SIZE, h->segment_size);
	set_word(h->real, AT_OFFSET, 0);
	set_word(h->real, AT_REST, 0);
	return SS_HANDLE_OURS;
}
