/* SPDX-License-Identifier: MIT */
/*
 * The exported hsa_* symbols. Each counts the call, fails if a rule says so, and calls the
 * function of the same name with i_ in front.
 */
#include "device/calls.h"
#include "device/failures.h"
#include "device/signal.h"
#include "hsa/entry_points.h"
#include "hsa/signal.h"

#define E(name, params, args) ID_##name,
enum {
	ID_first = SIM_HSA_FIRST - 1,
#include "hsa/hsa_entries.h"
#undef E
#define V(ret, name, params, expr) ID_##name,
#include "hsa/hsa_values.h"
#undef V
	ID_end
};

#define E(name, params, args) #name,
static const char *const names[] = {
#include "hsa/hsa_entries.h"
#undef E
#define V(ret, name, params, expr) #name,
#include "hsa/hsa_values.h"
#undef V
};
_Static_assert(ID_end <= SIM_HIP_FIRST, "SIM_HIP_FIRST is too small");

#pragma GCC visibility push(default)

#define E(name, params, args) \
	hsa_status_t name params; \
	hsa_status_t name params \
	{ \
		struct sim_thread *t_ = sim_enter(ID_##name); \
		int s_ = t_->verdict; \
		if (likely(!s_)) \
			s_ = (int)i_##name args; \
		sim_leave(t_); \
		return (hsa_status_t)s_; \
	}
#include "hsa/hsa_entries.h"
#undef E

/* These calls cannot fail. The variants by memory order are all the same here. */
#define V(ret, name, params, expr) \
	ret name params; \
	ret name params \
	{ \
		struct sim_thread *t_ = sim_enter(ID_##name); \
		sim_leave(t_); \
		return (ret)(expr); \
	}
#include "hsa/hsa_values.h"
#undef V

#pragma GCC visibility pop

__attribute__((constructor(103))) static void exports_init(void)
{
	sim_calls_register(SIM_HSA_FIRST, names, ID_end - SIM_HSA_FIRST);
	sim_failures_apply(SIM_HSA_FIRST, ID_end - SIM_HSA_FIRST, "hsa");
}
