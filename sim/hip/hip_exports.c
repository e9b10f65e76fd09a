/* SPDX-License-Identifier: MIT */
/*
 * The exported hip* symbols. Each counts the call, fails if a rule says so, calls the function
 * of the same name with i_ in front, and keeps the last error. The few exports that return no
 * hipError_t are written out.
 */
#include "device/calls.h"
#include "device/failures.h"
#include "device/options.h"
#include "hip/entry_points.h"
#include "hip/proc_address.h"
#include "hip/reentry.h"
#include "hip/thread_state.h"
#include "hip/version.h"

#define E(name, node, params, args) ID_##name,
#define S(name, node, params, args) ID_##name##_spt,
#define N(name, node, params) ID_##name,
#define X(name, node) ID_##name,
enum {
	ID_first = SIM_HIP_FIRST - 1,
#include "hip/hip_entries.h"
	ID_end
};
#undef E
#undef S
#undef N
#undef X

#define E(name, node, params, args) #name,
#define S(name, node, params, args) #name "_spt",
#define N(name, node, params) #name,
#define X(name, node) #name,
static const char *const names[] = {
#include "hip/hip_entries.h"
};
#undef E
#undef S
#undef N
#undef X
_Static_assert(ID_end <= SIM_MAX_CALLS, "SIM_MAX_CALLS is too small");

/* Up to 6.x every call overwrites the last error, also with success. Since 7.0 an error stays
 * until it is read. */
static inline hipError_t leave(struct sim_thread *t, int e)
{
	if (e == SIM_LOST)
		e = hipSuccess;
	if (t->depth == 1) {
		thread_state()->last_command = e;
		if (!V7 || (e && e != hipErrorNotReady))
			thread_state()->last_error = e;
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
#define S(name, node, params, args) \
	EXPORT(name##_spt, params, args, { \
		struct sim_thread *t_ = sim_enter(ID_##name##_spt); \
		int e_ = t_->verdict; \
		stream = stream ? stream : hipStreamPerThread; \
		if (likely(!e_)) \
			e_ = (int)i_##name args; \
		return leave(t_, e_); \
	})
/* The real library exports these calls; this device does not support them. */
#define N(name, node, params) \
	hipError_t name params \
	{ \
		struct sim_thread *t_ = sim_enter(ID_##name); \
		return leave(t_, t_->verdict ? t_->verdict : hipErrorNotSupported); \
	}
#define X(name, node)
#include "hip/hip_entries.h"
#undef E
#undef S
#undef N
#undef X

enum read { READ_AND_CLEAR, PEEK, READ_LAST_COMMAND };

static hipError_t read_error(int id, enum read how)
{
	struct sim_thread *t = sim_enter(id);
	int e = how == READ_LAST_COMMAND ? thread_state()->last_command :
					   thread_state()->last_error;

	if (how == READ_LAST_COMMAND)
		thread_state()->last_command = 0;
	if (how == READ_AND_CLEAR)
		thread_state()->last_error = 0;
	/* For hipExtGetLastError the peek is a command that has failed. */
	if (how == PEEK && V7 && e)
		thread_state()->last_command = e;
	sim_leave(t);
	return sim_opt.no_device ? hipErrorNoDevice : (hipError_t)e;
}

EXPORT(hipGetLastError, (void), (), { return read_error(ID_hipGetLastError, READ_AND_CLEAR); })
EXPORT(hipPeekAtLastError, (void), (), { return read_error(ID_hipPeekAtLastError, PEEK); })
EXPORT(hipExtGetLastError, (void), (),
       { return read_error(ID_hipExtGetLastError, READ_LAST_COMMAND); })

const char *hipApiName(uint32_t id)
{
	return "unknown";
}

const char *hipGetCmdName(unsigned id)
{
	return "unknown";
}

struct hipChannelFormatDesc hipCreateChannelDesc(int x, int y, int z, int w,
						 enum hipChannelFormatKind f)
{
	struct hipChannelFormatDesc d = {x, y, z, w, f};

	return d;
}

/* Up to 5.x hipExtModuleLaunchKernel is a C++ function. */
hipError_t ext_module_launch5(
	hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
	uint32_t bz, size_t shared, hipStream_t h, void **params, void **extra, hipEvent_t start,
	hipEvent_t stop, uint32_t flags) __asm__("_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_"
						 "tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j");
hipError_t ext_module_launch5(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx,
			      uint32_t by, uint32_t bz, size_t shared, hipStream_t h, void **params,
			      void **extra, hipEvent_t start, hipEvent_t stop, uint32_t flags)
{
	struct sim_thread *t = sim_enter(ID_hipExtModuleLaunchKernel);
	int e = t->verdict;

	if (!e)
		e = (int)i_hipExtModuleLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, h, params,
						    extra, start, stop, flags);
	return leave(t, e);
}

hipError_t hcc_module_launch5(
	hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
	uint32_t bz, size_t shared, hipStream_t h, void **params, void **extra, hipEvent_t start,
	hipEvent_t stop) __asm__("_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_"
				 "tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_");
hipError_t hcc_module_launch5(hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx,
			      uint32_t by, uint32_t bz, size_t shared, hipStream_t h, void **params,
			      void **extra, hipEvent_t start, hipEvent_t stop)
{
	return ext_module_launch5(f, gx, gy, gz, bx, by, bz, shared, h, params, extra, start, stop,
				  0);
}

#pragma GCC visibility pop

/* ---- start ---- */

/* Calls by the names of exports, from inside the library: see reentry.h. */
static hipError_t reenter_mem_info(size_t *avail, size_t *total)
{
	return hipMemGetInfo(avail, total);
}

static hipError_t reenter_host_malloc(void **ptr, size_t size, unsigned flags)
{
	return hipHostMalloc(ptr, size, flags);
}

static hipError_t reenter_malloc_pitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
	return hipMallocPitch(ptr, pitch, width, height);
}

static hipError_t reenter_memcpy_async(void *dst, const void *src, size_t n, hipMemcpyKind kind,
				       hipStream_t h)
{
	return hipMemcpyAsync(dst, src, n, kind, h);
}

__attribute__((constructor(105))) static void exports_init(void)
{
	reentry = (struct reentry){reenter_mem_info, reenter_host_malloc, reenter_malloc_pitch,
				   reenter_memcpy_async};
	if (!sim_opt.hip)
		sim_opt.hip = release_by_name();
	if (sim_opt.hip == 714)
		sim_opt.quirk[SIM_Q_FD_PER_HANDLE] = true;
	if (sim_opt.hip >= 702)
		sim_opt.quirk[SIM_Q_QUERY_WAITS] = !sim_opt.without[SIM_Q_QUERY_WAITS];
	sim_calls_register(SIM_HIP_FIRST, names, ID_end - SIM_HIP_FIRST);
	sim_failures_apply(SIM_HIP_FIRST, ID_end - SIM_HIP_FIRST, "hip");
}
