/* SPDX-License-Identifier: MIT */
/* Host memory on the fake device: bytes per live block with a million of them
 * (what the core counts, and what the process grew by), and what ten million pairs
 * add to a process. */
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/bench.h"
#include "core/core.h"
#include "core/statistics.h"
#include "driver/fake/fake.h"

#define BLOCKS 1000000

static long resident(void)
{
	long size, rss = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%ld %ld", &size, &rss) != 2)
		die("no /proc/self/statm");
	fclose(f);
	return rss * sysconf(_SC_PAGESIZE);
}

int main(void)
{
	struct ss_fake *fake = ss_fake_create(&(struct ss_fake_config){.idle = true});
	struct ss_driver driver = ss_fake_driver(fake);
	void **p = calloc(BLOCKS, sizeof(*p));
	struct ss_options options;
	struct ss_timeline *tl;
	struct ss_core *core;
	struct ss_pool *pool;
	uint64_t counted;
	long rss;

	ss_options_read(&options, (char *[]){NULL}, NULL);
	core = ss_core_create(&driver, &options);
	if (!p || !core)
		die("out of memory");
	for (int i = 0; i < BLOCKS; i++)
		p[i] = p;
	pool = ss_pool_default(core, 0);
	tl = ss_timeline_add(core, 0, &driver, SS_TL_NONBLOCKING, true);
	counted = ss_host_bytes(core);
	rss = resident();
	for (int i = 0; i < BLOCKS; i++)
		if (ss_alloc_async(core, pool, tl, 512, &p[i]) != SS_OK)
			die("allocation %d failed", i);
	printf("counted %.1f\nresident %.1f\n", (double)(ss_host_bytes(core) - counted) / BLOCKS,
	       (double)(resident() - rss) / BLOCKS);
	for (int i = 0; i < BLOCKS; i++)
		ss_free_async(core, p[i], tl);
	for (int i = -BLOCKS; i < 10 * BLOCKS; i++) {
		if (i == 0)
			rss = resident();
		if (ss_alloc_async(core, pool, tl, (size_t)(i & 255) * 512 + 512, p) != SS_OK)
			die("allocation failed");
		ss_free_async(core, *p, tl);
	}
	printf("growth %ld\n", resident() - rss);
	return 0;
}
