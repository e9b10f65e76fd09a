/* SPDX-License-Identifier: MIT */
/* Facts about an address, as the driver has them. */
#ifndef SIM_CUDA_POINTER_H
#define SIM_CUDA_POINTER_H

#include "cuda/driver.h"

struct pointer_facts {
	CUmemorytype type; /* 0: the driver does not know the address */
	CUmemoryPool pool; /* that it was allocated from, or NULL */
	bool managed;
};

/* A context is current. */
struct pointer_facts pointer_facts(const void *p);

/* Host or device, as copies want it. Addresses that the driver does not know are pageable host
 * memory. */
CUmemorytype pointer_side(const void *p);

#endif
