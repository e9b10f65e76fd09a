/* SPDX-License-Identifier: MIT */
/*
 * Debts: waits that hipFree skips and makes up for later (SOMASHIM_FREE_SYNC=auto).
 *
 * As long as all work of a device is enqueued on its null stream, the stream itself orders a freed
 * block's last use before its next one. A program can notice a skipped wait only by observing the
 * device from outside. So the skipped wait becomes a debt, and an observer pays the debt, that is,
 * waits first. A call that observes once (a query, an elapsed time) only pays. An observer that
 * stays (another stream, pinned memory, a host function, a peer, another process) pays and ends the
 * mode.
 *
 * Each free announces its debt, frees, and then asks again whether the mode still holds
 * (ss_debt_confirm). If the mode has ended meanwhile, the free pays its own debt.
 *
 * Locks: none.
 */
#include "core/base/processor.h"
#include "shim/alloc/debt.h"
#include "shim/process/current_device.h"
#include "shim/process/exit.h"
#include "shim/process/real.h"
#include "trace/writer.h"

/* Per device: the number of debts that were made (owed), that some thread has begun to pay (begun),
 * and that were paid (paid). A device has no debt while owed equals paid.
 *
 * A free need not count its debt if the device has a debt that no thread has begun to pay. The
 * paying thread sets `begun`, makes every running thread execute a memory barrier
 * (ss_thread_barrier), and then waits. So either the free sees `begun`, or that wait covers all
 * work that the freeing thread had enqueued. */
static _Atomic uint64_t owed[SS_MAX_DEVICES], begun[SS_MAX_DEVICES], paid[SS_MAX_DEVICES];
/* Counts new debts. Not 0 while a device has a debt, or had one at the last look. */
_Atomic uint64_t ss_debts_due;

/* Can the host see the stores of a kernel without any call? It can on an APU, and on a GPU that
 * reaches pageable memory (XNACK). It also can with a large BAR, which nearly every server has, so
 * the BAR is ignored (README). Asked once per device: 1 no, 2 yes. */
static bool host_sees(int dev)
{
	static _Atomic unsigned char answer[SS_MAX_DEVICES];
	unsigned char a = atomic_load_explicit(&answer[dev], memory_order_relaxed);
	int integrated = 0, pageable = 0;

	if (!a) {
		a = REAL(hipDeviceGetAttribute, &integrated, hipDeviceAttributeIntegrated, dev) ==
					    hipSuccess &&
				    REAL(hipDeviceGetAttribute, &pageable,
					 hipDeviceAttributePageableMemoryAccess,
					 dev) == hipSuccess &&
				    !integrated && !pageable ?
			    1 :
			    2;
		atomic_store(&answer[dev], a);
	}
	return a == 2;
}

static inline bool due(int dev)
{
	return atomic_load(&owed[dev]) != atomic_load(&paid[dev]);
}

/* May hipFree skip its wait on dev at all? Asked until the answer is yes. A yes is stored as
 * SS_DEBT_POSSIBLE, and from then on only ss_observers[dev] is read. */
static bool possible(int dev)
{
	ss_device_used(dev);
	if (ss_options.free_sync != SS_FREE_SYNC_AUTO || atomic_load(&ss_observers[dev]) ||
	    ss_distrusted(ss_core) || host_sees(dev))
		return false;
	ss_exit_set_hook(ss_debts_pay_slow);
	atomic_fetch_or(&ss_observers[dev], SS_DEBT_POSSIBLE);
	return true;
}

static inline bool holds(int dev)
{
	return likely(atomic_load(&ss_observers[dev]) == SS_DEBT_POSSIBLE || possible(dev)) &&
	       !ss_capture_live();
}

bool ss_debt_allowed(int dev)
{
	ss_observers_look();
	return (unsigned)dev < SS_MAX_DEVICES && holds(dev);
}

static inline void owe(int dev)
{
	bool more = unlikely(atomic_load(&owed[dev]) <= atomic_load(&begun[dev]) ||
			     !ss_thread_barriers());

	if (more)
		atomic_fetch_add(&owed[dev], 1);
	if (more || !atomic_load(&ss_debts_due))
		atomic_fetch_add(&ss_debts_due, 1);
}

bool ss_debt_add(int dev)
{
	if (!ss_debt_allowed_now(dev) && !ss_debt_allowed(dev))
		return false;
	owe(dev);
	return true;
}

void ss_debt_add_and_pay(int dev)
{
	owe(dev);
	ss_debt_pay(dev);
}

void ss_debt_pay(int dev)
{
	uint64_t due = atomic_load(&owed[dev]), old = atomic_load(&paid[dev]), last, begin;
	struct ss_device_switch s;
	struct ss_token t = {0};
	hipError_t err;

	/* `paid` changes after the wait. Until then other threads make waits of their own. */
	if (old >= due || !ss_device_switch(&s, dev))
		return;
	last = atomic_load(&begun[dev]);
	while (last < due && !atomic_compare_exchange_weak(&begun[dev], &last, due))
		;
	if (ss_thread_barriers())
		ss_thread_barrier();
	/* After exit() has begun nothing is allocated, so the core need not know of the wait. The
	 * core also must not be called: a signal handler may have called exit() while this thread
	 * held a core lock. */
	if (!ss_exiting())
		t = ss_stream_sync_begin(ss_core, ss_timeline_null(ss_core, dev));
	/* Try a query first. A synchronization enqueues a marker, which a query by another thread
	 * would see as pending work. The query is enough only while the null stream is the one
	 * stream, because a query does not cover the streams that the null stream joins. */
	err = atomic_load(&ss_observers[dev]) == SS_DEBT_POSSIBLE && !ss_capture_live() ?
		      REAL(hipStreamQuery, NULL) :
		      hipErrorNotReady;
	if (err != hipSuccess) {
		begin = ss_trace_wait_begin();
		err = REAL(hipStreamSynchronize, NULL);
		ss_trace_wait_end(begin, SS_TRACE_WAIT_FREE, dev, NULL);
	}
	ss_sync_end(ss_core, &t, err == hipSuccess, false);
	ss_device_restore(&s);
	while (err == hipSuccess && old < due &&
	       !atomic_compare_exchange_weak(&paid[dev], &old, due))
		;
}

void ss_debts_pay_slow(void)
{
	uint64_t known = atomic_load(&ss_debts_due);
	bool any = false;

	for (int i = 0; i < ss_device_count(); i++)
		if (due(i))
			ss_debt_pay(i);
	for (int i = 0; i < ss_device_count(); i++)
		any |= due(i);
	/* Fails if a debt was added since `known` was read. */
	if (!any)
		atomic_compare_exchange_strong(&ss_debts_due, &known, 0);
}
