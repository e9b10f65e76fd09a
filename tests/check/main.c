/* SPDX-License-Identifier: MIT */
/* Runs one program of the corpus, or lists all with what is expected of each. */
#include <signal.h>

#include "corpus.h"

hipStream_t a, b, c;
static void *kept[16];
static unsigned kept_count;

void keep(void *p)
{
	if (kept_count == sizeof(kept) / sizeof(kept[0]))
		exit(3);
	kept[kept_count++] = p;
}

static void list(const struct program *p)
{
	for (; p->name; p++)
		printf("%s\t%s\n", p->name, p->expect ? p->expect : "");
}

/* A frame of its own, which tests of suppressions name. */
static __attribute__((noinline)) int run(const struct program *p, const char *name)
{
	for (; p->name; p++) {
		if (strcmp(p->name, name))
			continue;
		OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
		OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
		OK(hipStreamCreateWithFlags(&c, hipStreamNonBlocking));
		p->run();
		OK(hipDeviceSynchronize());
		while (kept_count)
			OK(hipFree(kept[--kept_count]));
		return 0;
	}
	return -1;
}

int main(int argc, char **argv)
{
	static const struct program *const all[] = {
		wrong_programs, wrong_kernels,  wrong_graphs,   wrong_memory,   wrong_guarded,
		wrong_frees,    wrong_commands, wrong_races,    wrong_marks,    wrong_unusual,
		wrong_released, wrong_told,     right_programs, right_kernels,  right_graphs,
		right_memory,   right_guarded,  right_lives,    right_commands, right_races,
		right_marks,    right_unusual,  right_released, right_told};

	if (argc == 4 && !strcmp(argv[1], "random")) {
		random_memory(strtoull(argv[2], NULL, 0), argv[3]);
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "many")) {
		OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
		many((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "killed")) {
		OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
		(void)block(a);
		(void)raise(SIGKILL);
	}
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (argc < 2)
			list(all[i]);
		else if (!run(all[i], argv[1]))
			return 0;
	return argc < 2 ? 0 : 3;
}
