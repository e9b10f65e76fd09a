/* SPDX-License-Identifier: MIT */
/* Waiting for several HSA signals. */
#ifndef SIM_HSA_SIGNAL_H
#define SIM_HSA_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <hsa/hsa.h>

/* Waits until one condition holds, or all do, for at most timeout nanoseconds (UINT64_MAX:
 * for ever). Returns the index of the signal (0 with all set), or UINT32_MAX on timeout.
 * *out gets the value, or all of them. Thread-safe. */
uint32_t hsa_wait_many(uint32_t n, const hsa_signal_t *s, const hsa_signal_condition_t *c,
		       const hsa_signal_value_t *ref, uint64_t timeout, bool all,
		       hsa_signal_value_t *out);

#endif
