/* SPDX-License-Identifier: MIT */
/*
 * The output of `somashim dump` for a running process: its identity, its statistics and its live
 * blocks, the largest first.
 *
 * Locks: none of its own.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/quiet.h"
#include "shim/process/dump.h"
#include "shim/process/service.h"
#include "shim/process/stats.h"
#include "core/statistics.h"

static void put_identity(FILE *out, const struct ss_live_identity *who)
{
	fprintf(out, "somashim: process %" PRIu32 " (%s) on %s", who->pid, who->command, who->host);
	if (who->rank >= 0)
		fprintf(out, ", rank %" PRId32, who->rank);
	if (who->ranks >= 0)
		fprintf(out, " of %" PRId32, who->ranks);
	if (who->job[0])
		fprintf(out, ", job %s", who->job);
	fputc('\n', out);
}

static int by_size(const void *a, const void *b)
{
	const struct ss_block_entry *x = a, *y = b;

	if (x->size != y->size)
		return x->size < y->size ? 1 : -1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static void put_block(FILE *out, const struct ss_block_entry *b)
{
	char pool[32];

	snprintf(pool, sizeof(pool), "pool %" PRIu64, b->pool);
	fprintf(out, "somashim: %#18" PRIx64 " %14" PRIu64 " %14" PRIu64 " %6d  %-12s %p\n",
		b->address, b->size, b->rounded, b->device,
		!b->default_pool ? pool :
		b->classic       ? "classic" :
				   "default",
		b->stream);
}

static void put_blocks(FILE *out)
{
	struct ss_block_entry *blocks = NULL;
	size_t count = ss_blocks_list(ss_core, &blocks);
	uint64_t bytes = 0;

	if (count == SIZE_MAX) {
		fputs("somashim: there is no host memory to list the live blocks\n", out);
		return;
	}
	qsort(blocks, count, sizeof(*blocks), by_size);
	for (size_t i = 0; i < count; i++)
		bytes += blocks[i].rounded;
	fprintf(out, "somashim: live blocks: %zu, %" PRIu64 " bytes in use\n", count, bytes);
	if (count)
		fputs("somashim:            address           size         in use device  pool     "
		      "    "
		      "stream\n",
		      out);
	for (size_t i = 0; i < count; i++)
		put_block(out, &blocks[i]);
	free(blocks);
}

int ss_dump_write(int fd, const struct ss_live_identity *who)
{
	FILE *out = fdopen(fd, "w");
	struct ss_quiet quiet;
	bool failed;
	int err;

	if (!out) {
		err = errno;
		close(fd);
		return err;
	}
	ss_quiet_begin(&quiet);
	errno = 0;
	put_identity(out, who);
	ss_shim_stats_table(ss_core, out);
	put_blocks(out);
	failed = fflush(out) || ferror(out);
	err = errno ? errno : EIO;
	if (fclose(out) && !failed) {
		failed = true;
		err = errno;
	}
	ss_quiet_end(&quiet);
	return failed ? err : 0;
}
