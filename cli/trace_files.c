/* SPDX-License-Identifier: MIT */
/* Finds the trace files that the arguments of a command name. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/readers/events.h"
#include "cli/readers/input.h"
#include "cli/trace_files.h"
#include "cli/snapshot/snapshot_trace.h"
#include "core/base/regular_file.h"
#include "trace/format.h"

static bool add(struct ss_trace_files *f, const char *path)
{
	char **more = realloc(f->path, (f->count + 1) * sizeof(*more));

	if (!more)
		return false;
	f->path = more;
	f->path[f->count] = strdup(path);
	return f->path[f->count++] != NULL;
}

static bool read_header(const char *path, struct ss_trace_header *h)
{
	int fd = ss_regular_open(path);
	ssize_t n = fd >= 0 ? read(fd, h, sizeof(*h)) : 0;

	if (fd >= 0)
		close(fd);
	return n >= (ssize_t)sizeof(h->magic) &&
	       memcmp(h->magic, SS_TRACE_MAGIC, sizeof(h->magic)) == 0;
}

bool ss_is_trace(const char *path)
{
	struct ss_trace_header h;

	return read_header(path, &h);
}

uint64_t ss_trace_start(const char *path)
{
	struct ss_trace_header h = {0};

	return read_header(path, &h) ? h.realtime_ns : 0;
}

/* A regular file that `somashim replay` reads: a log of allocations, or a memory snapshot. */
static bool is_log(const char *path)
{
	struct ss_events ev;
	struct stat st;
	char err[256];
	bool is_log = stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
		      ss_events_read(&ev, path, -1, err, sizeof(err));

	if (is_log)
		ss_events_finish(&ev);
	return is_log;
}

const char *ss_no_trace_hint(const char *path)
{
	static char hint[128];
	struct ss_trace_header h = {0};

	if (ss_is_snapshot(path, true)) /* its problem was reported already */
		return "";
	if (is_log(path))
		return ": a log of allocations, for `somashim replay'";
	(void)read_header(path, &h);
	if (ss_input_is_packed(&h, sizeof(h)))
		return ": it is packed; unpack it first";
	const char *other = ss_input_other(&h, sizeof(h));
	snprintf(hint, sizeof(hint), ": %s", other ? other : "");
	return other ? hint : "";
}

static int visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

bool ss_trace_files_add(struct ss_trace_files *f, const char *path, char *err, size_t err_size)
{
	struct dirent **entry = NULL;
	size_t before = f->count;
	struct stat st;
	bool ok = true;

	if (stat(path, &st) != 0) {
		snprintf(err, err_size, "%s: %s", path, strerror(errno));
		return false;
	}
	if (!S_ISDIR(st.st_mode)) {
		snprintf(err, err_size, "out of memory");
		return add(f, path);
	}
	int n = scandir(path, &entry, visible, versionsort);
	if (n < 0) {
		snprintf(err, err_size, "%s: %s", path, strerror(errno));
		return false;
	}
	for (int i = 0; i < n; i++) {
		char file[PATH_MAX];
		int length = snprintf(file, sizeof(file), "%s/%s", path, entry[i]->d_name);
		if (length > 0 && (size_t)length < sizeof(file) &&
		    (ss_is_trace(file) || ss_is_snapshot(file, false)))
			ok &= add(f, file);
		free(entry[i]);
	}
	free(entry);
	if (!ok || f->count == before) {
		snprintf(err, err_size, "%s: %s", path,
			 ok ? "no recording in this directory" : "out of memory");
		return false;
	}
	return true;
}

void ss_trace_files_finish(struct ss_trace_files *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->path[i]);
	free(f->path);
	*f = (struct ss_trace_files){0};
}
