/* SPDX-License-Identifier: MIT */
/* Inside libhsa-runtime64: what its files share. */
#ifndef HSA_SIM_H
#define HSA_SIM_H

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include "device/sim.h"

enum sim_signal_op { SIG_LOAD, SIG_STORE, SIG_ADD, SIG_SUB, SIG_AND, SIG_OR, SIG_XOR, SIG_XCHG, SIG_CAS };

int64_t sim_signal_op(hsa_signal_t s, enum sim_signal_op op, int64_t v, int64_t expected);
int64_t sim_signal_wait(hsa_signal_t s, hsa_signal_condition_t c, int64_t ref, uint64_t timeout);
uint32_t sim_signal_wait_many(uint32_t n, hsa_signal_t *s, hsa_signal_condition_t *c,
			      hsa_signal_value_t *ref, uint64_t timeout, bool all,
			      hsa_signal_value_t *out);

/* Newer than Debian 12's header; layouts as in ROCr 6.x. */
typedef struct { uint64_t handle; } sim_vmem_handle_t;
typedef struct { int permissions; hsa_agent_t agent_handle; } sim_access_desc_t;

int sim_agent_device(hsa_agent_t agent);      /* -1 the CPU, -2 unknown */
hsa_agent_t sim_device_agent(int device);
bool sim_hsa_up(void);
int sim_pool_device(hsa_amd_memory_pool_t pool);


#define E(name, params, args) hsa_status_t i_##name params;
#include "hsa_entries.h"
#undef E

#endif
