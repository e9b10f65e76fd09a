/* SPDX-License-Identifier: MIT */
/*
 * SOMASHIM_FREE_SYNC=auto: a hipFree that does not wait, while nobody can tell.
 *
 * As long as all work of a device is enqueued on its null stream, memory freed by
 * one command's end and handed out again is ordered by the stream itself, and the
 * only thing a program can notice of a skipped wait is something that looks at
 * the device from outside. So the wait becomes a debt: whoever is about to look
 * (a query, an elapsed time) pays it first; whoever will be able to look for good
 * (another stream, pinned memory, a host function, a peer, another process) pays
 * it and ends this mode. Each user of the mode announces what it does, does it,
 * and then asks again whether the mode still holds: if it ended meanwhile, it
 * pays for itself.
 *
 * Locks: none.
 */
#include <dlfcn.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/thread.h"
#include "driver/rocm.h"
#include "shim/process/bypass.h"
#include "shim/shim.h"

/* Waits skipped, waits that somebody has begun to make good, and that are made good, per
 * device; owed and paid equal: nobody is owed. A free that skips its wait while one is owed
 * that nobody has begun to pay need not say so again: whoever pays begins later, and
 * makes every running thread execute a barrier before it waits (ss_thread_barrier). So
 * either the free finds that it has begun, or what its thread enqueued before is seen by
 * that wait. */
static _Atomic uint64_t owed[SS_MAX_DEVICES], begun[SS_MAX_DEVICES], paid[SS_MAX_DEVICES];
_Atomic unsigned ss_observers[SS_MAX_DEVICES];
/* Not 0 when some device is; or was, when it was looked at last. Counts what was owed since. */
_Atomic uint64_t ss_debts_due;

/* ---- who can look ------------------------------------------------------- */

/* Libraries that read device memory behind HIP's back. */
static const char *const readers[] = {
	"libmpi.so", "libmpich", "libmpi_", "libucp.so", "libuct", "libfabric.so",
	"libibverbs.so", "librccl.so", "libnccl", "librocshmem", "libmlx5.so",
};

static int is_reader(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	bool *reader = arg;

	name = name ? name + 1 : "";
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		*reader |= !strncmp(name, readers[i], strlen(readers[i]));
	return 0;
}

#if defined(__x86_64__)
#define LOOK_TICKS (1ull << 18) /* a tenth of a millisecond: less than a reader takes to load */
#else
#define LOOK_TICKS 1
#endif

/* A library of ours that was loaded when the runtime had started and is never unloaded:
 * whatever is loaded later hangs behind it in the loader's list, so as long as nothing does
 * there is nothing to look for. (Our auditor, because it is there; it does nothing here.) What
 * dlmopen() loads is in another list, of which r_version speaks since glibc 2.35: it is 1
 * while there is none. Where that is not so, the clock says when to look. */
static struct link_map *_Atomic mark;
struct link_map *_Atomic ss_loads_last;

static bool sees_namespaces(void)
{
	int minor = 0;

#if defined(__GLIBC__)
	sscanf(gnu_get_libc_version(), "2.%d", &minor);
#endif
	return minor >= 35 && _r_debug.r_version == 1;
}

void ss_loads_start(void)
{
	static atomic_bool once;
	struct link_map *map = NULL;
	const char *slash;
	char *path;
	Dl_info info;
	void *lib;

	if (atomic_exchange(&once, true) || !sees_namespaces() || !dladdr(&ss_debts_due, &info) ||
	    !(slash = strrchr(info.dli_fname, '/')))
		return;
	if (asprintf(&path, "%.*s/libsomashim-audit.so", (int)(slash - info.dli_fname),
		     info.dli_fname) < 0)
		return;
	lib = access(path, R_OK) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	free(path);
	if (lib && !dlinfo(lib, RTLD_DI_LINKMAP, &map))
		atomic_store(&mark, map);
}

static __attribute__((noinline)) void look_again(void)
{
	struct link_map *before = atomic_load(&mark);
	static _Atomic unsigned long long known;
	unsigned long long loaded = ss_bypass_check();
	bool reader = false;

	/* Only when something was loaded since: `loaded` counts. */
	if (atomic_load(&known) != loaded) {
		dl_iterate_phdr(is_reader, &reader);
		if (reader)
			ss_observer_add(-1, SS_OBSERVER_READER);
		atomic_store(&known, loaded);
	}
	atomic_store_explicit(&ss_loads_last, before, memory_order_release);
}

/* Whatever was loaded lately. Walking the loader's list costs more than a hit, and so does
 * reading the clock, where there is something behind. */
static void look(void)
{
	static _Atomic uint64_t last;
	uint64_t now;

	if (ss_loads_none_new())
		return;
	now = ss_ticks();
	if (likely(now - atomic_load_explicit(&last, memory_order_relaxed) < LOOK_TICKS))
		return;
	look_again();
	atomic_store_explicit(&last, now, memory_order_relaxed);
}

/* An APU, or a GPU that reaches pageable memory (XNACK): the host sees what a
 * kernel writes without any call. Asked once: 1 no, 2 yes. */
static bool host_sees(int dev)
{
	static _Atomic unsigned char answer[SS_MAX_DEVICES];
	unsigned char a = atomic_load_explicit(&answer[dev], memory_order_relaxed);
	int integrated = 0, pageable = 0;

	if (!a) {
		a = REAL(hipDeviceGetAttribute, &integrated, hipDeviceAttributeIntegrated, dev) ==
				    hipSuccess &&
			    REAL(hipDeviceGetAttribute, &pageable,
				 hipDeviceAttributePageableMemoryAccess, dev) == hipSuccess &&
			    !integrated && !pageable ? 1 : 2;
		atomic_store(&answer[dev], a);
	}
	return a == 2;
}

static inline bool due(int dev)
{
	return atomic_load(&owed[dev]) != atomic_load(&paid[dev]);
}

static void note(int dev, unsigned what)
{
	/* Nearly always set already: keep the line shared. */
	if ((atomic_load(&ss_observers[dev]) & what) != what)
		atomic_fetch_or(&ss_observers[dev], what);
	/* Who set it may be paying still. */
	if (unlikely(due(dev)))
		ss_debt_pay(dev);
}

void ss_observer_add(int dev, unsigned what)
{
	if (what & SS_OBSERVER_HOSTFUNC)
		ss_patience_never(ss_core);
	if (dev >= 0 && dev < SS_MAX_DEVICES) {
		note(dev, what);
		return;
	}
	for (int i = 0; i < ss_device_count() && i < SS_MAX_DEVICES; i++)
		note(i, what);
}

void ss_observer_add_early(unsigned what)
{
	for (int i = 0; i < SS_MAX_DEVICES; i++)
		atomic_fetch_or(&ss_observers[i], what);
	if (!ss_pass(SS_NOTE))
		ss_debts_pay();
}

atomic_bool ss_multi_device;

/* A stream of one device is ordered after none of another's, the null streams too, so a
 * wait for one device is something that a copy on another can tell. */
void ss_device_used(int dev)
{
	static _Atomic uint64_t visited, said; /* the second when all know */
	uint64_t bit = 1ull << dev, all;

	if (likely(atomic_load_explicit(&said, memory_order_acquire) & bit))
		return;
	all = atomic_fetch_or(&visited, bit) | bit;
	if (dev) /* 0 is current without a call */
		atomic_store(&ss_multi_device, true);
	if (all & (all - 1))
		ss_observer_add(-1, SS_OBSERVER_DEVICES);
	atomic_fetch_or(&said, bit);
}

void ss_stream_touch(hipStream_t stream, const void *ptr)
{
	struct ss_timeline *tl = ss_stream_or_null(stream);

	if (tl)
		ss_timeline_visits(ss_core, tl, ptr);
}

unsigned ss_observers_on(int dev)
{
	return atomic_load(&ss_observers[dev]) & ~SS_DEBT_POSSIBLE;
}

/* ---- the mode ----------------------------------------------------------- */

/* Asked once, and from then on a matter of what is seen. */
static bool possible(int dev)
{
	ss_device_used(dev);
	if (ss_options.free_sync != SS_FREE_SYNC_AUTO || atomic_load(&ss_observers[dev]) ||
	    ss_distrusted(ss_core) || host_sees(dev))
		return false;
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
	look();
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
	look();
	if (!holds(dev))
		return false;
	owe(dev);
	return true;
}

bool ss_debt_add_now(int dev)
{
	if (!ss_debt_allowed_now(dev))
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
	uint64_t due = atomic_load(&owed[dev]), old = atomic_load(&paid[dev]), last;
	struct ss_device_switch s;
	struct ss_token t = {0};
	hipError_t err;

	/* Paid only once the wait is over: until then others wait for themselves. */
	if (old >= due || !ss_device_switch(&s, dev))
		return;
	last = atomic_load(&begun[dev]);
	while (last < due && !atomic_compare_exchange_weak(&begun[dev], &last, due))
		;
	if (ss_thread_barriers())
		ss_thread_barrier();
	/* From exit() on nobody wants to know; and a signal's handler may have called it where a
	 * lock is held that is taken here. */
	if (!ss_exiting())
		t = ss_stream_sync_begin(ss_core, ss_timeline_null(ss_core, dev));
	/* A synchronization enqueues a marker, which a query of another thread would
	 * see as work in flight; an idle stream needs none. Only while it is the one
	 * stream, or the query says nothing of those that it joins. */
	err = atomic_load(&ss_observers[dev]) == SS_DEBT_POSSIBLE && !ss_capture_live() ?
	      REAL(hipStreamQuery, NULL) : hipErrorNotReady;
	if (err != hipSuccess)
		err = REAL(hipStreamSynchronize, NULL);
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
	/* What is owed since then has counted. */
	if (!any)
		atomic_compare_exchange_strong(&ss_debts_due, &known, 0);
}
