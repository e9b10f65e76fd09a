/* SPDX-License-Identifier: MIT */
/* Addresses and names of the library. */
#ifndef SIM_HIP_PROC_ADDRESS_H
#define SIM_HIP_PROC_ADDRESS_H

/* The release that the name of the loaded library asks for: 57, 64 or 72. */
int release_by_name(void);

#endif
