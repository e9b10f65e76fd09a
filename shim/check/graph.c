/* SPDX-License-Identifier: MIT */
/* Launched graphs. Their nodes are not looked into yet: a graph may do anything. */
#include <stdatomic.h>

#include "shim/check/checker.h"
#include "shim/check/inside.h"
#include "shim/check/skips.h"

static _Atomic uint64_t kernels, graphs;

void ss_check_skip_kernel(void)
{
	atomic_fetch_add(&kernels, 1);
}

void ss_check_skip_graph(void)
{
	atomic_fetch_add(&graphs, 1);
}

void ss_check_skips(struct ss_check_skipped *out)
{
	out->kernels = atomic_load(&kernels);
	out->graphs = atomic_load(&graphs);
}

void ss_check_graph(struct ss_timeline *tl, hipGraphExec_t exec)
{
	(void)exec;
	ss_check_skip_graph();
	ss_check_stream_opaque(tl, true, true);
}
