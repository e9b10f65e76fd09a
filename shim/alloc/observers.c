/* SPDX-License-Identifier: MIT */
/*
 * Collects the observers of each device (observers.h). Handlers report most observers; libraries
 * that read device memory are found in the list of loaded objects.
 *
 * Locks: none.
 */
#include <link.h>
#include <string.h>

#include "core/base/processor.h"
#include "driver/rocm/rocm.h"
#include "shim/alloc/debt.h"
#include "shim/process/bypass.h"
#include "shim/process/current_device.h"

_Atomic unsigned ss_observers[SS_MAX_DEVICES];

static void add(int dev, unsigned what)
{
	/* The bits are nearly always set already; then do not write to the shared cache line. */
	if ((atomic_load(&ss_observers[dev]) & what) != what)
		atomic_fetch_or(&ss_observers[dev], what);
	/* Pay also if the bit was set before: the thread that set the bit may still be paying. */
	ss_debt_pay(dev);
}

void ss_observer_add(int dev, unsigned what)
{
	if (!what)
		return;
	if (dev >= 0 && dev < SS_MAX_DEVICES) {
		add(dev, what);
		return;
	}
	for (int i = 0; i < ss_device_count() && i < SS_MAX_DEVICES; i++)
		add(i, what);
}

void ss_observer_add_early(unsigned what)
{
	for (int i = 0; i < SS_MAX_DEVICES; i++)
		atomic_fetch_or(&ss_observers[i], what);
	if (atomic_load(&ss_state) == SS_ON && !ss_tls.depth)
		ss_debts_pay();
}

unsigned ss_access_observers(const hipMemAccessDesc *desc, size_t count)
{
	for (size_t i = 0; desc && i < count; i++)
		if (desc[i].location.type != hipMemLocationTypeDevice)
			return SS_OBSERVER_PINNED;
	return 0;
}

/* ---- loaded libraries --------------------------------------------------- */

static const char *const readers[] = {
	"libmpi.so",     "libmpich",   "libmpi_", "libucp.so",   "libuct",     "libfabric.so",
	"libibverbs.so", "librccl.so", "libnccl", "librocshmem", "libmlx5.so",
};

static int is_reader(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	bool *reader = arg;

	(void)size;
	name = name ? name + 1 : "";
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		*reader |= !strncmp(name, readers[i], strlen(readers[i]));
	return 0;
}

#if defined(__x86_64__)
#define LOOK_TICKS (1ull << 18) /* 0.1 ms: less than a library takes to load and set up */
#else
#define LOOK_TICKS 1
#endif

__attribute__((noinline)) void ss_observers_look_now(void)
{
	static _Atomic unsigned long long known;
	struct link_map *before = ss_loader_mark();
	unsigned long long loaded = ss_bypass_check();
	bool reader = false;

	if (atomic_load(&known) != loaded) {
		dl_iterate_phdr(is_reader, &reader);
		if (reader)
			ss_observer_add(-1, SS_OBSERVER_READER);
		if (ss_distrusted(ss_core)) {
			ss_observer_add(-1, SS_OBSERVER_UNKNOWN);
			/* The program may make any device current past the shim. */
			for (int dev = 0; dev < ss_device_count() && dev < SS_MAX_DEVICES; dev++)
				ss_device_used(dev);
		}
		atomic_store(&known, loaded);
	}
	ss_loader_seen(before);
}

/* A walk of the loader's list costs more than a hit. So does reading the clock if
 * ss_loader_unchanged() cannot tell. */
void ss_observers_look(void)
{
	static _Atomic uint64_t last;
	uint64_t now;

	if (ss_loader_unchanged())
		return;
	now = ss_ticks();
	if (likely(now - atomic_load_explicit(&last, memory_order_relaxed) < LOOK_TICKS))
		return;
	ss_observers_look_now();
	atomic_store_explicit(&last, now, memory_order_relaxed);
}

/* ---- devices ------------------------------------------------------------ */

atomic_bool ss_multi_device;

/* Streams of one device are not ordered after streams of another, null streams included. So a copy
 * on one of two devices can notice a skipped wait on the other. Memory that is mapped for one
 * device is opened to the other before the first call that may need the access. */
void ss_device_used(int dev)
{
	static _Atomic uint64_t used, reported; /* a bit per device */
	uint64_t bit = 1ull << dev, all;

	if (likely(atomic_load_explicit(&reported, memory_order_acquire) & bit))
		return;
	all = atomic_fetch_or(&used, bit) | bit;
	if (dev) /* device 0 is current without a call */
		atomic_store(&ss_multi_device, true);
	if (all & (all - 1))
		ss_observer_add(-1, SS_OBSERVER_DEVICES);
	/* Repeated at each use of the device, until all mapped memory is open to it. */
	(void)ss_rocm_use_device(dev);
	if (ss_devices_reopen(ss_core))
		atomic_fetch_or(&reported, bit);
}
