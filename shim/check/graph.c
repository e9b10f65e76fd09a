/* SPDX-License-Identifier: MIT */
/* Launched graphs. Their nodes are not looked into yet: a graph may do anything. */
#include "shim/check/checker.h"
#include "shim/check/skips.h"

void ss_check_graph(struct ss_timeline *tl, hipGraphExec_t exec)
{
	(void)exec;
	ss_check_skip_graph();
	ss_check_stream_opaque(tl, true, true);
}
