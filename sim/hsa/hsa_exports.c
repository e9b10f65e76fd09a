/* SPDX-License-Identifier: MIT */
/* The exported hsa_* symbols: count, maybe fail, call the implementation. */
#include "hsa_sim.h"

#define E(name, params, args) ID_##name,
enum {
	ID_first = SIM_HSA_FIRST - 1,
#include "hsa_entries.h"
#undef E
#define V(ret, name, params, expr) ID_##name,
#include "hsa_values.h"
#undef V
	ID_end
};

#define E(name, params, args) #name,
static const char *const names[] = {
#include "hsa_entries.h"
#undef E
#define V(ret, name, params, expr) #name,
#include "hsa_values.h"
#undef V
};
_Static_assert(ID_end <= SIM_HIP_FIRST, "grow SIM_HIP_FIRST");

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
#include "hsa_entries.h"
#undef E

/* Signal values cannot fail; acquire and release variants are all one. */
#define V(ret, name, params, expr) \
	ret name params; \
	ret name params \
	{ \
		struct sim_thread *t_ = sim_enter(ID_##name); \
		sim_leave(t_); \
		return (ret)(expr); \
	}
#include "hsa_values.h"
#undef V

#pragma GCC visibility pop

__attribute__((constructor(103))) static void exports_init(void)
{
	sim_register_names(SIM_HSA_FIRST, names, ID_end - SIM_HSA_FIRST);
}
