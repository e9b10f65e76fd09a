/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target without a fuzzer: on each file of the folders that are named, and on mutations
 * of it, the same in every run. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/random.h"

#define MUTATIONS 200
#define MOST (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

/* Numbers at which readers go wrong. */
static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff};

static size_t mutate(uint8_t *data, size_t size)
{
	for (uint64_t n = 1 + next_random() % 4; n && size; n--) {
		size_t at = next_random() % size, length = 1 + next_random() % 8;

		length = length < size - at ? length : size - at;
		switch (next_random() % 5) {
		case 0: data[at] ^= (uint8_t)(1u << next_random() % 8); break;
		case 1: memset(data + at, edges[next_random() % sizeof(edges)], length); break;
		case 2:
			memmove(data + at, data + next_random() % (size - length + 1), length);
			break;
		case 3: memmove(data + at, data + at + length, size - at - length); break;
		default: size = next_random() % 8 ? size : at; break;
		}
	}
	return size;
}

/* False: it cannot be read. */
static int run_file(const char *path)
{
	static uint8_t whole[MOST], changed[MOST];
	FILE *in = fopen(path, "rb");

	if (!in) {
		perror(path);
		return 0;
	}
	size_t size = fread(whole, 1, sizeof(whole), in);
	fclose(in);
	LLVMFuzzerTestOneInput(whole, size);
	for (int i = 0; i < MUTATIONS; i++) {
		memcpy(changed, whole, size);
		LLVMFuzzerTestOneInput(changed, mutate(changed, size));
	}
	return 1;
}

int main(int argc, char **argv)
{
	int files = 0, good = 1;

	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++) {
		struct dirent **entry;
		int n = scandir(argv[i], &entry, NULL, alphasort);

		for (int k = 0; k < n; k++) {
			char path[4096];

			snprintf(path, sizeof(path), "%s/%s", argv[i], entry[k]->d_name);
			if (entry[k]->d_name[0] != '.') {
				good &= run_file(path);
				files++;
			}
			free(entry[k]);
		}
		if (n >= 0)
			free(entry);
	}
	printf("%d inputs, and %d mutations of each\n", files, MUTATIONS);
	return good && files ? 0 : 1;
}
