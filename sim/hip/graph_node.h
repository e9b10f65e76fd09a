/* SPDX-License-Identifier: MIT */
/* Making and changing nodes by handle. */
#ifndef SIM_HIP_GRAPH_NODE_H
#define SIM_HIP_GRAPH_NODE_H

#include <hip/hip_runtime_api.h>

#include "hip/graph.h"

/* Adds a node to the graph behind h. Takes c over, also when it fails. *made, if made is not
 * NULL, gets the node. */
hipError_t node_create(hipGraphNode_t *out, hipGraph_t h, const hipGraphNode_t *deps, size_t n,
		       enum node_type type, struct sim_command *c, struct node **made);

/* Gives a node another command, which is taken over. n may be NULL: an error. */
hipError_t node_replace(struct node *n, struct sim_command *c);

#endif
