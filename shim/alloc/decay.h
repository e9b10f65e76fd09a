/* SPDX-License-Identifier: MIT */
/* Calls that reach the device anyway let idle memory of our pools decay. */
#ifndef SS_SHIM_DECAY_H
#define SS_SHIM_DECAY_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/base/processor.h"
#include "driver/rocm/guard.h"

#define SS_DECAY_TICKS (1ull << 22) /* of the processor's clock: a millisecond or two */

extern _Atomic uint64_t ss_decay_polled __attribute__((visibility("hidden")));
void ss_decay_due_slow(uint64_t now);

/* Before the real call, because after an asynchronous one the device is busy. Any thread; does
 * nothing while a stream captures. */
static inline void ss_decay_due(void)
{
	uint64_t now = ss_ticks();

	if (unlikely(now - atomic_load_explicit(&ss_decay_polled, memory_order_relaxed) >=
			     SS_DECAY_TICKS ||
		     !now))
		ss_decay_due_slow(now);
}

#endif
