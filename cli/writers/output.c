/* SPDX-License-Identifier: MIT */
/* Opens and closes the file that a command writes. A mistake in its name must not cost a
 * recording. */
#include <errno.h>
#include <fcntl.h>
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

bool ss_output_open(struct ss_output *o, const char *path, const char *const *input, size_t count,
		    char *err, size_t err_size)
{
	struct stat st;

	*o = (struct ss_output){.file = stdout, .path = path};
	if (!path)
		return true;
	o->file = NULL;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	o->made = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || fstat(fd, &st) != 0)
		goto error;
	if (!o->made && is_one_of(&st, input, count)) {
		snprintf(err, err_size, "%s: it is what it reads", path);
		close(fd);
		return false;
	}
	if ((!S_ISREG(st.st_mode) || ftruncate(fd, 0) == 0) && (o->file = fdopen(fd, "w")))
		return true;

error:
	snprintf(err, err_size, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return false;
}

bool ss_output_close(struct ss_output *o, bool good, char *err, size_t err_size)
{
	if (!o->path) /* the end of the program looks whether all of it was written */
		return good;
	int error = ferror(o->file) ? errno : 0;
	if ((fclose(o->file) != 0 || error) && good) {
		snprintf(err, err_size, "%s: %s", o->path, strerror(error ? error : errno));
		good = false;
	}
	if (!good && o->made) /* half a file is of no use */
		unlink(o->path);
	return good;
}
