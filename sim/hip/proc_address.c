/* SPDX-License-Identifier: MIT */
/* Addresses of exports by name, as far as the release has them. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "device/calls.h"
#include "hip/entry_points.h"
#include "hip/proc_address.h"
#include "hip/version.h"

/* Finds an export that the release that is played has. */
static hipError_t address(const char *name, void **out)
{
	static const char *const nodes[] = {
	/* the version node of each row */
#define E(n, node, params, args) #node,
#define S(n, node, params, args) #node,
#define N(n, node, params) #node,
#define X(n, node) #node,
#include "hip/hip_entries.h"
#undef E
#undef S
#undef N
#undef X
	};
	char full[128];
	int id;
	Dl_info me;
	static void *self;

	if (!self && dladdr((void *)address, &me))
		self = sim_opt.quirk[SIM_Q_SECOND_COPY] ?
			       dlmopen(LM_ID_NEWLM, me.dli_fname, RTLD_LAZY) :
			       dlopen(me.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
	snprintf(full, sizeof full, "%s", name);
	if (!strcmp(name, "hipGetDeviceProperties") && V6)
		snprintf(full, sizeof full, "hipGetDevicePropertiesR0600");
	if (!strcmp(name, "hipChooseDevice") && V6)
		snprintf(full, sizeof full, "hipChooseDeviceR0600");
	id = sim_call_id(full);
	*out = NULL;
	if (id < SIM_HIP_FIRST || !self)
		return hipErrorNotFound;
	const char *node = nodes[id - SIM_HIP_FIRST];
	int major = 0, minor = 0;

	sscanf(node, "%d.%d", &major, &minor);
	if (major * 100 + minor > sim_opt.hip)
		return hipErrorNotFound;
	*out = dlsym(self, full);
	return *out ? hipSuccess : hipErrorNotFound;
}

hipError_t i_hipGetProcAddress(const char *symbol, void **pfn, int version, uint64_t flags,
			       int *status)
{
	hipError_t e;

	if (!symbol || !pfn || !*symbol)
		return hipErrorInvalidValue;
	e = address(symbol, pfn);
	if (status)
		*status = e ? 1 : 0;
	return e ? hipErrorInvalidValue : hipSuccess;
}

hipError_t i_hipGetDriverEntryPoint(const char *symbol, void **pfn, unsigned long long flags,
				    int *status)
{
	hipError_t e;

	if (!symbol || !pfn || !*symbol)
		return hipErrorInvalidValue;
	e = address(symbol, pfn);
	if (status)
		*status = e ? 1 : 0;
	return hipSuccess;
}

hipError_t i_hipGetDriverEntryPoint_spt(const char *symbol, void **pfn, unsigned long long flags,
					int *status)
{
	char spt[160];
	void *p;

	if (!symbol || !pfn || !*symbol)
		return hipErrorInvalidValue;
	snprintf(spt, sizeof spt, "%s_spt", symbol);
	if (!address(spt, &p)) {
		*pfn = p;
		if (status)
			*status = 0;
		return hipSuccess;
	}
	return i_hipGetDriverEntryPoint(symbol, pfn, flags, status);
}

hipError_t i_hipGetProcAddress_spt(const char *symbol, void **pfn, int version, uint64_t flags,
				   int *status)
{
	return i_hipGetProcAddress(symbol, pfn, version, flags ? flags : 2, status);
}

int release_by_name(void)
{
	Dl_info me;
	const char *so;

	if (!dladdr((void *)address, &me) || !me.dli_fname || !(so = strstr(me.dli_fname, ".so.")))
		return 507;
	return so[4] == '8' ? 800 : so[4] == '7' ? 702 : so[4] == '6' ? 604 : 507;
}
