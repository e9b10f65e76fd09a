/* SPDX-License-Identifier: MIT */
/* What the shim says: to stderr, or to SOMASHIM_LOG. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/journal.h"
#include "core/sink.h"
#include "driver/rocm.h"
#include "shim/shim.h"

static FILE *_Atomic log_file;
static struct ss_sink sink;
static bool closed; /* stderr, when the program began */

__attribute__((constructor)) static void look(void)
{
	closed = fcntl(STDERR_FILENO, F_GETFD) < 0;
}

/* The log's device is full or broken, which it stays: from now on messages go to stderr. The
 * stream that calls this is locked, so the line is written past it. */
static void leave_log(int error)
{
	struct ss_sink now;
	char line[sizeof(ss_options.log) + 128];

	ss_sink_close(&sink);
	if (closed || !ss_sink_borrow(&now, STDERR_FILENO))
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
	/* stderr may be sent elsewhere at any time; a log stays what it was. */
	if (sink.fd >= 0) {
		n = ss_sink_write(&sink, text, size);
		if (n >= 0 || (errno != ENOSPC && errno != EDQUOT && errno != EFBIG && errno != EIO))
			return n < 0 ? (ssize_t)size : n;
		leave_log(errno);
	}
	if (!closed && ss_sink_borrow(&now, STDERR_FILENO))
		n = ss_sink_write(&now, text, size);
	return n < 0 ? (ssize_t)size : n; /* nobody listens: no reason to keep it */
}

/* A stream of our own: stderr has no buffer, and glibc up to 2.36 makes one of 8 KiB on the stack
 * then, which may be all that the thread has. Never closed. */
void ss_out_open(void)
{
	static char buffer[BUFSIZ];
	static const cookie_io_functions_t io = {.write = put};
	char path[sizeof(ss_options.log) + 32];
	bool named = ss_options.log[0] && ss_path_expand(ss_options.log, path, sizeof(path));
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
		ss_say("cannot open SOMASHIM_LOG %s: %s", path, strerror(err));
}

FILE *ss_out(void)
{
	FILE *f = atomic_load(&log_file);

	return f ? f : stderr;
}

void ss_say(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(ss_out(), "somashim: %s\n", line);
}

static void say_backing(FILE *f, int dev)
{
	enum ss_backing is = (enum ss_backing)ss_options.backing;
	const char *why = NULL, *how = "auto: ";

	if (is == SS_BACKING_AUTO) {
		is = ss_rocm_best(dev, &why);
	} else if (!ss_rocm_usable(dev, is, &why)) {
		how = is == SS_BACKING_VMM ? "not vmm: " : "not hsa: ";
		is = SS_BACKING_HIP;
	}
	fprintf(f, "  backing: %s%s%s%s%s\n", ss_backing_name(is), why ? " (" : "", why ? how : "",
		why ? why : "", why ? ")" : "");
}

/* In memory first, so that lines of other threads do not come between. */
void ss_banner(int devices)
{
	const struct ss_runtime *rt = ss_runtime();
	struct ss_driver driver = ss_rocm_driver();
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return;
	fprintf(f, "somashim %s\n", SOMASHIM_VERSION);
	fprintf(f, "  runtime: %s, version %d (%d.%d)\n", rt->path, rt->version, rt->major,
		rt->minor);
	if (ss_options.disable)
		fprintf(f, "  disabled: every call goes to the real runtime\n");
	else if (devices <= 0)
		fprintf(f, "  no device: every call goes to the real runtime\n");
	for (int i = 0; i < devices; i++) {
		struct ss_device_info info;

		if (driver.device_info(driver.ctx, i, &info) != SS_OK)
			continue;
		fprintf(f, "  device %d: %s%s%s, %.1f GiB%s\n", i, info.name,
			ss_rocm_arch(i) ? ", " : "", ss_rocm_arch(i) ? ss_rocm_arch(i) : "",
			(double)info.total_bytes / (1ull << 30),
			info.integrated ? ", integrated" : "");
		say_backing(f, i);
	}
	if (devices > 0)
		fprintf(f, "  fences: %s\n",
			ss_rocm_fence_kind() == SS_FENCE_SIGNAL ? "signal" : "event");
	ss_options_print_changed(&ss_options, f);
	fclose(f);
	fputs(text, ss_out());
	fflush(ss_out());
	free(text);
}
