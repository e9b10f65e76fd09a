/* SPDX-License-Identifier: MIT */
/* The oracle's command line: one seed, a list of them, or many in several processes. */
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "oracle.h"

struct progress {
	volatile uint64_t seed; /* in progress */
	volatile uint64_t done;
	struct result result;
};

static int ops;

/* Under the address sanitizer. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int report(uint64_t seed, int class, bool shrinking)
{
	struct program p;
	struct result r;

	program_generate(&p, seed, ops);
	run_isolated(&p, &r);
	if (r.class == 0 && class == 0) {
		printf("seed %lu passed: nothing to cut down\n", (unsigned long)seed);
		return 0;
	}
	if (r.class == 0) {
		printf("seed %lu failed (%d), but not alone: host memory leaked, or one "
		       "program "
		       "left something to the next\n",
		       (unsigned long)seed, class);
		return 1;
	}
	if (shrinking) {
		shrink(&p, r.class);
		run_isolated(&p, &r);
	}
	program_print(&p, stdout);
	printf("FAILED seed %lu: %s\n", (unsigned long)seed, r.text);
	return 1;
}

static void work(struct progress *pr, uint64_t start, uint64_t count, int job, int jobs)
{
	static struct program p;

	for (uint64_t i = (uint64_t)job; i < count; i += (uint64_t)jobs) {
		pr->seed = start + i;
		alarm(20);
		program_generate(&p, start + i, ops);
		run_program(&p, false, &pr->result);
		if (pr->result.class)
			_exit(1);
		pr->done++;
	}
	if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check()) {
		snprintf(pr->result.text, sizeof(pr->result.text), "host memory leaked");
		pr->result.class = F_LEAK;
		_exit(1);
	}
	_exit(0);
}

static int run_many(uint64_t start, uint64_t count, int jobs, bool shrinking)
{
	struct progress *pr = mmap(NULL, (size_t)jobs * sizeof(*pr), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[64];
	uint64_t bad = 0, done = 0;
	int class = 0, left = jobs;
	double t0 = now();

	if (pr == MAP_FAILED)
		return 1;
	fflush(NULL);
	for (int i = 0; i < jobs; i++)
		if (pr[i].seed = start + (uint64_t)i, (pid[i] = fork()) == 0)
			work(&pr[i], start, count, i, jobs);
	while (left) {
		int status, i;
		pid_t who = wait(&status);
		for (i = 0; i < jobs && pid[i] != who; i++)
			;
		if (who < 0 || i == jobs)
			break;
		left--;
		pid[i] = 0;
		if (status == 0 || (class && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM))
			continue;
		if (!class || pr[i].seed < bad) {
			bad = pr[i].seed;
			class = pr[i].result.class ? pr[i].result.class : F_CRASH;
		}
		for (int k = 0; k < jobs; k++)
			if (pid[k])
				kill(pid[k], SIGTERM);
	}
	for (int i = 0; i < jobs; i++)
		done += pr[i].done;
	if (class)
		return report(bad, class, shrinking);
	printf("%lu programs from seed %lu in %.1f s (%.3f ms each)\n", (unsigned long)done,
	       (unsigned long)start, now() - t0,
	       (now() - t0) * 1e3 * jobs / (double)(done + !done));
	return done == count ? 0 : 1;
}

/* Each in a process of its own. */
static int run_seeds(char *const *seeds)
{
	static struct program p;
	struct result r;
	int failed = 0;

	for (; *seeds; seeds++) {
		program_generate(&p, strtoull(*seeds, NULL, 0), ops);
		run_isolated(&p, &r);
		if (r.class)
			printf("FAILED seed %s: %s\n", *seeds, r.text);
		failed |= r.class != 0;
	}
	return failed;
}

static int usage(void)
{
	fprintf(stderr, "usage: oracle [--sleep] --seed N [--ops M] [--verbose] [--shrink]\n"
			"       oracle [--sleep] SEED...\n"
			"       oracle [--sleep] [--count N] [--start S] [--jobs J] [--ops M] "
			"[--no-shrink]\n"
			"--sleep: the pools sleep and wake every few operations\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},  {"ops", required_argument, NULL, 'o'},
		{"count", required_argument, NULL, 'c'}, {"start", required_argument, NULL, 'b'},
		{"jobs", required_argument, NULL, 'j'},  {"verbose", no_argument, NULL, 'v'},
		{"shrink", no_argument, NULL, 'k'},      {"no-shrink", no_argument, NULL, 'K'},
		{"sleep", no_argument, NULL, 'z'},       {NULL, 0, NULL, 0},
	};
	uint64_t seed = 0, count = 10000, start = 1;
	bool one = false, verbose = false, do_shrink = false, no_shrink = false;
	long jobs = sysconf(_SC_NPROCESSORS_ONLN);
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (c == 's')
			seed = strtoull(optarg, NULL, 0), one = true;
		else if (c == 'o')
			ops = atoi(optarg);
		else if (c == 'c')
			count = strtoull(optarg, NULL, 0);
		else if (c == 'b')
			start = strtoull(optarg, NULL, 0);
		else if (c == 'j')
			jobs = atol(optarg);
		else if (c == 'v')
			verbose = true;
		else if (c == 'k')
			do_shrink = true;
		else if (c == 'K')
			no_shrink = true;
		else if (c == 'z')
			oracle_sleeps = true;
		else
			return usage();
	if (optind < argc)
		return run_seeds(argv + optind);
	jobs = jobs < 1 ? 1 : jobs > 64 ? 64 : jobs;
	if (one && !do_shrink) {
		static struct program p;
		struct result r;
		program_generate(&p, seed, ops);
		program_print(&p, stdout);
		fflush(NULL);
		run_program(&p, verbose, &r);
		printf("%s%s\n", r.class ? "FAILED: " : "passed", r.class ? r.text : "");
		return r.class ? 1 : 0;
	}
	if (one)
		return report(seed, 0, true);
	return run_many(start, count, (int)jobs, !no_shrink);
}
