/* SPDX-License-Identifier: MIT */
/*
 * The journal: one RMM CSV line per allocation and free. cli/readers/rmm_csv.c reads it.
 *
 * Lines are written inside calls of the application, so writing uses no lock, no heap and no stream
 * of stdio, and leaves errno alone. If a line cannot be written completely (a full disk), it is the
 * last, and this is reported once.
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

#include "core/base/journal.h"
#include "config/sink.h"

#define HEADER "Thread,Time,Action,Pointer,Size,Stream"

struct ss_journal {
	struct ss_sink sink;
	_Atomic(FILE *) log; /* the end of the journal is reported here; NULL: on stderr */
	atomic_bool over;    /* a line could not be written */
	char path[1024];
	unsigned number; /* in the name */
	long utc_offset; /* read once: localtime() takes a lock that a fork may leave held */
};

/* ---- writing ------------------------------------------------------------ */

static void end(struct ss_journal *j, int err)
{
	char said[160], why[96];
	FILE *log = atomic_load(&j->log);
	struct ss_sink to;
	int len;

	if (atomic_exchange(&j->over, true))
		return;
	len = snprintf(said, sizeof(said), "somashim: the log of allocations ends here: %s\n",
		       strerror_r(err, why, sizeof(why)));
	if (log)
		fputs(said, log);
	else if (ss_sink_borrow(&to, STDERR_FILENO) && ss_sink_write(&to, said, (size_t)len) < 0)
		return; /* there is no other place to report it */
}

static void put_line(struct ss_journal *j, const char *action, const void *ptr, size_t size,
		     const void *stream)
{
	int saved = errno, len;
	struct timespec now;
	char line[192];
	unsigned day;
	long thread;
	ssize_t n;

	if (!j || atomic_load_explicit(&j->over, memory_order_relaxed))
		return;
	thread = syscall(SYS_gettid);
	clock_gettime(CLOCK_REALTIME, &now);
	day = (unsigned)(((now.tv_sec + j->utc_offset) % 86400 + 86400) % 86400);
	/* Numbers and a short string: libc takes no lock for these, and no memory. */
	len = snprintf(line, sizeof(line),
		       "%ld,%02u:%02u:%02u.%06ld,%s,0x%" PRIxPTR ",%zu,0x%" PRIx64 "\n", thread,
		       day / 3600, day / 60 % 60, day % 60, now.tv_nsec / 1000, action,
		       (uintptr_t)ptr, size,
		       ss_journal_stream((uintptr_t)stream, (uint64_t)thread));
	do {
		n = ss_sink_write(&j->sink, line, (size_t)len);
	} while (n < 0 && errno == EINTR);
	if (n != len)
		end(j, n < 0 ? errno : ENOSPC);
	errno = saved;
}

struct ss_journal *ss_journal_open(const char *pattern)
{
	static const char header[] = HEADER "\n";
	struct ss_journal *j = calloc(1, sizeof(*j));
	time_t now = time(NULL);
	struct tm tm;
	int err;

	if (!j)
		return NULL;
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
	return j && j->number > 1 ? j->path : NULL;
}

void ss_journal_set_log(struct ss_journal *j, FILE *log)
{
	if (j)
		atomic_store(&j->log, log);
}

void ss_journal_close(struct ss_journal *j)
{
	if (j) {
		ss_sink_close(&j->sink);
		free(j);
	}
}

void ss_journal_alloc(struct ss_journal *j, const void *ptr, size_t size, const void *stream)
{
	put_line(j, "allocate", ptr, size, stream);
}

void ss_journal_free(struct ss_journal *j, const void *ptr, size_t size, const void *stream)
{
	put_line(j, "free", ptr, size, stream);
}
