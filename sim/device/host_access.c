/* SPDX-License-Identifier: MIT */
/*
 * Decides which threads have access to mapped memory. Device work runs on threads of this process,
 * at the same addresses. With the quirk host-no-access a protection key tells device work from the
 * host: the processor keeps the rights of a key for each thread. On a processor without such keys
 * the quirk is not played.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "device/fault.h"
#include "device/host_access.h"
#include "device/options.h"

static int key = -1;

#ifdef PKEY_DISABLE_ACCESS
/* Runs before the device has a thread. */
__attribute__((constructor(103))) static void make_key(void)
{
	if (sim_opt.quirk[SIM_Q_HOST_NO_ACCESS])
		key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
}
#endif

void sim_host_access(void *p, size_t size, bool host)
{
#ifdef PKEY_DISABLE_ACCESS
	if (key >= 0) {
		pkey_mprotect(p, size, PROT_READ | PROT_WRITE, host ? 0 : key);
		return;
	}
#endif
	mprotect(p, size, PROT_READ | PROT_WRITE);
}

static void set_rights(bool all)
{
#ifdef PKEY_DISABLE_ACCESS
	if (key >= 0)
		pkey_set(key, all ? 0 : PKEY_DISABLE_ACCESS);
#endif
}

void sim_work_begin(const char *who)
{
	sim_device_work = who;
	set_rights(true);
}

void sim_work_end(void)
{
	set_rights(false);
	sim_device_work = NULL;
}
