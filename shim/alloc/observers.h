/* SPDX-License-Identifier: MIT */
/*
 * Observers: everything but the null stream's own work that could observe a device while a hipFree
 * does not wait. An observer is a bit that stays set. A new observer makes debt.c pay the debts.
 */
#ifndef SS_SHIM_OBSERVERS_H
#define SS_SHIM_OBSERVERS_H

#include <hip/hip_runtime_api.h>
#include <stdint.h>

#include "shim/process/loader.h"
#include "shim/process/service.h"

enum ss_observer {
	SS_OBSERVER_STREAM = 1 << 0, /* a stream besides the null stream */
	/* A stream that the shim did not see created, or another bypass */
	SS_OBSERVER_UNKNOWN = 1 << 1,
	SS_OBSERVER_HOSTFUNC = 1 << 2,
	SS_OBSERVER_PINNED = 1 << 3,
	SS_OBSERVER_MANAGED = 1 << 4,
	SS_OBSERVER_FINE = 1 << 5, /* fine-grained memory */
	SS_OBSERVER_PEER = 1 << 6,
	SS_OBSERVER_IPC = 1 << 7,
	SS_OBSERVER_THREAD = 1 << 8, /* a per-thread stream */
	SS_OBSERVER_READER = 1 << 9, /* a library that reads device memory without HIP */
	SS_OBSERVER_GRAPH = 1 << 10, /* a launched graph, which may have host nodes and copies */
	/* A second device is used: its streams are not ordered with this one's */
	SS_OBSERVER_DEVICES = 1 << 11,
	SS_OBSERVER_HOSTNODE = 1 << 12, /* graphs may have nodes that need the host */
};

/* Per device: the observers, and SS_DEBT_POSSIBLE once the device has been found fit. */
extern _Atomic unsigned ss_observers[SS_MAX_DEVICES] SS_HIDDEN;
#define SS_DEBT_POSSIBLE (1u << 31)

/* Call before the real call that brings the observer. dev -1: all devices. */
void ss_observer_add(int dev, unsigned what);
/* The same for every possible device. Allowed before the shim has started, and does not start the
 * shim. */
void ss_observer_add_early(unsigned what);
/* The observers that hipMemSetAccess adds: the host, if the host gets access to mapped memory. */
unsigned ss_access_observers(const hipMemAccessDesc *desc, size_t count);
/* Checks the objects that were loaded since the last look for bypasses and for libraries that read
 * device memory. ss_observers_look_now() does not wait for the interval between two looks. */
void ss_observers_look(void);
void ss_observers_look_now(void);

/* dev is current now: the program uses dev, or will. */
void ss_device_used(int dev);
/* Has the process used a device other than the first? */
extern atomic_bool ss_multi_device SS_HIDDEN;

#endif
