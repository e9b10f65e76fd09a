/* SPDX-License-Identifier: MIT */
/* Executable graphs. */
#ifndef SIM_HIP_GRAPH_EXEC_H
#define SIM_HIP_GRAPH_EXEC_H

#include <hip/hip_runtime_api.h>

struct node;

/* The executable's copy of a graph's node, or NULL. */
struct node *node_in_exec(hipGraphExec_t h, hipGraphNode_t node);

#endif
