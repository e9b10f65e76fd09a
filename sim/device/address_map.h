/* SPDX-License-Identifier: MIT */
/*
 * The map from an address to the allocation that contains it: device memory, pinned host
 * memory, imports and mapped physical memory. All functions are thread-safe; callers get
 * copies, since an entry may go at any time.
 */
#ifndef SIM_ADDRESS_MAP_H
#define SIM_ADDRESS_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/range.h"

enum sim_kind {
	SIM_DEVICE = 1, /* device memory */
	SIM_HOST,       /* pinned host memory that the runtime allocated */
	SIM_LOCKED,     /* the program's own host memory, registered */
	SIM_MANAGED,
	SIM_SIGNAL, /* value words of HSA signals */
	SIM_IMPORT, /* device memory of another process */
	SIM_MAPPED, /* one physical handle mapped into a reservation */
};

struct sim_alloc {
	struct sim_range r; /* base, and size rounded up to pages */
	size_t size;        /* as the program asked */
	enum sim_kind kind;
	int device; /* -1: the host */
	bool hip;   /* allocated by HIP; false for raw HSA memory */
	unsigned flags;
	uint64_t id;
	void *userdata;
	uint32_t access; /* mask of the devices that may touch it */
	int sync_memops;
	int slot;       /* of the export table (ipc.c), or -1 */
	uint64_t token; /* of the export, if slot is not -1 */
	void *owner;    /* pool block, graph allocation or physical handle */
	int ownertype;  /* which of them; the upper layer numbers them */
	void *alias;    /* registered memory: its host address */
};

/* Copies the allocation that contains p to *out. False: there is none. */
bool sim_find(const void *p, struct sim_alloc *out);

/* Calls fn on the entry that contains p, with the map locked. False: there is none. */
bool sim_update(const void *p, void (*fn)(struct sim_alloc *a, void *arg), void *arg);

/* Adds a copy of *a. False: it overlaps an entry, or there is no memory. */
bool sim_map_add(const struct sim_alloc *a);

/* Adds a copy of *a, which is fresh memory of ours. It may overlap an entry only if the
 * program unmapped memory that it had registered; the new entry then wins. */
bool sim_map_insert(const struct sim_alloc *a);

/* Removes the entry that starts at base and copies it to *out. */
bool sim_map_remove(const void *base, struct sim_alloc *out);

/* Removes the entry that contains p, if it is memory that sim_free can free, and copies it
 * to *out. Unless interior is set, p must be its base. */
bool sim_map_take(const void *p, bool interior, struct sim_alloc *out);

/* Iterates over the entries by address, from *cursor, which starts at 0. */
bool sim_map_each(uintptr_t *cursor, struct sim_alloc *out);

/* A number that no allocation of this process has had. */
uint64_t sim_next_id(void);

#endif
