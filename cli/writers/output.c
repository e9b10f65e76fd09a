/* SPDX-License-Identifier: MIT */
/* Opens and closes the file that a command writes. A mistake in its name must not cost a recording.
 * The file gets its name when it is whole: a command that is killed leaves what was there
 * before. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/writers/output.h"

static bool is_one_of(const struct stat *st, const char *const *path, size_t count)
{
	struct stat other;

	for (size_t i = 0; i < count; i++)
		if (stat(path[i], &other) == 0 && other.st_dev == st->st_dev &&
		    other.st_ino == st->st_ino)
			return true;
	return false;
}

/* The name under which `path` is written. False: too long. */
static bool part_name(const char *path, char part[PATH_MAX])
{
	int n = snprintf(part, PATH_MAX, "%s.%ld.part", path, (long)getpid());

	return n > 0 && n < PATH_MAX;
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
	char part[PATH_MAX];

	if ((before && !replaceable(path, before)) || !part_name(path, part))
		return -1;
	(void)unlink(part); /* of an earlier process with this pid */
	int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return -1;
	if ((before && fchmod(fd, before->st_mode & 07777) != 0) || !(o->part = strdup(part))) {
		close(fd);
		unlink(part);
		return -1;
	}
	return fd;
}

bool ss_output_open(struct ss_output *o, const char *path, const char *const *input, size_t count,
		    char *err, size_t err_size)
{
	struct stat st;

	*o = (struct ss_output){.file = stdout, .path = path};
	if (!path)
		return true;
	o->file = NULL;
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
	if (o->part)
		unlink(o->part);
	free(o->part);
	return false;
}

bool ss_output_close(struct ss_output *o, bool good, char *err, size_t err_size)
{
	if (!o->path) /* the end of the program looks whether all of it was written */
		return good;
	int error = ferror(o->file) ? errno : 0;
	if (fclose(o->file) != 0 && !error)
		error = errno;
	if (!error && good && o->part && rename(o->part, o->path) != 0)
		error = errno;
	if (error && good) {
		snprintf(err, err_size, "%s: %s", o->path, strerror(error));
		good = false;
	}
	if (!good && o->part)
		unlink(o->part);
	free(o->part);
	return good;
}
