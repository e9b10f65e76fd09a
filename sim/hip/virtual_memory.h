/* SPDX-License-Identifier: MIT */
/* The calls of virtual memory, counted for the device's graphs. */
#ifndef SIM_HIP_VIRTUAL_MEMORY_H
#define SIM_HIP_VIRTUAL_MEMORY_H

/* The number of calls of hipMemMap and hipMemUnmap so far. Any thread. */
unsigned long long virtual_memory_maps(void);

#endif
