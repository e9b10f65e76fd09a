/* SPDX-License-Identifier: MIT */
/* The 64 bytes of a hipIpcMemHandle_t: the runtime's, and ours. */
#ifndef SS_SHIM_HANDLE_H
#define SS_SHIM_HANDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_HANDLE_BYTES 64

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
};

/* False: this cannot be said in 64 bytes (a layout that we do not know). */
bool ss_handle_pack(const struct ss_handle *h, void *out);
/* Takes any 64 bytes. For SS_HANDLE_OURS, offset + size lies in the segment. */
enum ss_handle_kind ss_handle_parse(const void *bytes, struct ss_handle *h);

#endif
