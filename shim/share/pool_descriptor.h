/* SPDX-License-Identifier: MIT */
/* The contents of a shared pool's descriptor: the properties of the pool. Each exported pointer
 * names its own memory. */
#ifndef SS_SHIM_POOL_DESCRIPTOR_H
#define SS_SHIM_POOL_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_POOL_DESC_DEVICES 64
#define SS_POOL_DESC_REUSE 3 /* the three reuse flags */

/* Names a device in every process, even if processes see different devices. */
struct ss_pool_desc_device {
	unsigned char uuid[16];
	char bus[16]; /* 0000:c1:00.0 */
};

struct ss_pool_desc {
	char magic[8];
	uint32_t version, devices;
	uint32_t reuse; /* bit 0: follow events, 1: opportunistic, 2: internal */
	uint32_t reserved;
	struct ss_pool_desc_device device[SS_POOL_DESC_DEVICES]; /* the owner first, then peers */
};

/* Fills in the rest of *desc, whose devices are set, and returns its size in bytes. */
size_t ss_pool_desc_finish(struct ss_pool_desc *desc, unsigned devices, unsigned reuse);
/* Takes any bytes. False: the bytes are no valid contents. */
bool ss_pool_desc_parse(const void *bytes, size_t size, struct ss_pool_desc *out);
bool ss_pool_desc_same_device(const struct ss_pool_desc_device *a,
			      const struct ss_pool_desc_device *b);

/* Makes a new descriptor with these contents, which cannot be changed; -1: failure. */
int ss_pool_desc_write(const struct ss_pool_desc *desc, size_t size);
/* Reads the contents of any descriptor; never blocks. False: the descriptor is none of ours. */
bool ss_pool_desc_read(int fd, struct ss_pool_desc *out);

#endif
