/* SPDX-License-Identifier: MIT */
/* Runs the fuzz target of trace files without a fuzzer: on the files that are named, or on
 * random records behind a good header, the same in every run. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/format.h"

#define ROUNDS 3000
#define BLOCK 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t state = 88172645463325252ull;

static uint64_t next_random(void) {
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 2685821657736338717ull >> 16;
}

static void random_file(void) {
	static union {
		struct ss_trace_header header;
		uint8_t bytes[sizeof(struct ss_trace_header) + 4 * BLOCK];
	} f;

	memset(&f, 0, sizeof(f));
	f.header = (struct ss_trace_header){ .major = SS_TRACE_MAJOR, .endian = SS_TRACE_ENDIAN,
		.header_size = sizeof(f.header), .block_size = BLOCK,
		.boottime_ns = next_random() % 3 ? 0 : next_random() << 16, .realtime_ns = 1000 };
	memcpy(f.header.magic, SS_TRACE_MAGIC, sizeof(f.header.magic));
	for (uint32_t b = 0; b < 4; b++) {
		uint8_t *block = f.bytes + sizeof(f.header) + b * BLOCK;
		uint32_t at = sizeof(struct ss_trace_block);
		*(struct ss_trace_block *)block = (struct ss_trace_block){
			.magic = SS_TRACE_BLOCK_MAGIC, .base_ns = next_random() % 1000 };
		while (at + 8 <= BLOCK) {
			struct ss_trace_record *r = (void *)(block + at);
			for (uint32_t i = at; i < BLOCK && i < at + 160; i++) { /* small numbers are likely */
				block[i] = next_random() % 3 ? 0 : (uint8_t)next_random();
			}
			r->kind = (uint8_t)(next_random() % 30 + 1);
			r->words = (uint8_t)(next_random() % 16 + 1);
			at += r->words * 8u;
		}
	}
	LLVMFuzzerTestOneInput(f.bytes, sizeof(f) - next_random() % (BLOCK * (next_random() % 4 + 1)));
}

static int read_file(const char *path) {
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

int main(int argc, char **argv) {
	for (int i = 1; i < argc; i++) {
		if (read_file(argv[i]) != 0) {
			return 1;
		}
	}
	for (int i = 0; argc == 1 && i < ROUNDS; i++) {
		random_file();
	}
	return 0;
}
