/* SPDX-License-Identifier: MIT */
/* What names memory to another process, in 64 bytes: the runtime's hipIpcMemHandle_t,
 * ours, and our hipMemPoolPtrExportData. */
#ifndef SS_SHIM_HANDLE_H
#define SS_SHIM_HANDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_HANDLE_BYTES 64
#define SS_HANDLE_GRAIN 512ull /* a block that is named to others begins at a multiple of it */

enum ss_handle_kind {
	SS_HANDLE_REAL, /* the runtime's: opens a whole allocation at its base */
	SS_HANDLE_OURS, /* a block inside one */
	SS_HANDLE_BAD,  /* no runtime opens it, nor do we */
};

struct ss_handle {
	unsigned char real[SS_HANDLE_BYTES]; /* of the whole segment */
	uint64_t segment_size;
	uint64_t offset, size; /* of the block */
	uint32_t pid;
	uint32_t serial;       /* tells segments of one process apart; 0: not known */
};

/* A segment's number, as the handles have it: from 1, in 12 bits. */
static inline uint32_t ss_handle_serial(uint64_t serial)
{
	return (uint32_t)(serial % 4095) + 1;
}

/* False: this cannot be said in 64 bytes (a layout that we do not know). A block at
 * offset 0 stays a handle of the runtime's. */
bool ss_handle_pack(const struct ss_handle *h, void *out);
/* Takes any 64 bytes. Unless BAD, offset + size lies in the segment. */
enum ss_handle_kind ss_handle_parse(const void *bytes, struct ss_handle *h);

/* The owner's device is a number of his process, and newer runtimes refuse one that this process
 * has not: then it is made `dev`, one of `devices` here. */
void ss_handle_renumber(void *real, uint32_t devices, uint32_t dev);

/* hipMemPoolPtrExportData in the same way; false: it is not ours. */
bool ss_pointer_pack(const struct ss_handle *h, void *out);
bool ss_pointer_parse(const void *bytes, struct ss_handle *h);
/* Could it be the runtime's? It does not check what it is given. */
bool ss_pointer_native(const void *bytes);

#endif
