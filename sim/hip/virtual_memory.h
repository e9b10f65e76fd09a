/* SPDX-License-Identifier: MIT */
/* What other entry points ask of virtual memory. */
#ifndef SIM_HIP_VIRTUAL_MEMORY_H
#define SIM_HIP_VIRTUAL_MEMORY_H

/* The number of calls of hipMemMap and hipMemUnmap so far. Any thread. */
unsigned long long virtual_memory_maps(void);

#endif
