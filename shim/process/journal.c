/* SPDX-License-Identifier: MIT */
/*
 * The journal: one RMM CSV line per allocation and free. cli/readers/rmm_csv.c reads it.
 *
 * Lines are written inside calls of the application, so writing uses no lock, no heap and no stream
 * of stdio, and leaves errno alone. A line that cannot be written completely (a full disk) is the
 * last one, and the failure is reported once.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "config/sink.h"
#include "shim/process/journal.h"
#include "trace/rmm.h"

struct ss_journal {
	struct ss_sink sink;
	void (*say)(const char *line);
	atomic_bool over; /* a line could not be written */
	char path[1024];
	unsigned number; /* in the name */
	long utc_offset; /* read once: localtime() takes a lock that a fork may leave held */
};

/* ---- writing ------------------------------------------------------------ */

static void end(struct ss_journal *j, int err)
{
	char said[160], why[96];

	if (atomic_exchange(&j->over, true))
		return;
	snprintf(said, sizeof(said), "the log of allocations ends here: %s",
		 strerror_r(err, why, sizeof(why)));
	j->say(said);
}

void ss_journal_line(struct ss_journal *j, bool allocated, const void *ptr, size_t size,
		     const void *stream)
{
	int saved = errno, len;
	struct timespec now;
	char line[192];
	unsigned day;
	long thread;
	ssize_t n;

	if (atomic_load_explicit(&j->over, memory_order_relaxed))
		return;
	thread = syscall(SYS_gettid);
	clock_gettime(CLOCK_REALTIME, &now);
	day = (unsigned)(((now.tv_sec + j->utc_offset) % 86400 + 86400) % 86400);
	/* Numbers and a short string: libc takes no lock for these, and no memory. */
	len = snprintf(line, sizeof(line),
		       "%ld,%02u:%02u:%02u.%06ld,%s,0x%" PRIxPTR ",%zu,0x%" PRIx64 "\n", thread,
		       day / 3600, day / 60 % 60, day % 60, now.tv_nsec / 1000,
		       allocated ? "allocate" : "free", (uintptr_t)ptr, size,
		       ss_rmm_stream((uintptr_t)stream, (uint64_t)thread));
	do {
		n = ss_sink_write(&j->sink, line, (size_t)len);
	} while (n < 0 && errno == EINTR);
	if (n != len)
		end(j, n < 0 ? errno : ENOSPC);
	errno = saved;
}

/* ---- the file -------------------------------------------------------------- */

struct ss_journal *ss_journal_open(const char *pattern, void (*say)(const char *line))
{
	static const char header[] = SS_RMM_HEADER "\n";
	struct ss_journal *j = calloc(1, sizeof(*j));
	time_t now = time(NULL);
	struct tm tm;
	int err;

	if (!j)
		return NULL;
	j->say = say;
	if (!ss_sink_new(&j->sink, pattern, j->path, sizeof(j->path), &j->number))
		goto error_alloc;
	if (localtime_r(&now, &tm))
		j->utc_offset = tm.tm_gmtoff;
	if (ss_sink_write(&j->sink, header, sizeof(header) - 1) < 0)
		goto error_fd;
	return j;

error_fd:
	err = errno;
	ss_sink_close(&j->sink);
	errno = err;
error_alloc:
	free(j);
	return NULL;
}

const char *ss_journal_other_name(const struct ss_journal *j)
{
	return j->number > 1 ? j->path : NULL;
}

void ss_journal_close(struct ss_journal *j)
{
	ss_sink_close(&j->sink);
	free(j);
}
