/* SPDX-License-Identifier: MIT */
/* `somashim top --log FILE`: appends samples to a CSV file, one row for each pool. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/top.h"
#include "cli/writers/output.h"

static const char header[] =
	"time,pid,rank,command,device,pool,used,reserved,in_flight,used_high,reserved_high,"
	"allocations,frees,out_of_memory,age\n";

/* Commas and quotes of a name become '_', so a field needs no quotes. */
static void put_name(FILE *out, const char *name)
{
	for (; *name; name++)
		fputc(strchr(",\"\r\n", *name) ? '_' : *name, out);
	fputc(',', out);
}

static void put_pool(FILE *out, const char *time, const struct ss_top_process *p,
		     const struct ss_live_pool *pool)
{
	const struct ss_live_device *d = ss_top_device(&p->page.figures, pool->device);
	char device[24];

	snprintf(device, sizeof(device), "device %u", pool->device);
	fprintf(out, "%s,%" PRIu32 ",", time, p->name.pid);
	if (p->page.who.rank >= 0)
		fprintf(out, "%d", p->page.who.rank);
	fputc(',', out);
	put_name(out, p->page.who.command);
	put_name(out, d && d->pci[0] ? d->pci : device);
	put_name(out, pool->name);
	fprintf(out,
		"%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
		",%" PRIu64 ",%.3f\n",
		pool->used, pool->reserved, pool->in_flight, pool->used_high, pool->reserved_high,
		pool->counts.allocations, pool->counts.frees, pool->counts.out_of_memory, p->age);
}

static void put_sample(FILE *out, const struct ss_top_sample *s)
{
	struct timespec now;
	struct tm tm;
	char time[64], second[32];

	clock_gettime(CLOCK_REALTIME, &now);
	strftime(second, sizeof(second), "%FT%T", gmtime_r(&now.tv_sec, &tm));
	snprintf(time, sizeof(time), "%s.%03ldZ", second, now.tv_nsec / 1000000);
	for (size_t i = 0; i < s->count; i++) {
		const struct ss_top_process *p = s->process[i];
		for (uint32_t k = 0; p->result == SS_LIVE_OK && k < p->page.figures.pool_count; k++)
			put_pool(out, time, p, &p->page.figures.pool[k]);
	}
}

/* The file, with its header if it is new. NULL with errno set. */
static FILE *open_log(const char *path)
{
	struct stat st;

	if (ss_output_is_stdout(path))
		return fputs(header, stdout) < 0 ? NULL : stdout;
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
	FILE *out = fd >= 0 ? fdopen(fd, "a") : NULL;
	if (!out) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	if (fstat(fd, &st) == 0 && st.st_size == 0)
		fputs(header, out);
	return out;
}

static bool any_runs(const struct ss_top_sample *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->process[i]->result == SS_LIVE_OK)
			return true;
	return false;
}

int ss_top_log(const char *directory, const struct ss_top_filter *filter, unsigned delay_ms,
	       unsigned wait_ms, bool once, const char *path)
{
	const struct timespec delay = {.tv_sec = delay_ms / 1000,
				       .tv_nsec = delay_ms % 1000 * 1000000l};
	FILE *out = open_log(path);
	bool goes_on = true;
	int status = 0;

	if (!out)
		return ss_cli_error("top: %s: %s", path, strerror(errno));
	for (unsigned rows = 0; goes_on && !status; rows++) {
		struct ss_top_sample sample;
		if (rows)
			nanosleep(&delay, NULL);
		if (!ss_top_take(directory, filter, wait_ms, NULL, &sample)) {
			status = ss_cli_error("top: %s: %s", directory, strerror(errno));
			break;
		}
		put_sample(out, &sample);
		goes_on = !once && (!filter->count || any_runs(&sample));
		ss_top_drop(&sample);
		if (fflush(out) != 0)
			status = ss_cli_error("top: %s: %s", path, strerror(errno));
	}
	if (out != stdout && fclose(out) != 0 && !status)
		status = ss_cli_error("top: %s: %s", path, strerror(errno));
	return status;
}
