/* SPDX-License-Identifier: MIT */
/* Memory that this process has taken of each device, over all pools, and its limit. */
#ifndef SS_BACKING_DEVICE_MEMORY_H
#define SS_BACKING_DEVICE_MEMORY_H

#include "core/backing/memory.h"

/* Every member may be read without a lock. */
struct ss_device_memory {
	uint64_t limit;            /* bytes; 0: none. Set with core->info[dev], before any pool */
	_Atomic uint64_t reserved; /* bytes of all pools */
	/* Of these, bytes that the device has back for a while (sleep.c) */
	_Atomic uint64_t asleep;
	_Atomic uint64_t taken;   /* reserved, plus bytes that are being taken or released */
	_Atomic uint32_t growing; /* threads that are taking memory now */
	_Atomic uint32_t resets;  /* resets in progress: meanwhile no memory can be taken */
	/* Bytes that the driver neither lets us use nor takes back (vmm). They are taken, but no
	 * pool has them reserved. */
	_Atomic uint64_t set_aside;
	atomic_bool refused; /* it was reported that the driver maps no memory */
	/* Memory that the process takes outside the pools, as far as it counts for the limit */
	_Atomic uint64_t others;
	_Atomic uint32_t releasing; /* threads that are releasing memory now */
	_Atomic uint64_t gave;      /* number of releases */
	atomic_bool nearly_full;    /* nearly all memory is used: frees record their own fence */
	atomic_bool low;            /* less memory is left than the runtime may need */
	atomic_bool exceeds_total;  /* the device was seen to have more than the runtime's total */
	atomic_bool woken;          /* the null stream has its hardware queue */
	/* The last answer of the device: the bytes that were left, together with `taken`; and
	 * the time in ms until which that answer is used. */
	_Atomic uint64_t room, room_until;
	_Atomic uint64_t room_asked; /* number of questions */
	/* Does the runtime keep released memory (retention.c)? One for chunks, one for exported
	 * segments. */
	struct ss_retention {
		_Atomic unsigned kept;        /* times that released memory did not come back */
		_Atomic uint64_t until, wait; /* ms: the next doubt, and the wait after it */
	} chunks, exports;
};

/* Addresses that are reserved although their memory was released (guard.c). */
struct ss_gone {
	void *va;
	uint64_t size;
	int dev;
	struct ss_gone *next;
};
struct ss_guards {
	pthread_mutex_t lock;
	struct ss_gone *oldest, **newest; /* newest: the place of the next one */
	uint64_t bytes;
	uint32_t count;
};

struct ss_devices {
	struct ss_device_memory dev[SS_MAX_DEVICES];
	struct ss_guards guards;
	_Atomic uint64_t addresses; /* bytes in reservations */
	_Atomic uint32_t chunks;    /* of all pools */
};

/* False: host memory is out. */
bool ss_devices_init(struct ss_core *core);
void ss_devices_finish(struct ss_core *core);

static inline struct ss_device_memory *ss_device_memory(struct ss_core *core, int dev)
{
	return &core->backing->dev[dev];
}

/* Call this before the device is asked for `size` bytes. False: the limit or the pool's maxSize
 * forbids it. ss_cap_return returns the bytes when the device had none, or has them back. */
bool ss_cap_take(struct ss_memory *m, uint64_t size);
void ss_cap_return(struct ss_memory *m, uint64_t size);
/* The bytes that count for the limit. */
static inline uint64_t ss_counted(const struct ss_device_memory *d)
{
	return atomic_load(&d->taken) + atomic_load(&d->others);
}
/* Adds `delta` (may be negative as two's complement) to the bytes that the pool has reserved.
 * Returns the time of the change for ss_memory_record(), which the caller calls next; 0 without
 * a recording. */
uint64_t ss_reserved_add(struct ss_memory *m, uint64_t delta);

/* Makes frees record fences of their own from now on, or no longer. */
void ss_nearly_full_set(struct ss_core *core, int dev, bool nearly_full);
static inline bool ss_nearly_full(struct ss_core *core, int dev)
{
	return atomic_load_explicit(&ss_device_memory(core, dev)->nearly_full,
				    memory_order_relaxed);
}

/* Asks the driver how many bytes are left. False: it does not tell. No lock held. */
bool ss_device_left(struct ss_core *core, int dev, uint64_t *left);
/* Was so much left lately that the bytes taken by pools since, and `more` bytes, do not matter?
 * Calls no driver. */
bool ss_device_roomy(struct ss_core *core, int dev, uint64_t more);
/* Are `bytes` more than the device says that it has left? If ss_device_roomy() holds, the device
 * is not asked. No lock held. */
bool ss_device_lacks(struct ss_core *core, int dev, uint64_t bytes);

/* A pair around every call that takes memory of the device. The second is called only if the first
 * returns SS_OK. SS_ERR_NO_DEVICE: the device is being reset, or m was dropped; SS_ERR_NOMEM: the
 * process sleeps, and does not wake. No lock held. */
enum ss_status ss_growth_begin(struct ss_memory *m);
void ss_growth_end(struct ss_memory *m);
/* A pair around a reset of dev: no pool of it grows meanwhile. The first waits for threads that
 * are taking memory now. No lock held. */
void ss_growth_forbid(struct ss_core *core, int dev);
void ss_growth_allow(struct ss_core *core, int dev);

/* A pair around every release of memory: a thread that finds no memory on the device waits for
 * it. */
void ss_releasing_begin(struct ss_core *core, int dev);
void ss_releasing_end(struct ss_core *core, int dev, uint64_t bytes);

/* ---- headroom.c: memory that the runtime needs for itself. No lock held. ---- */

/* Before a pool takes `more` bytes: makes the null stream's queue while there is room for it.
 * This and the next function are part of ss_memory_grow; the result is for the next. */
uint64_t ss_headroom_before(struct ss_memory *m, uint64_t more);
/* After the pool has grown: sets `nearly_full` and `low` by the bytes that the device has left. */
void ss_headroom_after(struct ss_memory *m, uint64_t asked);
/* Releases idle memory of the pool, as much as the runtime lacks. */
void ss_headroom_restore(struct ss_memory *m);

/* ---- retention.c: does the device get released memory back? ----------------- */

enum ss_release_how {
	SS_RELEASE_NOTHING,
	SS_RELEASE_ONE,   /* one chunk, to find out whether it comes back */
	SS_RELEASE_PARTS, /* any idle chunks */
	SS_RELEASE_WHOLE  /* all chunks, and the reservation with them */
};
/* The device's figures before a release: free bytes, and those of struct ss_device_memory. */
struct ss_witness {
	uint64_t left, reserved, taken;
};

/* The part of a pool on vmm that may be released (`idle`: all of the pool could be). */
enum ss_release_how ss_retention_how(struct ss_memory *m, bool idle);
/* A pair around a release of `given` bytes, which finds out whether they came back. */
void ss_retention_begin(struct ss_memory *m, struct ss_witness *w);
void ss_retention_end(struct ss_memory *m, const struct ss_witness *w, uint64_t given,
		      enum ss_release_how how);
/* The same for segments that were exported: does the runtime keep them? */
bool ss_retention_exports(struct ss_memory *m);
void ss_retention_exports_end(struct ss_memory *m, const struct ss_witness *w, uint64_t given);

#endif
