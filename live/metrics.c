/* SPDX-License-Identifier: MIT */
/*
 * The figures of a process as Prometheus text. The text is composed without the heap, in a buffer
 * that is not on the stack, because the calling thread's stack may be small.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/base/quiet.h"
#include "live/metrics.h"

struct text {
	int fd;
	int error;       /* errno of the first write that failed */
	unsigned number; /* a label from 2 on */
	size_t length;
	char bytes[1 << 16];
};

static void flush(struct text *t)
{
	size_t done = 0;

	while (done < t->length && !t->error) {
		ssize_t n = ss_quiet_write(t->fd, t->bytes + done, t->length - done);

		if (n < 0 && errno != EINTR)
			t->error = errno;
		done += n > 0 ? (size_t)n : 0;
	}
	t->length = 0;
}

#define PIECE_MOST 512 /* bytes of the longest piece of text */

static __attribute__((format(printf, 2, 3))) void put(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	if (sizeof(t->bytes) - t->length < PIECE_MOST)
		flush(t);
	va_start(args, format);
	n = vsnprintf(t->bytes + t->length, PIECE_MOST, format, args);
	va_end(args);
	t->length += n < 0 ? 0 : n < PIECE_MOST ? (size_t)n : PIECE_MOST - 1;
}

/* Writes the text of a label: escapes characters that Prometheus does not allow, and replaces bytes
 * that may not be UTF-8. */
static void put_label(struct text *t, const char *name, const char *value)
{
	char text[2 * 64 + 1]; /* the longest value is the job's */
	size_t n = 0;

	if (!value[0])
		return;
	for (; *value && n + 2 < sizeof(text); value++) {
		if (*value == '\\' || *value == '"')
			text[n++] = '\\';
		text[n++] = *value < ' ' || *value > '~' ? '?' : *value;
	}
	text[n] = '\0';
	put(t, ",%s=\"%s\"", name, text);
}

/* The labels of every sample of the process. */
static void put_process(struct text *t, const char *metric, const struct ss_live_identity *who)
{
	put(t, "%s{pid=\"%" PRIu32 "\"", metric, who->pid);
	put_label(t, "comm", who->command);
	put_label(t, "host", who->host);
	if (t->number > 1)
		put(t, ",copy=\"%u\"", t->number);
	if (who->rank >= 0)
		put(t, ",rank=\"%" PRId32 "\"", who->rank);
	put_label(t, strcmp(who->launcher, "flux") == 0 ? "flux_job" : "slurm_job", who->job);
	put_label(t, "pod", who->pod);
}

static void put_device(struct text *t, const struct ss_live_figures *f, uint32_t ordinal)
{
	char number[16];

	for (uint32_t i = 0; i < f->device_count; i++)
		if (f->device[i].ordinal == ordinal && f->device[i].pci[0]) {
			put_label(t, "device", f->device[i].pci);
			return;
		}
	snprintf(number, sizeof(number), "%" PRIu32, ordinal);
	put_label(t, "device", number);
}

#define POOL(field) offsetof(struct ss_live_pool, field)
#define COUNT(field) offsetof(struct ss_live_counts, field)

static const struct metric {
	const char *name, *help;
	size_t offset;
} gauges[] =
	{
		{"somashim_used_bytes", "Device memory handed out and not freed.", POOL(used)},
		{"somashim_reserved_bytes", "Device memory that pools hold.", POOL(reserved)},
		{"somashim_free_in_flight_bytes",
		 "Device memory freed, and not yet known to have completed on the device.",
		 POOL(in_flight)},
},
  highs[] =
	  {
		  {"somashim_used_high_bytes", "Highest value of somashim_used_bytes.",
		   POOL(used_high)},
		  {"somashim_reserved_high_bytes", "Highest value of somashim_reserved_bytes.",
		   POOL(reserved_high)},
},
  counters[] = {
	  {"somashim_allocations_total", "Allocations that pools served.", COUNT(allocations)},
	  {"somashim_frees_total", "Frees that pools served.", COUNT(frees)},
	  {"somashim_out_of_memory_total", "Allocations that failed.", COUNT(out_of_memory)},
};

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static void put_head(struct text *t, const char *name, const char *help, const char *type)
{
	put(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static uint64_t value_at(const void *record, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)record + offset, sizeof(value));
	return value;
}

static void put_pool(struct text *t, const struct metric *m, const struct ss_live_identity *who,
		     const struct ss_live_figures *f, const struct ss_live_pool *p, uint64_t value)
{
	put_process(t, m->name, who);
	put_device(t, f, p->device);
	put_label(t, "pool", p->name);
	put(t, "} %" PRIu64 "\n", value);
}

static void put_pools(struct text *t, const struct metric *m, const struct ss_live_identity *who,
		      const struct ss_live_figures *f, bool zero)
{
	put_head(t, m->name, m->help, "gauge");
	for (uint32_t i = 0; i < f->pool_count; i++)
		put_pool(t, m, who, f, &f->pool[i], zero ? 0 : value_at(&f->pool[i], m->offset));
}

/* Destroyed pools count together as one more pool, so that sums never fall. */
static void put_counter(struct text *t, const struct metric *m, const struct ss_live_identity *who,
			const struct ss_live_figures *f)
{
	put_head(t, m->name, m->help, "counter");
	for (uint32_t i = 0; i < f->pool_count; i++)
		put_pool(t, m, who, f, &f->pool[i], value_at(&f->pool[i].counts, m->offset));
	for (uint32_t i = 0; i < f->device_count; i++) {
		const struct ss_live_pool ended = {.device = f->device[i].ordinal, .name = "ended"};

		if (f->device[i].ended_pools)
			put_pool(t, m, who, f, &ended, value_at(&f->device[i].ended, m->offset));
	}
}

static void put_limits(struct text *t, const struct ss_live_identity *who,
		       const struct ss_live_figures *f)
{
	put_head(t, "somashim_limit_bytes", "SOMASHIM_LIMIT of the process on the device.",
		 "gauge");
	for (uint32_t i = 0; i < f->device_count; i++) {
		if (!f->device[i].limit)
			continue;
		put_process(t, "somashim_limit_bytes", who);
		put_device(t, f, f->device[i].ordinal);
		put(t, "} %" PRIu64 "\n", f->device[i].limit);
	}
}

static void put_all(struct text *t, const struct ss_live_identity *who,
		    const struct ss_live_figures *f, bool ended)
{
	for (size_t i = 0; i < LENGTH(gauges); i++)
		put_pools(t, &gauges[i], who, f, ended);
	for (size_t i = 0; i < LENGTH(highs); i++)
		put_pools(t, &highs[i], who, f, false);
	put_limits(t, who, f);
	for (size_t i = 0; i < LENGTH(counters); i++)
		put_counter(t, &counters[i], who, f);
	put_head(t, "somashim_driver_calls_total", "Calls that somashim made to the runtime.",
		 "counter");
	put_process(t, "somashim_driver_calls_total", who);
	put(t, "} %" PRIu64 "\n", f->driver_calls);
	put_head(t, "somashim_running", "1 while the process runs, 0 in its last report.", "gauge");
	put_process(t, "somashim_running", who);
	put(t, "} %d\n", !ended);
}

int ss_metrics_write(const char *path, unsigned number, const struct ss_live_identity *who,
		     const struct ss_live_figures *figures, bool ended)
{
	static struct text text;
	char temporary[1024];
	int n = snprintf(temporary, sizeof(temporary), "%s.%" PRIu32, path, who->pid);

	if (n < 0 || n >= (int)sizeof(temporary)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	(void)unlink(temporary); /* of an earlier process with this pid */
	text.fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (text.fd < 0)
		return -1;
	/* Before other processes see the file by its name */
	(void)flock(text.fd, LOCK_EX | LOCK_NB);
	text.length = 0;
	text.error = 0;
	text.number = number;
	put_all(&text, who, figures, ended);
	flush(&text);
	if (!text.error && rename(temporary, path) == 0)
		return text.fd;
	if (!text.error)
		text.error = errno;
	(void)unlink(temporary);
	close(text.fd);
	errno = text.error;
	return -1;
}
