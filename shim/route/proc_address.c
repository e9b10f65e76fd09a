/* SPDX-License-Identifier: MIT */
/*
 * hipGetProcAddress and its kin return our entry where we have one. The runtime decides
 * which function a name and a version mean; we replace the address if it is one that we
 * intercept. No lock.
 */
#include <string.h>

#include "shim/alloc/last_error.h"
#include "shim/handlers.h"
#include "shim/process/real.h"
#include "shim/process/report.h"

/* The table takes the address of deprecated functions, too. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static const struct { const char *name; void *ours; size_t real; } entries[] = {
#define NAME(x) #x
#define E(kind, extra, name, node, since, params, args) \
	{ NAME(name), (void *)name, offsetof(struct ss_real, name) },
	SS_ENTRIES(E)
#undef E
};

static hipError_t reroute(const char *symbol, void **fn, hipError_t err)
{
	if (err != hipSuccess || !fn || !*fn)
		return ss_result(err);
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		void *real;

		memcpy(&real, (const char *)&ss_real + entries[i].real, sizeof(real));
		if (real == *fn) {
			*fn = entries[i].ours;
			ss_report_add(&somashim_report.r.route[SS_ROUTE_PROC]);
			return ss_result(err);
		}
	}
	/* The runtime looks in the library that it loads as libamdhip64.so, which may be a
	 * second copy. Then its addresses are not those that we know, so compare names. */
	for (size_t i = 0; symbol && i < sizeof(entries) / sizeof(entries[0]); i++)
		if (!strcmp(entries[i].name, symbol)) {
			*fn = entries[i].ours;
			ss_report_add(&somashim_report.r.route[SS_ROUTE_PROC]);
			break;
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
