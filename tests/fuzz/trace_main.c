/* SPDX-License-Identifier: MIT */
/* Runs the fuzz target of trace files without a fuzzer: on the files that are named, or on
 * random records behind a good header, the same in every run. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/format.h"
#include "tests/fuzz/random.h"

#ifdef RING /* files of rings, whose blocks have one size */
#define ROUNDS 300
#define BLOCK SS_TRACE_BLOCK_SIZE
#else
#define ROUNDS 3000
#define BLOCK 4096u
#define RING 0
#endif
#define HEADER (sizeof(struct ss_trace_header) + SS_TRACE_RING_SIZE(RING))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As ring.c wants it. Returns how many bytes are left. */
static size_t pack(uint8_t *bytes)
{
	uint8_t *to = bytes + HEADER;

	for (uint32_t b = 0; b < 4; b++) {
		const uint8_t *block = bytes + HEADER + b * BLOCK;
		const uint16_t length = 4096;
		uint8_t tail[8];

		memcpy(tail, block + BLOCK - 8, 8);
		memmove(to + sizeof(length), block, length);
		memcpy(to, &length, sizeof(length));
		memcpy(to + sizeof(length) + length, tail, 8);
		to += sizeof(length) + length + 8;
	}
	return (size_t)(to - bytes);
}

static void random_file(void)
{
	static union {
		struct ss_trace_header header;
		uint8_t bytes[HEADER + 4 * BLOCK];
	} f;

	memset(&f, 0, sizeof(f));
	f.header = (struct ss_trace_header){
		.major = SS_TRACE_MAJOR,
		.endian = SS_TRACE_ENDIAN,
		.header_size = HEADER,
		.block_size = BLOCK,
		.ring_blocks = RING,
		.begin_ns = next_random() % 2 ? 0 : next_random() % 2000,
		.boottime_ns = next_random() % 3 ? 0 : next_random() << 16,
		.realtime_ns = 1000};
	memcpy(f.header.magic, SS_TRACE_MAGIC, sizeof(f.header.magic));
	struct ss_trace_ring *ring = (void *)(&f.header + 1);
	ring->next = RING ? (uint32_t)(next_random() % (RING + 2)) : 0;
	ring->used = RING ? (uint32_t)(next_random() % (RING + 2)) : 0;
	ring->limit = RING / 2;
	for (uint32_t b = 0; b < 4; b++) {
		static const uint32_t magic[] = {SS_TRACE_BLOCK_MAGIC, SS_TRACE_BLOCK_DONE,
						 SS_TRACE_BLOCK_BASE};
		uint8_t *block = f.bytes + HEADER + b * BLOCK;
		uint32_t at = sizeof(struct ss_trace_block);
		*(struct ss_trace_block *)block = (struct ss_trace_block){
			.magic = magic[next_random() % 3], .base_ns = next_random() % 1000};
		while (at + 8 <= BLOCK) {
			struct ss_trace_record *r = (void *)(block + at);
			/* Small numbers are likely */
			for (uint32_t i = at; i < BLOCK && i < at + 160; i++)
				block[i] = next_random() % 3 ? 0 : (uint8_t)next_random();
			r->kind = (uint8_t)(next_random() % 30 + 1);
			r->words = (uint8_t)(next_random() % 16 + 1);
			at += r->words * 8u;
		}
		if (next_random() % 2) /* its tail */
			memcpy(block + BLOCK - 8, &f.header.begin_ns, 8);
	}
	size_t size = RING ? pack(f.bytes) : sizeof(f);

	LLVMFuzzerTestOneInput(f.bytes,
			       size - next_random() % (size / 4 * (next_random() % 4) + 1));
}

static int read_file(const char *path)
{
	static uint8_t data[1 << 22];
	FILE *f = fopen(path, "rb");

	if (!f) {
		perror(path);
		return 1;
	}
	size_t n = fread(data, 1, sizeof(data), f);
	fclose(f);
	return LLVMFuzzerTestOneInput(data, n);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (read_file(argv[i]) != 0)
			return 1;
	for (int i = 0; argc == 1 && i < ROUNDS; i++)
		random_file();
	return 0;
}
