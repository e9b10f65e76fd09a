/* SPDX-License-Identifier: MIT */
/* What the descriptor of a shared pool says: which pool it is like, not where its
 * memory is (each pointer brings that itself). */
#ifndef SS_SHIM_CARD_H
#define SS_SHIM_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_CARD_DEVICES 64
#define SS_CARD_REUSE 3 /* the three reuse flags */

/* A device by what every process calls it, whichever of them it sees. */
struct ss_card_device {
	unsigned char uuid[16];
	char bus[16]; /* 0000:c1:00.0 */
};

struct ss_card {
	char magic[8];
	uint32_t version, devices;
	uint32_t reuse; /* bit 0: follow events, 1: opportunistic, 2: internal */
	uint32_t reserved;
	struct ss_card_device device[SS_CARD_DEVICES]; /* the owner, then those with access */
};

/* Fills the head of `card`, whose devices are in place, and returns the bytes it has. */
size_t ss_card_finish(struct ss_card *card, unsigned devices, unsigned reuse);
/* Takes any bytes. False: no such card. */
bool ss_card_parse(const void *bytes, size_t size, struct ss_card *out);
bool ss_card_same(const struct ss_card_device *a, const struct ss_card_device *b);

/* A descriptor with the card in it that nobody can change; -1: there is none to be had. */
int ss_card_write(const struct ss_card *card, size_t size);
/* Reads one, from any descriptor, without waiting for anybody. */
bool ss_card_read(int fd, struct ss_card *out);

#endif
