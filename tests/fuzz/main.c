/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target without a fuzzer: on the files given, or on bytes of its own, which are the
 * same in every run. Some of these are parts of valid descriptors, which random bytes never are.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/share/pool_descriptor.h"
#include "shim/share/handle.h"
#include "tests/fuzz/random.h"

#define ROUNDS 200000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Handles with impossible contents and any checksum; one of the checksums is right. */
static void forge(uint64_t offset, uint64_t size)
{
	uint8_t data[1 + SS_HANDLE_BYTES] = {0};
	struct ss_handle h = {.segment_size = 2 << 20, .offset = 512, .size = 1, .serial = 1}, back;
	uint64_t where;
	unsigned good = 0;

	memcpy(h.real + 32, &h.segment_size, 8);
	if (!ss_handle_pack(&h, data + 1))
		abort();
	memcpy(&where, data + 41, 8);
	where += offset / 512 - 1;
	memcpy(data + 41, &where, 8);
	for (uint64_t check = 0; check < 1 << 19; check++) {
		uint64_t rest = check << 45 | size;

		memcpy(data + 57, &rest, 8);
		good += ss_handle_parse(data + 1, &back) == SS_HANDLE_OURS;
		LLVMFuzzerTestOneInput(data, sizeof(data));
	}
	/* The search finds a handle that is accepted. */
	if (good != (offset + size <= h.segment_size))
		abort();
}

static int file(const char *path)
{
	static uint8_t data[1 << 16];
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f) {
		perror(path);
		return 1;
	}
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, n);
	return 0;
}

int main(int argc, char **argv)
{
	static uint8_t data[sizeof(struct ss_pool_desc) + 8];
	struct ss_pool_desc card;
	int failed = 0;

	for (int i = 1; i < argc; i++)
		failed |= file(argv[i]);
	if (argc > 1)
		return failed;
	forge(1024, 4096);
	forge(1024, 2 << 20);
	forge(4 << 20, 1);
	for (int i = 0; i < ROUNDS; i++) {
		size_t n = next_random() % (next_random() % 16 ? 160 : sizeof(data)) + 1;

		for (size_t k = 0; k < n; k++)
			data[k] = (uint8_t)next_random();
		LLVMFuzzerTestOneInput(data, n);
		if (i % 16)
			continue;
		memset(&card, 0, sizeof(card));
		for (unsigned k = 0; k < SS_POOL_DESC_DEVICES; k++)
			snprintf(card.device[k].bus, sizeof(card.device[k].bus), "0000:%02x:00.0",
				 k);
		if (i % 3 == 0)
			memset(card.device[next_random() % 4].bus, 'x', sizeof(card.device[0].bus));
		n = ss_pool_desc_finish(&card, (unsigned)(next_random() % SS_POOL_DESC_DEVICES + 1),
					next_random() % 8);
		data[0] = 1;
		memcpy(data + 1, &card, n);
		if (i % 32)
			data[1 + next_random() % 40] ^= (uint8_t)(1 << next_random() % 8);
		LLVMFuzzerTestOneInput(data, n + 1 - (i % 48 ? 0 : next_random() % n));
	}
	return 0;
}
