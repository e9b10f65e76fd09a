/* SPDX-License-Identifier: MIT */
/* State for all files of the checker: whether it runs, and counts of skipped checks. */
#include <stdatomic.h>

#include "shim/check/checker.h"
#include "shim/check/inside.h"
#include "shim/check/skips.h"

bool ss_checking;
struct ss_check *ss_check_state;

static _Atomic uint64_t kernels, graphs, bytes;

void ss_check_skip_kernel(void)
{
	atomic_fetch_add(&kernels, 1);
}

void ss_check_skip_graph(void)
{
	atomic_fetch_add(&graphs, 1);
}

void ss_check_skip_bytes(void)
{
	atomic_fetch_add(&bytes, 1);
}

void ss_check_skips(struct ss_check_skipped *out)
{
	out->kernels = atomic_load(&kernels);
	out->graphs = atomic_load(&graphs);
	out->bytes = atomic_load(&bytes);
}
