/* SPDX-License-Identifier: MIT */
/* What the descriptor of a shared pool says: which pool it is like, not where its
 * memory is (each pointer brings that itself). */
#ifndef SS_SHIM_POOL_DESCRIPTOR_H
#define SS_SHIM_POOL_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_POOL_DESC_DEVICES 64
#define SS_POOL_DESC_REUSE 3 /* the three reuse flags */

/* A device by what every process calls it, whichever of them it sees. */
struct ss_pool_desc_device {
	unsigned char uuid[16];
	char bus[16]; /* 0000:c1:00.0 */
};

struct ss_pool_desc {
	char magic[8];
	uint32_t version, devices;
	uint32_t reuse; /* bit 0: follow events, 1: opportunistic, 2: internal */
	uint32_t reserved;
	struct ss_pool_desc_device device[SS_POOL_DESC_DEVICES]; /* the owner, then those with access */
};

/* Fills the head of `card`, whose devices are in place, and returns the bytes it has. */
size_t ss_pool_desc_finish(struct ss_pool_desc *card, unsigned devices, unsigned reuse);
/* Takes any bytes. False: no such card. */
bool ss_pool_desc_parse(const void *bytes, size_t size, struct ss_pool_desc *out);
bool ss_pool_desc_same_device(const struct ss_pool_desc_device *a, const struct ss_pool_desc_device *b);

/* A descriptor with the card in it that nobody can change; -1: there is none to be had. */
int ss_pool_desc_write(const struct ss_pool_desc *card, size_t size);
/* Reads one, from any descriptor, without waiting for anybody. */
bool ss_pool_desc_read(int fd, struct ss_pool_desc *out);

#endif
