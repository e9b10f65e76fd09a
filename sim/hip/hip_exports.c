/* SPDX-License-Identifier: MIT */
/*
 * The exported hip* symbols: count, maybe fail, call the implementation, keep
 * the last error. Also the few whose result is no hipError_t.
 */
#include <dlfcn.h>
#include <string.h>

#include "hip.h"

#define E(name, node, params, args) ID_##name,
#define N(name, node, params) ID_##name,
#define X(name, node) ID_##name,
enum {
	ID_first = SIM_HIP_FIRST - 1,
#include "hip_entries.h"
	ID_end
};
#undef E
#undef N
#undef X

#define E(name, node, params, args) #name,
#define N(name, node, params) #name,
#define X(name, node) #name,
static const char *const names[] = {
#include "hip_entries.h"
};
#undef E
#undef N
#undef X
_Static_assert(ID_end <= SIM_MAX_CALLS, "grow SIM_MAX_CALLS");

/* Up to 6.x every call overwrites the last error, success included; from 7.0
 * on an error stays until it is read. */
static inline hipError_t leave(struct sim_thread *t, int e)
{
	if (t->depth == 1) {
		t->last_command = e;
		if (!V7 || (e && e != hipErrorNotReady))
			t->last_error = e;
	}
	sim_leave(t);
	return (hipError_t)e;
}

#define BODY(name, args) \
	{ \
		struct sim_thread *t_ = sim_enter(ID_##name); \
		int e_ = t_->verdict; \
		if (likely(!e_)) \
			e_ = (int)i_##name args; \
		return leave(t_, e_); \
	}

#ifdef SOMASIM_API_TABLE
#include "amd/table.h"
#else
#define EXPORT(name, params, args, body) hipError_t name params body
#endif

#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define E(name, node, params, args) EXPORT(name, params, args, BODY(name, args))
/* Exported by the real library, no part of this device. */
#define N(name, node, params) \
	hipError_t name params \
	{ \
		struct sim_thread *t_ = sim_enter(ID_##name); \
		return leave(t_, t_->verdict ? t_->verdict : hipErrorNotSupported); \
	}
#define X(name, node)
#include "hip_entries.h"
#undef E
#undef N
#undef X

static hipError_t read_error(int id, int kind)
{
	struct sim_thread *t = sim_enter(id);
	hipError_t e = (hipError_t)(kind == 2 ? t->last_command : t->last_error);

	if (kind == 2)
		t->last_command = 0;
	if (kind == 0)
		t->last_error = 0;
	if (kind == 1 && V7 && e) /* a command that failed */
		t->last_command = (int)e;
	sim_leave(t);
	return sim_opt.no_device ? hipErrorNoDevice : e;
}

EXPORT(hipGetLastError, (void), (), { return read_error(ID_hipGetLastError, 0); })
EXPORT(hipPeekAtLastError, (void), (), { return read_error(ID_hipPeekAtLastError, 1); })
EXPORT(hipExtGetLastError, (void), (), { return read_error(ID_hipExtGetLastError, 2); })

int hipGetStreamDeviceId(hipStream_t h)
{
	struct stream *s = stream_of(h);

	return s ? s->device : h ? -1 : cur_device();
}

const char *hipApiName(uint32_t id)
{
	return "unknown";
}

const char *hipGetCmdName(unsigned id)
{
	return "unknown";
}

struct hipChannelFormatDesc hipCreateChannelDesc(int x, int y, int z, int w, enum hipChannelFormatKind f)
{
	struct hipChannelFormatDesc d = { x, y, z, w, f };

	return d;
}

/* hipExtModuleLaunchKernel of 5.x is a C++ function. */
hipError_t ext_module_launch5(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
			      uint32_t bz, size_t shared, hipStream_t h, void **params, void **extra,
			      hipEvent_t start, hipEvent_t stop, uint32_t flags)
	__asm__("_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j");
hipError_t ext_module_launch5(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
			      uint32_t bz, size_t shared, hipStream_t h, void **params, void **extra,
			      hipEvent_t start, hipEvent_t stop, uint32_t flags)
{
	struct sim_thread *t = sim_enter(ID_hipExtModuleLaunchKernel);

	return leave(t, t->verdict ? t->verdict : (int)i_hipExtModuleLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, h,
										  params, extra, start, stop, flags));
}

hipError_t hcc_module_launch5(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
			      uint32_t bz, size_t shared, hipStream_t h, void **params, void **extra,
			      hipEvent_t start, hipEvent_t stop)
	__asm__("_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_");
hipError_t hcc_module_launch5(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
			      uint32_t bz, size_t shared, hipStream_t h, void **params, void **extra,
			      hipEvent_t start, hipEvent_t stop)
{
	return ext_module_launch5(f, gx, gy, gz, bx, by, bz, shared, h, params, extra, start, stop, 0);
}

#pragma GCC visibility pop

/* ---- addresses by name ---- */

/* Only what the version of the day has: 6.1 cannot know a 7.1 entry. */
static hipError_t address(const char *name, void **out)
{
	static const char *const nodes[] = {
#define E(n, node, params, args) #node,
#define N(n, node, params) #node,
#define X(n, node) #node,
#include "hip_entries.h"
#undef E
#undef N
#undef X
	};
	char full[128];
	int id;
	Dl_info me;
	static void *self;

	if (!self && dladdr((void *)address, &me))
		self = dlopen(me.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
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
	int v = (node[0] - '0') * 10 + (node[2] - '0');
	int have = V7 ? 72 : V6 ? 64 : V57 ? 57 : 52;

	if (v > have)
		return hipErrorNotFound;
	*out = dlsym(self, full);
	return *out ? hipSuccess : hipErrorNotFound;
}

hipError_t i_hipGetProcAddress(const char *symbol, void **pfn, int version, uint64_t flags, int *status)
{
	hipError_t e;

	if (!symbol || !pfn || !*symbol)
		return hipErrorInvalidValue;
	e = address(symbol, pfn);
	if (status)
		*status = e ? 1 : 0;
	return e ? hipErrorInvalidValue : hipSuccess;
}

hipError_t i_hipGetDriverEntryPoint(const char *symbol, void **pfn, unsigned long long flags, int *status)
{
	hipError_t e;

	if (!symbol || !pfn || !*symbol)
		return hipErrorInvalidValue;
	e = address(symbol, pfn);
	if (status)
		*status = e ? 1 : 0;
	return hipSuccess;
}

hipError_t i_hipGetDriverEntryPoint_spt(const char *symbol, void **pfn, unsigned long long flags, int *status)
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

/* ---- start ---- */

__attribute__((constructor(105))) static void exports_init(void)
{
	Dl_info me;
	const char *so;

	/* The name it was loaded by is the release that the program asked for. */
	if (!sim_opt.hip) {
		sim_opt.hip = 57;
		if (dladdr((void *)address, &me) && me.dli_fname && (so = strstr(me.dli_fname, ".so."))) {
			if (so[4] == '6')
				sim_opt.hip = 64;
			else if (so[4] == '7')
				sim_opt.hip = 72;
		}
	}
	sim_register_names(SIM_HIP_FIRST, names, ID_end - SIM_HIP_FIRST);
}
