/* SPDX-License-Identifier: MIT */
/* Runs the fuzz target of live pages without a fuzzer, on random bytes and on names that are
 * nearly right, the same in every run. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "live/page.h"
#include "tests/fuzz/random.h"

#define ROUNDS 4000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(void)
{
	static uint8_t bytes[SS_LIVE_BYTES];
	static const char *const names[] = {"somashim-1-2-3",
					    "somashim-18446744073709551615-1-1",
					    "somashim-1-4294967297-3",
					    "somashim--1-2-3",
					    "somashim- 1-2-3",
					    "somashim-01-2-3",
					    "somashim-1-2-99999999999999999999",
					    "somashim-1-2-3.dump",
					    "somashim-1-2",
					    "somashim"};

	for (int i = 0; i < ROUNDS; i++) {
		size_t size = i % 4 ? sizeof(bytes) : next_random() % sizeof(bytes);
		for (size_t k = 0; k < sizeof(bytes); k++) {
			bytes[k] = next_random() % 4 < (uint64_t)(i % 3) ? 0 :
									   (uint8_t)next_random();
		}
		LLVMFuzzerTestOneInput(bytes, size);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		LLVMFuzzerTestOneInput((const uint8_t *)names[i], strlen(names[i]));
	return 0;
}
