/* SPDX-License-Identifier: MIT */
/* Runs one program of the corpus, or lists all with what is expected of each. */
#include "corpus.h"

hipStream_t a, b, c;

static void list(const struct program *p)
{
	for (; p->name; p++)
		printf("%s\t%s\n", p->name, p->expect ? p->expect : "");
}

static int run(const struct program *p, const char *name)
{
	for (; p->name; p++) {
		if (strcmp(p->name, name))
			continue;
		OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
		OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
		OK(hipStreamCreateWithFlags(&c, hipStreamNonBlocking));
		p->run();
		OK(hipDeviceSynchronize());
		return 0;
	}
	return -1;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		list(wrong_programs);
		list(wrong_kernels);
		list(wrong_graphs);
		list(right_programs);
		list(right_kernels);
		list(right_graphs);
		return 0;
	}
	if (run(wrong_programs, argv[1]) && run(wrong_kernels, argv[1]) &&
	    run(wrong_graphs, argv[1]) && run(right_programs, argv[1]) &&
	    run(right_kernels, argv[1]) && run(right_graphs, argv[1]))
		return 3;
	return 0;
}
