/* SPDX-License-Identifier: MIT */
/* Writes a bundle with the kernel `fill`: own_code_writer ARGUMENTS FILE, the arguments as in
 * code_writer.h. */
#include "code_writer.h"

int main(int argc, char **argv)
{
	static struct code_writer w;
	static uint8_t bundle[16384];
	FILE *out = argc == 3 ? fopen(argv[2], "w") : NULL;
	const char *kernels[] = {"fill", argc == 3 ? argv[1] : "", NULL};
	size_t size;

	if (!out)
		return 2;
	code_object(&w, kernels);
	size = code_bundle(bundle, &w);
	return fwrite(bundle, 1, size, out) != size || fclose(out) != 0;
}
