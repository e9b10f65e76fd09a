/* SPDX-License-Identifier: MIT */
/*
 * hipGetProcAddress and its kin: whoever asks the runtime for an entry of ours
 * gets ours. The runtime decides which function a name and a version mean; we
 * only look whether it is one that we stand in front of.
 */
#include <string.h>

#include "shim/process/report.h"
#include "shim/shim.h"

/* Deprecated or not, they must be there. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static const struct { const char *name; void *ours; size_t real; } routes[] = {
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
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		void *real;

		memcpy(&real, (const char *)&ss_real + routes[i].real, sizeof(real));
		if (real == *fn) {
			*fn = routes[i].ours;
			ss_report_add(&somashim_report.r.route[SS_ROUTE_PROC]);
			return ss_result(err);
		}
	}
	/* The runtime loads libamdhip64.so by that name, which may be a second
	 * copy: then its addresses are not those we know, but the names are. */
	for (size_t i = 0; symbol && i < sizeof(routes) / sizeof(routes[0]); i++)
		if (!strcmp(routes[i].name, symbol)) {
			*fn = routes[i].ours;
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
