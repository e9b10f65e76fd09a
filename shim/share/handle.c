/* SPDX-License-Identifier: MIT */
/*
 * The format of handles that name a block inside a segment to another process.
 *
 * The runtime's hipIpcMemHandle_t is [0:32) HSA handle, [32:40) size, [40:48) offset, [48:52)
 * process, [52:56) the owner's device in newer releases, and the rest unused (observed on 7.2.4,
 * 6.4.3, 5.7.1). Opening it ignores the offset, so a handle with an offset would show a process
 * without the shim the wrong bytes. Every release refuses a size of 0. So our handles have a size
 * of 0 and use the other words. They need no size of the segment in bytes, since segments are whole
 * frames of 2 MiB:
 *
 *   [32:40) 0
 *   [40:48) 4 bits version, 24 bits frames of the segment, 36 bits grains of offset
 *   [52:56) 16 bits serial, 16 bits device
 *   [56:64) 19 bits check, 45 bits size of the block
 *
 * A block at offset 0 has the runtime's own handle, with a note in the unused bytes:
 *
 *   [56:64) 9 bits check, 12 bits serial, 43 bits size of the block
 *
 * The serial is needed because since 7.0 the HSA handle is only process and address: a later
 * segment at the same address has the same HSA handle.
 *
 * The runtime's hipMemPoolPtrExportData is [0:8) offset, [8:16) size, [16:48) HSA handle, and the
 * runtime ignores offset and size. So our data has an HSA handle that opens nothing until it is
 * unmasked:
 *
 *   [0:8)   32 bits magic (no offset is that large), 32 bits check
 *   [8:16)  as [40:48) above
 *   [16:48) HSA handle, masked
 *   [48:56) as above
 *   [56:64) size of the block
 *
 * An importer may receive any bytes. The check catches accidents. A forger gains no more than the
 * real handle gives, because the importer verifies the range against the real mapping.
 */
#include <string.h>

#include "shim/share/handle.h"

#define VERSION 1ull
#define FRAME (2ull << 20)
#define SIZE_BITS 45
#define NOTE_SIZE_BITS 43 /* ROCr shares no more than 8 TB at a time */
#define SERIAL_BITS 12
#define OFFSET_BITS 36
#define FRAME_BITS 24
#define MAGIC 0xf5304d41ull
#define MASK 0xa5

enum { AT_SIZE = 32, AT_OFFSET = 40, AT_PID = 48, AT_DEVICE = 52, AT_REST = 56 };
enum { PTR_CHECK = 0, PTR_WHERE = 8, PTR_HANDLE = 16, PTR_SIZE = 56, HANDLE_BYTES = 32 };

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

static uint32_t half(const void *bytes, size_t at)
{
	uint32_t v;

	memcpy(&v, (const char *)bytes + at, sizeof(v));
	return v;
}

static void set_half(void *bytes, size_t at, uint32_t v)
{
	memcpy((char *)bytes + at, &v, sizeof(v));
}

/* FNV-1a of the bytes [from, to) and of `more`, folded to `bits` bits. */
static uint64_t check(const void *bytes, size_t from, size_t to, uint64_t more, int bits)
{
	const unsigned char *b = bytes;
	uint64_t h = 14695981039346656037ull;

	for (size_t i = from; i < to; i++)
		h = (h ^ b[i]) * 1099511628211ull;
	for (int i = 0; i < 64; i += 8)
		h = (h ^ (more >> i & 255)) * 1099511628211ull;
	return (h ^ h >> 32) & ((1ull << bits) - 1);
}

/* ---- for handles and pointers ------------------------------------------- */

/* Does the real handle have the known layout, and do all numbers fit in their bits? */
static bool fits(const struct ss_handle *h)
{
	return word(h->real, AT_SIZE) == h->segment_size && !word(h->real, AT_OFFSET) &&
	       !word(h->real, AT_REST) && half(h->real, AT_DEVICE) >> 16 == 0 && h->serial &&
	       h->serial >> SERIAL_BITS == 0 && h->segment_size % FRAME == 0 && h->segment_size &&
	       h->segment_size / FRAME >> FRAME_BITS == 0 && h->offset % SS_HANDLE_GRAIN == 0 &&
	       h->offset < h->segment_size && h->size && h->size <= h->segment_size - h->offset;
}

static uint64_t pack_place(const struct ss_handle *h)
{
	return VERSION << (FRAME_BITS + OFFSET_BITS) | h->segment_size / FRAME << OFFSET_BITS |
	       h->offset / SS_HANDLE_GRAIN;
}

/* Fills *h from `w` and `size`, and restores the words of h->real that our handle uses. False: no
 * handle of ours has such contents. */
static bool unpack(struct ss_handle *h, uint64_t w, uint64_t size)
{
	uint32_t device = half(h->real, AT_DEVICE);

	h->offset = (w & ((1ull << OFFSET_BITS) - 1)) * SS_HANDLE_GRAIN;
	h->segment_size = (w >> OFFSET_BITS & ((1ull << FRAME_BITS) - 1)) * FRAME;
	h->size = size;
	h->serial = device >> 16;
	h->pid = half(h->real, AT_PID);
	set_word(h->real, AT_SIZE, h->segment_size);
	set_word(h->real, AT_OFFSET, 0);
	set_word(h->real, AT_REST, 0);
	set_half(h->real, AT_DEVICE, device & 0xffff);
	return w >> (FRAME_BITS + OFFSET_BITS) == VERSION && fits(h);
}

/* ---- hipIpcMemHandle_t -------------------------------------------------- */

static uint64_t note_check(const void *bytes, uint64_t note)
{
	return check(bytes, 0, AT_REST, note, 64 - SERIAL_BITS - NOTE_SIZE_BITS);
}

bool ss_handle_pack(const struct ss_handle *h, void *out)
{
	uint64_t note;

	if (!fits(h))
		return false;
	memcpy(out, h->real, SS_HANDLE_BYTES);
	if (!h->offset) {
		note = (uint64_t)h->serial << NOTE_SIZE_BITS | h->size;
		if (h->size >> NOTE_SIZE_BITS == 0)
			set_word(out, AT_REST,
				 note_check(out, note) << (SERIAL_BITS + NOTE_SIZE_BITS) | note);
		return true;
	}
	set_word(out, AT_SIZE, 0);
	set_word(out, AT_OFFSET, pack_place(h));
	set_half(out, AT_DEVICE, h->serial << 16 | half(h->real, AT_DEVICE));
	set_word(out, AT_REST,
		 check(out, 0, AT_REST, h->size, 64 - SIZE_BITS) << SIZE_BITS | h->size);
	return true;
}

/* Reads our note in a handle of the runtime, if there is one. */
static void read_note(struct ss_handle *h)
{
	uint64_t rest = word(h->real, AT_REST);
	uint64_t note = rest & ((1ull << (SERIAL_BITS + NOTE_SIZE_BITS)) - 1);
	uint64_t size = note & ((1ull << NOTE_SIZE_BITS) - 1);

	if (!size || size > h->segment_size || !(note >> NOTE_SIZE_BITS) ||
	    rest >> (SERIAL_BITS + NOTE_SIZE_BITS) != note_check(h->real, note))
		return;
	h->size = size;
	h->serial = (uint32_t)(note >> NOTE_SIZE_BITS);
	set_word(h->real, AT_REST, 0);
}

enum ss_handle_kind ss_handle_parse(const void *bytes, struct ss_handle *h)
{
	uint64_t w = word(bytes, AT_OFFSET), rest = word(bytes, AT_REST);
	uint64_t size = rest & ((1ull << SIZE_BITS) - 1);

	memset(h, 0, sizeof(*h));
	memcpy(h->real, bytes, SS_HANDLE_BYTES);
	h->segment_size = word(bytes, AT_SIZE);
	if (h->segment_size) {
		h->size = h->segment_size;
		h->pid = half(bytes, AT_PID);
		/* No real offset is as large as one with our version: a damaged handle
		 * of ours. */
		if (w >> (FRAME_BITS + OFFSET_BITS) == VERSION)
			return SS_HANDLE_BAD;
		read_note(h);
		return SS_HANDLE_REAL;
	}
	if (rest >> SIZE_BITS != check(bytes, 0, AT_REST, size, 64 - SIZE_BITS) ||
	    !unpack(h, w, size) || !h->offset)
		return SS_HANDLE_BAD;
	return SS_HANDLE_OURS;
}

void ss_handle_renumber(void *real, uint32_t devices, uint32_t dev)
{
	if (half(real, AT_DEVICE) >= devices)
		set_half(real, AT_DEVICE, dev);
}

/* ---- hipMemPoolPtrExportData -------------------------------------------- */

static void mask(unsigned char *handle)
{
	for (int i = 0; i < HANDLE_BYTES; i++)
		handle[i] ^= MASK;
}

static uint64_t ptr_check(const void *bytes)
{
	return check(bytes, PTR_WHERE, SS_HANDLE_BYTES, 0, 32);
}

bool ss_pointer_pack(const struct ss_handle *h, void *out)
{
	unsigned char *o = out;

	if (!fits(h))
		return false;
	set_word(o, PTR_WHERE, pack_place(h));
	memcpy(o + PTR_HANDLE, h->real, HANDLE_BYTES);
	mask(o + PTR_HANDLE);
	set_half(o, AT_PID, half(h->real, AT_PID));
	set_half(o, AT_DEVICE, h->serial << 16 | half(h->real, AT_DEVICE));
	set_word(o, PTR_SIZE, h->size);
	set_word(o, PTR_CHECK, MAGIC << 32 | ptr_check(o));
	return true;
}

bool ss_pointer_parse(const void *bytes, struct ss_handle *h)
{
	const unsigned char *b = bytes;

	memset(h, 0, sizeof(*h));
	if (word(b, PTR_CHECK) != (MAGIC << 32 | ptr_check(b)))
		return false;
	memcpy(h->real, b + PTR_HANDLE, HANDLE_BYTES);
	mask(h->real);
	memcpy(h->real + AT_PID, b + AT_PID, AT_REST - AT_PID);
	return unpack(h, word(b, PTR_WHERE), word(b, PTR_SIZE));
}

bool ss_pointer_native(const void *bytes)
{
	uint64_t offset = word(bytes, 0), size = word(bytes, 8);

	return size && size >> NOTE_SIZE_BITS == 0 && offset < size;
}
