/* SPDX-License-Identifier: MIT */
/*
 * Reads code objects: one that code_writer.h makes, and those that are named as arguments, which
 * clang has made from kernel.cl. Then broken ones, which must be read without harm (the sanitizers
 * look).
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "code_writer.h"
#include "core/check/code_object.h"
#include "shim/check/unpack.h"
#include "tests/random.h"

#define CHECK(cond) do { \
	if (!(cond)) { \
		fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond); \
		exit(1); \
	} \
} while (0)

static struct ss_kernel_layout last, first;
static char name[64];
static unsigned count;

static void keep(const struct ss_kernel_layout *k, void *unused)
{
	(void)unused;
	count++;
	last = *k;
	if (count == 1)
		first = *k;
	snprintf(name, sizeof(name), "%.*s", (int)k->name_size, k->name);
}

static bool is_arg(unsigned i, unsigned offset, unsigned size, bool pointer)
{
	return last.arg[i].offset == offset && last.arg[i].size == size &&
	       last.arg[i].pointer == pointer;
}

static void written(void)
{
	static const char *const kernels[] = {"first", "p", "second", "pisph", NULL};
	static struct code_writer w;
	const void *image = code_object(&w, kernels);

	count = 0;
	CHECK(ss_code_object_read(image, w.size, ss_unpack, keep, NULL));
	CHECK(count == 2 && !strcmp(name, "second") && last.count == 4);
	CHECK(is_arg(0, 0, 8, true) && is_arg(1, 8, 4, false) && is_arg(2, 16, 24, false) &&
	      is_arg(3, 40, 8, true));
	count = 0;
	CHECK(ss_code_object_read(image, sizeof(w.data), ss_unpack, keep, NULL) && count == 2);
}

/* Of a bundle only what is for the devices is read, and all of it if there is no such. */
static void for_architectures(void)
{
	static const char *const archs[] = {"gfx906", "gfx90a:xnack-", "gfx90a:xnack+", NULL};
	static const char *const one[] = {"only", "p", NULL}, *const two[] = {"only", "pp", NULL};
	static struct code_writer w[3];
	static uint8_t bundle[32768];
	static const struct {
		const char *arch;
		unsigned kernels, arguments; /* of the last one */
	} cases[] = {{"gfx906", 1, 1},
		     {"gfx90a", 2, 2},
		     {"gfx90", 3, 2},
		     {"gfx942", 3, 2},
		     {NULL, 3, 2}};
	size_t size, length;

	code_object(&w[0], one);
	code_object(&w[1], two);
	code_object(&w[2], two);
	size = code_bundle_of(bundle, w, archs);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *list[] = {cases[i].arch, NULL};

		count = 0;
		CHECK(ss_code_object_read_for(bundle, sizeof(bundle), list, ss_unpack, keep, NULL,
					      &length));
		CHECK(count == cases[i].kernels && last.count == cases[i].arguments);
		CHECK(length == size);
	}
}

/* The same in a bundle of clang, behind the empty entry of the host. */
static void bundled(void)
{
	static const char *const kernels[] = {"only", "pp", NULL};
	static struct code_writer w;
	static uint8_t bundle[16384];

	code_object(&w, kernels);
	code_bundle(bundle, &w);
	count = 0;
	CHECK(ss_code_object_read(bundle, sizeof(bundle), ss_unpack, keep, NULL) && count == 1 &&
	      last.count == 2);
	CHECK(!ss_code_object_read(bundle, 4200, ss_unpack, keep, NULL));
}

/* The same compressed, where the library that unpacks it is there. */
static void packed(void)
{
	static const char *const kernels[] = {"only", "pp", NULL};
	static struct code_writer w;
	static uint8_t image[32768], broken_image[32768];
	uint64_t seed = 1;

	code_object(&w, kernels);
	for (int zstd = 0; zstd < 2; zstd++) {
		if (!dlopen(zstd ? "libzstd.so.1" : "libz.so.1", RTLD_NOW)) {
			printf("%s is not there, so it is not tried\n", zstd ? "libzstd" : "libz");
			continue;
		}
		for (unsigned version = 1; version <= 4; version++) {
			size_t size = code_packed(image, &w, version, zstd);

			count = 0;
			last.count = 0;
			CHECK(ss_code_object_read(image, sizeof(image), ss_unpack, keep, NULL) ==
			      (version < 4));
			CHECK(count == (version < 4) && last.count == (version < 4 ? 2 : 0));
			CHECK(!ss_code_object_read(image, size - 1, ss_unpack, keep, NULL));
			CHECK(!ss_code_object_read(image, sizeof(image), NULL, keep, NULL));
			for (int round = 0; round < 300; round++) {
				memcpy(broken_image, image, size);
				for (int n = 1 + (int)(next_random(&seed) % 4); n; n--)
					broken_image[4 + next_random(&seed) % 60] = (uint8_t)
						next_random(&seed);
				(void)ss_code_object_read(broken_image, size, ss_unpack, keep,
							  NULL);
			}
		}
	}
}

static void compiled(const char *path)
{
	FILE *in = fopen(path, "rb");
	static uint8_t data[1 << 20];
	uint64_t seed = 1;
	size_t size;

	CHECK(in);
	size = fread(data, 1, sizeof(data), in);
	fclose(in);
	count = 0;
	CHECK(ss_code_object_read(data, size, ss_unpack, keep, NULL) && count == 2 &&
	      !strcmp(name, "fill"));
	CHECK(first.count == 4 && !first.arg[0].idle && first.arg[1].idle && !first.arg[2].idle &&
	      !first.arg[1].writes);
	CHECK(last.count == 4 && is_arg(0, 0, 8, true) && is_arg(1, 8, 4, false) &&
	      is_arg(2, 16, 16, false) && is_arg(3, 32, 8, true));
	CHECK(ss_code_object_read(data, sizeof(data), ss_unpack, keep, NULL) && count == 4);
	for (int round = 0; round < 20000; round++) {
		static uint8_t copy[1 << 20];

		memcpy(copy, data, size);
		for (int n = 1 + (int)(next_random(&seed) % 8); n; n--)
			copy[next_random(&seed) % size] = (uint8_t)next_random(&seed);
		(void)ss_code_object_read(copy, size, ss_unpack, keep, NULL);
	}
}

static void broken(uint64_t seed)
{
	static const char *const kernels[] = {"first", "p", "second", "pisph", NULL};
	static struct code_writer w;

	for (int round = 0; round < 20000; round++) {
		uint8_t *copy;

		code_object(&w, kernels);
		for (int n = 1 + (int)(next_random(&seed) % 4); n; n--)
			w.data[next_random(&seed) % w.size] = (uint8_t)next_random(&seed);
		w.size -= next_random(&seed) % 2 ? next_random(&seed) % w.size : 0;
		copy = malloc(w.size); /* of just this size */
		CHECK(copy);
		memcpy(copy, w.data, w.size);
		(void)ss_code_object_read(copy, w.size, ss_unpack, keep, NULL);
		free(copy);
	}
}

int main(int argc, char **argv)
{
	ss_unpack_open();
	written();
	for_architectures();
	bundled();
	packed();
	for (int i = 1; i < argc; i++)
		compiled(argv[i]);
	broken(1);
	return 0;
}
