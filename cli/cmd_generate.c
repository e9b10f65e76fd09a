/* SPDX-License-Identifier: MIT */
/* `somashim generate KIND`: writes a log; the same seed writes the same log. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/generate.h"

uint64_t ss_gen_random(struct ss_gen *g, uint64_t below) {
	uint64_t x = g->random += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (x ^ x >> 31) % (below ? below : 1);
}

static double uniform(struct ss_gen *g) {
	return ((double)ss_gen_random(g, 1ull << 53) + 0.5) / (double)(1ull << 53);
}

double ss_gen_exponential(struct ss_gen *g, double mean) {
	return -mean * log(uniform(g));
}

uint64_t ss_gen_log_uniform(struct ss_gen *g, uint64_t from, uint64_t to) {
	return (uint64_t)((double)from * pow((double)to / (double)from, uniform(g)));
}

void ss_gen_pass(struct ss_gen *g, double us) {
	g->time_us += (uint64_t)us;
}

static void line(struct ss_gen *g, unsigned thread, uint64_t stream, const char *action,
		const struct ss_gen_block *b) {
	g->time_us += 1 + ss_gen_random(g, 4);
	uint64_t s = g->time_us / 1000000 % 86400;
	fprintf(g->out, "%u,%02u:%02u:%02u.%06u,%s,0x%llx,%llu,0x%llx\n", thread,
		(unsigned)(s / 3600), (unsigned)(s / 60 % 60), (unsigned)(s % 60),
		(unsigned)(g->time_us % 1000000), action, (unsigned long long)b->pointer,
		(unsigned long long)b->size, (unsigned long long)stream);
}

struct ss_gen_block ss_gen_alloc(struct ss_gen *g, unsigned thread, uint64_t stream,
		uint64_t size) {
	size = (uint64_t)((double)size * g->scale);
	struct ss_gen_block b = { g->next_pointer, size ? size : 1 };
	g->next_pointer += 512;
	line(g, thread, stream, "allocate", &b);
	return b;
}

void ss_gen_free(struct ss_gen *g, unsigned thread, uint64_t stream, struct ss_gen_block *b) {
	if (b->pointer) {
		line(g, thread, stream, "free", b);
		b->pointer = 0;
	}
}

static int usage(FILE *out) {
	fputs("usage: somashim generate [--seed N] [--rounds N] [--scale X] [-o FILE] KIND\n"
		"  --seed N    the same seed writes the same log\n"
		"  --rounds N  its length; 0 = as the kind has it\n"
		"  --scale X   multiplies the sizes\n"
		"  -o FILE     where it goes, instead of stdout\n"
		"kinds:\n", out);
	for (size_t i = 0; i < ss_gen_kind_count; i++) {
		fprintf(out, "  %-12s %s\n", ss_gen_kinds[i].name, ss_gen_kinds[i].help);
	}
	return out == stderr ? 2 : 0;
}

int ss_cmd_generate(int argc, char **argv) {
	struct ss_gen g = { .out = stdout, .random = 1, .next_pointer = 0x7f0000000000,
		.scale = 1 };
	const char *path = NULL, *kind = NULL, *v;

	for (int i = 1; i < argc; i++) {
		if ((v = ss_cli_value(argc, argv, &i, "--seed"))) {
			g.random = ss_cli_number("--seed", v, UINT64_MAX) * 1000003 + 1;
		} else if ((v = ss_cli_value(argc, argv, &i, "--rounds"))) {
			g.rounds = (unsigned)ss_cli_number("--rounds", v, 1 << 24);
		} else if ((v = ss_cli_value(argc, argv, &i, "--scale"))) {
			char *end;
			g.scale = strtod(v, &end);
			if (*end || end == v || !(g.scale > 0 && g.scale <= 1000)) {
				return ss_cli_error("--scale: '%s' is not in (0, 1000]", v);
			}
		} else if ((v = ss_cli_value(argc, argv, &i, "-o"))) {
			path = v;
		} else if (ss_cli_help(argv[i])) {
			return usage(stdout);
		} else if (argv[i][0] == '-') {
			return ss_cli_error("generate: unknown option %s", argv[i]);
		} else if (kind) {
			return ss_cli_error("generate: one kind, not '%s' too", argv[i]);
		} else {
			kind = argv[i];
		}
	}
	if (!kind) {
		return usage(stderr);
	}
	size_t k = 0;
	while (k < ss_gen_kind_count && strcmp(ss_gen_kinds[k].name, kind) != 0) {
		k++;
	}
	if (k == ss_gen_kind_count) {
		ss_cli_error("generate: there is no kind '%s'", kind);
		return usage(stderr);
	}
	if (path && !(g.out = fopen(path, "w"))) {
		return ss_cli_error("generate: %s: %s", path, strerror(errno));
	}
	g.rounds = g.rounds ? g.rounds : ss_gen_kinds[k].rounds;
	fputs("Thread,Time,Action,Pointer,Size,Stream\n", g.out);
	ss_gen_kinds[k].run(&g);
	bool ok = !ferror(g.out);
	ok = (path ? fclose(g.out) : fflush(g.out)) == 0 && ok;
	return ok ? 0 : ss_cli_error("generate: cannot write: %s", strerror(errno));
}
