/* SPDX-License-Identifier: MIT */
/*
 * Messages to the user, on a stdio stream of our own over stderr or the file of SOMASHIM_LOG.
 *
 * Locks: that of the stdio stream.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config/sink.h"
#include "shim/process/log.h"
#include "shim/process/service.h"
#include "trace/file_name.h"

static FILE *_Atomic log_file;
static struct ss_sink sink;
/* Stderr was closed when the program began, so a later descriptor of that number is no stderr */
static bool stderr_closed;

/* Asks the kernel: another preloaded library may wrap fcntl, and its constructor may run later. */
__attribute__((constructor)) static void look_at_stderr(void)
{
	stderr_closed = syscall(SYS_fcntl, STDERR_FILENO, F_GETFD) < 0;
}

/* The log's device is full or broken, and stays so: from now on messages go to stderr. The stream
 * that calls this function is locked, so the line is written past the stream. */
static void leave_log(int error)
{
	struct ss_sink now;
	char line[sizeof(ss_options.log) + 128];

	ss_sink_close(&sink);
	if (stderr_closed || !ss_sink_borrow(&now, STDERR_FILENO))
		return;
	snprintf(line, sizeof(line), "somashim: SOMASHIM_LOG %s: %s: messages go to stderr\n",
		 ss_options.log, strerror(error));
	(void)ss_sink_write(&now, line, strlen(line));
}

static ssize_t put(void *cookie, const char *text, size_t size)
{
	struct ss_sink now;
	ssize_t n = -1;

	(void)cookie;
	/* The program may redirect stderr at any time; a log file stays the same. */
	if (sink.fd >= 0) {
		n = ss_sink_write(&sink, text, size);
		if (n >= 0 ||
		    (errno != ENOSPC && errno != EDQUOT && errno != EFBIG && errno != EIO))
			return n < 0 ? (ssize_t)size : n;
		leave_log(errno);
	}
	if (!stderr_closed && ss_sink_borrow(&now, STDERR_FILENO))
		n = ss_sink_write(&now, text, size);
	return n < 0 ? (ssize_t)size : n; /* drop the text: nobody can read it later either */
}

void ss_shim_log_write(const char *text, size_t size)
{
	(void)put(NULL, text, size);
}

/* The stream has a static buffer. For the unbuffered stderr, glibc up to 2.36 takes 8 KiB of
 * stack per call, which may be all that the calling thread has. */
void ss_shim_log_open(void)
{
	static char buffer[BUFSIZ];
	static const cookie_io_functions_t io = {.write = put};
	char path[sizeof(ss_options.log) + 32];
	bool named = ss_options.log[0] && ss_file_name(ss_options.log, 1, path, sizeof(path));
	int err = 0;
	FILE *f;

	if (atomic_load(&log_file))
		return;
	sink.fd = -1;
	if (named && !ss_sink_open(&sink, path))
		err = errno;
	f = fopencookie(NULL, "w", io);
	if (!f)
		return;
	setvbuf(f, buffer, _IOLBF, sizeof(buffer));
	atomic_store(&log_file, f);
	if (err)
		ss_shim_log("cannot open SOMASHIM_LOG %s: %s", path, strerror(err));
}

FILE *ss_shim_log_file(void)
{
	FILE *f = atomic_load(&log_file);

	return f ? f : stderr;
}

void ss_shim_log(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(ss_shim_log_file(), "somashim: %s\n", line);
}
