/* SPDX-License-Identifier: MIT */
/*
 * hipGetProcAddress and its kin return our entry for a function that we intercept. The runtime
 * decides which function a name and a version mean; we replace the address. No lock.
 */
#include <dlfcn.h>
#include <string.h>

#include "shim/alloc/last_error.h"
#include "shim/handlers.h"
#include "shim/process/real.h"
#include "shim/process/report.h"

/* The table takes the address of deprecated functions, too. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static const struct {
	const char *name;
	void *ours;
	size_t real;
} entries[] = {
#define NAME(x) #x
#define E(kind, extra, name, node, since, params, args) \
	{ NAME(name), (void *)name, offsetof(struct ss_real, name) },
	SS_ENTRIES(E)
#undef E
};
#define ENTRIES (sizeof(entries) / sizeof(entries[0]))

static size_t entry_of(const void *fn)
{
	for (size_t i = 0; i < ENTRIES; i++) {
		const void *real;

		memcpy(&real, (const char *)&ss_real + entries[i].real, sizeof(real));
		if (real == fn)
			return i;
	}
	return ENTRIES;
}

static size_t entry_named(const char *name)
{
	for (size_t i = 0; name && i < ENTRIES; i++)
		if (!strcmp(entries[i].name, name))
			return i;
	return ENTRIES;
}

/* The runtime looks in the library that it loads as libamdhip64.so, which may be a second copy.
 * Then its addresses are unknown to us, so compare names. The name is that of the function, which
 * may be the _spt form of the requested name. Only if the loader has no name for the address the
 * requested name counts. */
static hipError_t reroute(const char *symbol, void **fn, hipError_t err)
{
	Dl_info info;
	size_t i;

	if (err != hipSuccess || !fn || !*fn)
		return ss_result(err);
	i = entry_of(*fn);
	if (i == ENTRIES)
		i = entry_named(dladdr(*fn, &info) && info.dli_saddr == *fn ? info.dli_sname :
									      symbol);
	if (i < ENTRIES) {
		*fn = entries[i].ours;
		ss_report_add(&somashim_report.r.route[SS_ROUTE_PROC]);
	}
	return ss_result(err);
}

hipError_t do_hipGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags,
				SS_PROC_STATUS *status)
{
	return reroute(symbol, fn, REAL(hipGetProcAddress, symbol, fn, version, flags, status));
}

hipError_t do_hipGetProcAddress_spt(const char *symbol, void **fn, int version, uint64_t flags,
				    SS_PROC_STATUS *status)
{
	return reroute(symbol, fn, REAL(hipGetProcAddress_spt, symbol, fn, version, flags, status));
}

hipError_t do_hipGetDriverEntryPoint(const char *symbol, void **fn, unsigned long long flags,
				     SS_ENTRY_STATUS *status)
{
	return reroute(symbol, fn, REAL(hipGetDriverEntryPoint, symbol, fn, flags, status));
}

hipError_t do_hipGetDriverEntryPoint_spt(const char *symbol, void **fn, unsigned long long flags,
					 SS_ENTRY_STATUS *status)
{
	return reroute(symbol, fn, REAL(hipGetDriverEntryPoint_spt, symbol, fn, flags, status));
}
