/* SPDX-License-Identifier: MIT */
/* What this process has taken of each device, over all pools, and its limit. */
#ifndef SS_BACKING_DEVICE_MEMORY_H
#define SS_BACKING_DEVICE_MEMORY_H

#include "core/backing/memory.h"

/* All of it may be read without a lock. */
struct ss_device_memory {
	uint64_t limit;            /* bytes; 0: none. Set with core->info[dev], before any pool */
	_Atomic uint64_t reserved; /* bytes of all pools */
	/* Of these, bytes that the device has back for a while (sleep.c) */
	_Atomic uint64_t asleep;
	_Atomic uint64_t taken;   /* the same, and what is being asked for or given back */
	_Atomic uint32_t growing; /* threads that ask for memory just now */
	_Atomic uint32_t resets;  /* under way: there is no memory to be had meanwhile */
	/* Bytes that the driver neither lets us use nor takes back (vmm). No pool has them
	 * reserved, but they are taken. */
	_Atomic uint64_t set_aside;
	atomic_bool refused; /* it was said that the driver maps no memory */
	/* What the process takes past the pools, as far as it counts for the limit */
	_Atomic uint64_t others;
	_Atomic uint32_t giving;   /* threads that give memory back just now */
	_Atomic uint64_t gave;     /* how often one did */
	atomic_bool nearly_full;   /* near the end of its memory: frees record their own fence */
	atomic_bool low;           /* less is left than the runtime may need for itself */
	atomic_bool exceeds_total; /* it was seen to have more than the runtime's total */
	atomic_bool woken;         /* the null stream has its hardware queue */
	/* When the device was asked last: what was left, together with `taken`; and, ms, until when
	 * that is believed. */
	_Atomic uint64_t room, room_until;
	_Atomic uint64_t room_asked; /* how often */
	/* Does the runtime keep what is given back (retention.c)? Of chunks, of exported
	 * segments. */
	struct ss_retention {
		_Atomic unsigned kept;        /* times that given memory did not come back */
		_Atomic uint64_t until, wait; /* ms: when to doubt that again, and how long after */
	} chunks, exports;
};

/* Addresses that are reserved although their memory has gone back (unmapped.c). */
struct ss_gone {
	void *va;
	uint64_t size;
	int dev;
	struct ss_gone *next;
};
struct ss_guards {
	pthread_mutex_t lock;
	struct ss_gone *oldest, **newest; /* newest: where the next one goes */
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

void ss_guards_init(struct ss_guards *k);
/* They belong to nobody from now on. No lock held. */
void ss_unmapped_add(struct ss_core *core, int dev, void *va, uint64_t size);
/* No other thread uses the core. */
void ss_guards_finish(struct ss_core *core);

static inline struct ss_device_memory *ss_device_memory(struct ss_core *core, int dev)
{
	return &core->backing->dev[dev];
}

/* Before the device is asked for `size` bytes. False: the limit or the pool's maxSize forbids it.
 * Given again when the device gave none, or has them back. */
bool ss_cap_take(struct ss_memory *m, uint64_t size);
void ss_cap_give(struct ss_memory *m, uint64_t size);
/* What counts for the limit. */
static inline uint64_t ss_counted(const struct ss_device_memory *d)
{
	return atomic_load(&d->taken) + atomic_load(&d->others);
}
/* Adds `delta` (may be negative as two's complement) to what the pool has reserved. Returns when
 * that was, for ss_memory_record(), which the caller calls next; 0 without a recording. */
uint64_t ss_reserved_add(struct ss_memory *m, uint64_t delta);

/* Frees record fences of their own from now on, or no longer. */
void ss_nearly_full_set(struct ss_core *core, int dev, bool nearly_full);
static inline bool ss_nearly_full(struct ss_core *core, int dev)
{
	return atomic_load_explicit(&ss_device_memory(core, dev)->nearly_full,
				    memory_order_relaxed);
}

/* Asks the driver how many bytes are left. False: it does not tell. No lock held. */
bool ss_device_left(struct ss_core *core, int dev, uint64_t *left);
/* Was so much left lately that what the pools took since, and `more` bytes, do not matter? Calls no
 * driver. */
bool ss_device_roomy(struct ss_core *core, int dev, uint64_t more);
/* Are `bytes` more than the device says that it has left? A roomy one is not asked. No lock
 * held. */
bool ss_device_lacks(struct ss_core *core, int dev, uint64_t bytes);

/* Around what asks the device for memory. False: it is being reset, or m was dropped. */
bool ss_growth_begin(struct ss_memory *m);
void ss_growth_end(struct ss_memory *m);
/* Around a reset of dev: no pool of it grows meanwhile. The first waits for threads that ask for
 * memory just now. No lock held. */
void ss_growth_forbid(struct ss_core *core, int dev);
void ss_growth_allow(struct ss_core *core, int dev);

/* Around what gives memory back: whoever finds none on the device meanwhile waits for it. */
void ss_giving_begin(struct ss_core *core, int dev);
void ss_giving_end(struct ss_core *core, int dev, uint64_t bytes);

/* ---- headroom.c: what the runtime needs for itself. No lock held. ----------- */

/* Before a pool takes `more` bytes: the null stream gets its queue while there is room for it.
 * This and the next are part of ss_memory_grow; the result is for the next. */
uint64_t ss_headroom_before(struct ss_memory *m, uint64_t more);
/* After it has grown: sets `nearly_full` and `low` by what is left of the device. */
void ss_headroom_after(struct ss_memory *m, uint64_t asked);
/* Gives back, of what is idle in the pool, what the runtime lacks. */
void ss_headroom_restore(struct ss_memory *m);

/* ---- retention.c: does the runtime give back what is released? -------------- */

enum ss_giving {
	SS_GIVE_NOTHING,
	SS_GIVE_ONE,   /* one chunk, to find out whether it comes back */
	SS_GIVE_PARTS, /* whatever chunks are idle */
	SS_GIVE_WHOLE  /* all, and the reservation with it */
};
/* The device's figures before a release: free bytes, and those of struct ss_device_memory. */
struct ss_witness {
	uint64_t left, reserved, taken;
};

/* What to give back of a pool on vmm (`idle`: all of it could go). */
enum ss_giving ss_retention_how(struct ss_memory *m, bool idle);
/* Around a release of `given` bytes, which tells whether they came back. */
void ss_retention_begin(struct ss_memory *m, struct ss_witness *w);
void ss_retention_end(struct ss_memory *m, const struct ss_witness *w, uint64_t given,
		      enum ss_giving how);
/* The same of segments that were exported: does the runtime keep them? */
bool ss_retention_exports(struct ss_memory *m);
void ss_retention_exports_end(struct ss_memory *m, const struct ss_witness *w, uint64_t given);

#endif
