/* SPDX-License-Identifier: MIT */
/* The 64 bytes that name memory to another process: hipIpcMemHandle_t, the runtime's and
 * ours, and our hipMemPoolPtrExportData. */
#ifndef SS_SHIM_HANDLE_H
#define SS_SHIM_HANDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_HANDLE_BYTES 64
#define SS_HANDLE_GRAIN 512ull /* exported blocks begin at multiples of this */

enum ss_handle_kind {
	SS_HANDLE_REAL, /* the runtime's, which opens a whole allocation at its base */
	SS_HANDLE_OURS, /* ours: a block inside an allocation */
	SS_HANDLE_BAD,  /* neither the runtime nor we can open it */
};

struct ss_handle {
	unsigned char real[SS_HANDLE_BYTES]; /* the runtime's handle of the whole segment */
	uint64_t segment_size;
	uint64_t offset, size; /* of the block */
	uint32_t pid;
	uint32_t serial; /* distinguishes segments at one address; 0: unknown */
};

/* The serial of a segment in handles, 1 to 4095, from the core's number. */
static inline uint32_t ss_handle_serial(uint64_t serial)
{
	return (uint32_t)(serial % 4095) + 1;
}

/* Writes 64 bytes. False: *h cannot be expressed (the real handle has a layout that we do
 * not know). A block at offset 0 gets a handle that the runtime can open, too. */
bool ss_handle_pack(const struct ss_handle *h, void *out);
/* Takes any 64 bytes. Unless the result is BAD, offset + size lies in the segment. */
enum ss_handle_kind ss_handle_parse(const void *bytes, struct ss_handle *h);

/* A real handle holds the device number in the owner's process. Newer runtimes refuse a number that
 * this process does not have. Replaces such a number by `dev`, one of the `devices` of this
 * process. */
void ss_handle_renumber(void *real, uint32_t devices, uint32_t dev);

/* The same for hipMemPoolPtrExportData. ss_pointer_parse() returns false for data that is not
 * ours. */
bool ss_pointer_pack(const struct ss_handle *h, void *out);
bool ss_pointer_parse(const void *bytes, struct ss_handle *h);
/* Could the data be the runtime's own? The runtime does not check it. */
bool ss_pointer_native(const void *bytes);

#endif
