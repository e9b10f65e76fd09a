/* SPDX-License-Identifier: MIT */
/* Segments of other processes that are mapped here, and the blocks open in them. */
#ifndef SS_SHIM_MAPPINGS_H
#define SS_SHIM_MAPPINGS_H

#include <hip/hip_runtime_api.h>
#include <stdatomic.h>

#include "core/core.h"
#include "driver/rocm/guard.h"
#include "shim/share/handle.h"

enum ss_via {
	SS_VIA_HANDLE, /* hipIpcOpenMemHandle: closed by hipIpcCloseMemHandle */
	SS_VIA_POOL,   /* hipMemPoolImportPointer: closed by a free */
};

/* ---- open and close: for import.c --------------------------------------- */

/* Opens a block of a segment that is mapped already, on `dev` with `flags` (-1: any).
 * True: *err, and *ptr on success. False: the segment is not mapped, or only the runtime
 * can tell. */
bool ss_mapping_reopen(const struct ss_handle *h, bool ours, enum ss_via via, int dev, int flags,
		       void **ptr, hipError_t *err);
/* Records that the runtime has just mapped h's segment at `base`. If *close is set on
 * return, the caller must close that address. */
hipError_t ss_mapping_add(const struct ss_handle *h, bool ours, enum ss_via via, void *base,
			  int dev, unsigned flags, void **ptr, void **close);

/* The caller's duties after a block was released. */
struct ss_mapping_close {
	bool known;       /* ptr lies in a mapping of the table */
	bool open;        /* ptr was open, until now */
	bool shared;      /* other blocks of ours may lie in the mapping */
	uint64_t devices; /* wait for these (a bit each) */
	int dev;          /* then, with this device current, */
	void *close;      /* close this address; NULL: nothing to close */
	unsigned opens;   /* ss_mapping_replaced(): close it this many times */
	/* The released block, for ss_mapping_restore() */
	void *base; /* of the mapping */
	struct ss_handle block;
	enum ss_via via;
	unsigned flags, buffer_id;
};

/* Releases the block that starts at ptr. `later` >= 0: a device whose streams may still use it;
 * then its mapping stays until ss_mapping_take_idle() returns it. */
struct ss_mapping_close ss_mapping_release(void *ptr, enum ss_via via, int later);

/* The runtime has refused to close the mapping that ss_mapping_release() took out of the table, and
 * still has it: the block is open again, so that the program can try once more. Does nothing if
 * host memory is out, or if the address has another segment by now. */
void ss_mapping_restore(const struct ss_mapping_close *d);

/* The runtime returned `base` for h, but another segment is recorded there, which h's segment has
 * replaced in the owner's process. If the old segment has no users, it is removed from the table,
 * and the caller must close it; then h can be opened. Else the result's `opens` is 0. */
struct ss_mapping_close ss_mapping_replaced(const struct ss_handle *h, void *base);

/* The devices (a bit each) that must be idle before mappings can be closed whose blocks were
 * released with `later`. Pass *asked on to ss_mapping_take_idle(). */
uint64_t ss_mappings_waiting(uint64_t *asked);
/* The address of one mapping to close, with *dev current; NULL: none. `idle`: devices that were
 * found idle after ss_mappings_waiting(). */
void *ss_mapping_take_idle(uint64_t idle, uint64_t asked, int *dev);

/* dev is being reset: its mappings are gone. */
void ss_import_reset(int dev);

/* ---- questions: for everybody ------------------------------------------- */

/* Mappings whose blocks are known */
extern atomic_int ss_imports __attribute__((visibility("hidden")));

/* The block of another process that ptr points into: sets base, size and device of *out,
 * and the block's BUFFER_ID. False: ptr is in no such block. */
bool ss_import_find(const void *ptr, struct ss_block_info *out, unsigned *buffer_id);
/* Does ptr lie in an imported block that does not start its mapping? A handle that the runtime
 * made for it would open at another place. */
bool ss_import_inside(const void *ptr);
/* *left: the number of bytes from ptr on that belong to the imported block at ptr; 0 if ptr is
 * outside all open blocks. False: ptr is in no mapping whose blocks are known. */
bool ss_import_left_slow(const void *ptr, uint64_t *left);
static inline bool ss_import_left(const void *ptr, uint64_t *left)
{
	return unlikely(atomic_load_explicit(&ss_imports, memory_order_relaxed)) &&
	       ss_import_left_slow(ptr, left);
}

#endif
