/* SPDX-License-Identifier: MIT */
/* Opens and closes the file that a command writes. A mistake in its name must not cost a recording.
 * The file gets its name when it is whole: a command that is killed leaves what was there
 * before, and a signal that can be caught leaves no half file either. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/writers/output.h"

#define PARTS 4 /* files that a command writes at the same time, at most */

/* Half files, with the names that they have until they are whole. The signal handler reads this. */
static char part_names[PARTS][PATH_MAX];
static pid_t owner; /* a child between fork and exec is not to remove them */

static void remove_parts(void)
{
	if (getpid() != owner)
		return;
	for (int i = 0; i < PARTS; i++)
		if (part_names[i][0])
			unlink(part_names[i]);
}

static void end_by(int number)
{
	remove_parts();
	raise(number); /* SA_RESETHAND: this ends the process as it would have ended before */
}

/* A signal that ends the command removes its half files first. Signals that our caller ignores stay
 * ignored. */
static void watch_signals(void)
{
	static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU, SIGXFSZ};
	struct sigaction old, act = {.sa_handler = end_by, .sa_flags = (int)SA_RESETHAND};

	if (owner)
		return;
	owner = getpid();
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(ends[i], &act, NULL);
	atexit(remove_parts);
}

bool ss_output_is_stdout(const char *path)
{
	return !path || strcmp(path, "-") == 0;
}

static bool is_one_of(const struct stat *st, const char *const *path, size_t count)
{
	struct stat other;

	for (size_t i = 0; i < count; i++)
		if (stat(path[i], &other) == 0 && other.st_dev == st->st_dev &&
		    other.st_ino == st->st_ino)
			return true;
	return false;
}

/* The name under which `path` is written. NULL: too long, or too many files. */
static char *part_name(const char *path)
{
	for (int i = 0; i < PARTS; i++) {
		char *part = part_names[i];
		if (part[0])
			continue;
		int n = snprintf(part, PATH_MAX, "%s.%ld.part", path, (long)getpid());
		if (n > 0 && n < PATH_MAX)
			return part;
		part[0] = '\0';
		break;
	}
	return NULL;
}

static void drop_part(struct ss_output *o)
{
	if (o->part) {
		unlink(o->part);
		o->part[0] = '\0';
	}
	o->part = NULL;
}

/* May another file take the place of this one? Not if it is a device or a pipe, has more names, or
 * was not ours to write to. */
static bool replaceable(const char *path, const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_nlink == 1 && st->st_uid == geteuid() &&
	       access(path, W_OK) == 0;
}

/* Opens a file beside `path` that is to take its name. -1: there can be none. */
static int open_part(struct ss_output *o, const char *path, const struct stat *before)
{
	watch_signals();
	if ((before && !replaceable(path, before)) || !(o->part = part_name(path)))
		return -1;
	(void)unlink(o->part); /* of an earlier process with this pid */
	int fd = open(o->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd >= 0 && (!before || fchmod(fd, before->st_mode & 07777) == 0))
		return fd;
	if (fd >= 0)
		close(fd);
	drop_part(o);
	return -1;
}

bool ss_output_open(struct ss_output *o, const char *path, const char *const *input, size_t count,
		    char *err, size_t err_size)
{
	struct stat st;

	*o = (struct ss_output){.file = stdout};
	if (ss_output_is_stdout(path))
		return true;
	*o = (struct ss_output){.path = path};
	bool there = lstat(path, &st) == 0;
	struct stat target;
	if (there && stat(path, &target) == 0 && is_one_of(&target, input, count)) {
		snprintf(err, err_size, "%s: it is what it reads", path);
		return false;
	}
	int fd = open_part(o, path, there ? &st : NULL);
	if (fd < 0)
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd >= 0 && (o->file = fdopen(fd, "w")))
		return true;
	snprintf(err, err_size, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	drop_part(o);
	return false;
}

bool ss_output_close(struct ss_output *o, bool good, char *err, size_t err_size)
{
	if (!o->path) /* the exit handler finds a failed write */
		return good;
	int error = ferror(o->file) ? errno : 0;
	if (fclose(o->file) != 0 && !error)
		error = errno;
	if (!error && good && o->part) {
		if (rename(o->part, o->path) == 0)
			o->part[0] = '\0';
		else
			error = errno;
	}
	if (error && good) {
		snprintf(err, err_size, "%s: %s", o->path, strerror(error));
		good = false;
	}
	if (!good)
		drop_part(o);
	return good;
}
