/* SPDX-License-Identifier: MIT */
/* Segments of other processes that are mapped here, and the blocks open in them. */
#ifndef SS_SHIM_MAPPINGS_H
#define SS_SHIM_MAPPINGS_H

#include "shim/share/import.h"

enum ss_via {
	SS_VIA_HANDLE, /* hipIpcOpenMemHandle: closed by hipIpcCloseMemHandle */
	SS_VIA_POOL,   /* hipMemPoolImportPointer: closed by a free */
};

/* Another opening of what is mapped already, on `dev` with `flags` (-1: any). False:
 * it is not mapped, or only the runtime can say; else *err, and *ptr on success. */
bool ss_mapping_reopen(const struct ss_handle *h, bool ours, enum ss_via via, int dev, int flags,
		      void **ptr, hipError_t *err);
/* The runtime has just mapped it at `base`. Whatever is returned, `base` is taken care
 * of: hipSuccess and *ptr, or *close is the address to close. */
hipError_t ss_mapping_add(const struct ss_handle *h, bool ours, enum ss_via via, void *base,
			  int dev, unsigned flags, void **ptr, void **close);

struct ss_mapping_close {
	bool known;  /* ptr lies in a mapping of ours */
	bool open;   /* and was open, until now */
	bool shared; /* other blocks of ours may lie in it */
	uint64_t devices; /* that it was opened on: to be waited for, */
	int dev;     /* one of them, */
	void *close; /* before the runtime is to close this; NULL: nothing */
	unsigned opens; /* ss_mapping_replaced: so often */
};

/* The block that starts at ptr is let go. `later` >= 0: the device whose streams may
 * still use it; then its mapping stays until ss_mapping_take_idle says so. */
struct ss_mapping_close ss_mapping_release(void *ptr, enum ss_via via, int later);

/* The runtime has opened `base` for h, and that is another segment, which h's has replaced over
 * there. If nobody uses it any more it leaves the table: d.close is to be closed d.opens times,
 * after which h opens. Else d.opens is 0. */
struct ss_mapping_close ss_mapping_replaced(const struct ss_handle *h, void *base);

/* The devices (bit each) that mappings wait for whose last use may not have ended;
 * *asked goes to the next. */
uint64_t ss_mappings_waiting(uint64_t *asked);
/* One to close, with *dev current; its devices were all found `idle` since. NULL: no more. */
void *ss_mapping_take_idle(uint64_t idle, uint64_t asked, int *dev);

#endif
