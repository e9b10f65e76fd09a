/* SPDX-License-Identifier: MIT */
/*
 * SOMASHIM_FREE_SYNC=auto: hipFree may skip its wait while the null stream orders all work of
 * a device and nothing can observe the device from outside. The skipped wait is a debt.
 */
#ifndef SS_SHIM_DEBT_H
#define SS_SHIM_DEBT_H

#include "shim/alloc/observers.h"

/* May a hipFree of a block on dev skip its wait now? After using the answer, call
 * ss_debt_confirm(). */
bool ss_debt_allowed(int dev);
/* As ss_debt_allowed(); adds a debt if the answer is yes. */
bool ss_debt_add(int dev);
/* As ss_debt_allowed(), from variables alone. False also if only ss_debt_allowed() could tell. */
static inline bool ss_debt_allowed_now(int dev)
{
	return ss_loader_unchanged() &&
	       likely(atomic_load(&ss_observers[dev]) == SS_DEBT_POSSIBLE) && !ss_capture_live();
}

/* After a free skipped its wait: adds the debt, and pays it if an observer has come meanwhile that
 * did not see the debt. */
void ss_debt_add_and_pay(int dev);
static inline void ss_debt_confirm(int dev)
{
	if (unlikely(atomic_load(&ss_observers[dev]) != SS_DEBT_POSSIBLE || ss_capture_live()))
		ss_debt_add_and_pay(dev);
}

/* Waits for the null stream of dev if the device has a debt. */
void ss_debt_pay(int dev);
/* Pays the debts of all devices. Called before anything that could notice a skipped wait. */
extern _Atomic uint64_t ss_debts_due SS_HIDDEN;
void ss_debts_pay_slow(void);
static inline void ss_debts_pay(void)
{
	if (unlikely(atomic_load_explicit(&ss_debts_due, memory_order_acquire)))
		ss_debts_pay_slow();
}

#endif
