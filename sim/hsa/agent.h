/* SPDX-License-Identifier: MIT */
/* Agents as numbers of devices. */
#ifndef SIM_HSA_AGENT_H
#define SIM_HSA_AGENT_H

#include <hsa/hsa.h>

/* The device of an agent; -1: the CPU, -2: no agent. */
int hsa_agent_device(hsa_agent_t agent);
hsa_agent_t hsa_device_agent(int device);

#endif
