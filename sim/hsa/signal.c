/* SPDX-License-Identifier: MIT */
/* The HSA signal calls that return a status, and waits for several signals. */
#include <stdbool.h>

#include "device/clock.h"
#include "device/signal.h"
#include "hsa/entry_points.h"
#include "hsa/signal.h"

_Static_assert(HSA_SIGNAL_CONDITION_EQ == (int)SIM_EQUAL &&
		       HSA_SIGNAL_CONDITION_NE == (int)SIM_NOT_EQUAL &&
		       HSA_SIGNAL_CONDITION_LT == (int)SIM_LESS &&
		       HSA_SIGNAL_CONDITION_GTE == (int)SIM_NOT_LESS,
	       "conditions pass through as numbers");

hsa_status_t i_hsa_signal_create(hsa_signal_value_t v, uint32_t n, const hsa_agent_t *c,
				 hsa_signal_t *out)
{
	if (!out)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	out->handle = sim_signal_new(v);
	return out->handle ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

hsa_status_t i_hsa_amd_signal_create(hsa_signal_value_t v, uint32_t n, const hsa_agent_t *c,
				     uint64_t attributes, hsa_signal_t *out)
{
	return i_hsa_signal_create(v, n, c, out);
}

hsa_status_t i_hsa_signal_destroy(hsa_signal_t s)
{
	if (!s.handle)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (!sim_signal_is_live(s.handle))
		return HSA_STATUS_ERROR_INVALID_SIGNAL;
	sim_signal_free(s.handle);
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_signal_value_pointer(hsa_signal_t s, volatile hsa_signal_value_t **p)
{
	if (!s.handle || !p)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	*p = sim_signal_value(s.handle);
	return HSA_STATUS_SUCCESS;
}

uint32_t hsa_wait_many(uint32_t n, const hsa_signal_t *s, const hsa_signal_condition_t *c,
		       const hsa_signal_value_t *ref, uint64_t timeout, bool all,
		       hsa_signal_value_t *out)
{
	uint64_t start = sim_now_ns();

	for (unsigned round = 0;; round++) {
		uint32_t met = 0;

		for (uint32_t i = 0; i < n; i++) {
			int64_t v;

			if (!sim_signal_holds(s[i].handle, (enum sim_condition)c[i], ref[i], &v))
				continue;
			met++;
			if (!all) {
				if (out)
					*out = v;
				return i;
			}
			if (out)
				out[i] = v;
		}
		if (all && met == n)
			return 0;
		if (timeout != UINT64_MAX && sim_now_ns() - start >= timeout)
			return UINT32_MAX;
		sim_signal_pause(round);
	}
}
