/* SPDX-License-Identifier: MIT */
/* Creates temporary files and folders. A TMPDIR that is wrong is no reason to fail. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/mapped_file.h"
#include "cli/readers/temporary_file.h"

#define ROOM (1u << 16) /* bytes that a folder must have, or another place is taken */
#define YOUNG_S 60      /* younger files may not be locked yet */

static int make_file(char *path, size_t size)
{
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0)
		return -1;
	(void)flock(fd, LOCK_EX | LOCK_NB);
	if (size && !ss_file_reserve(fd, 0, size)) {
		int err = errno;
		unlink(path);
		close(fd);
		errno = err;
		return -1;
	}
	return fd;
}

static bool has_room(int folder)
{
	int fd = openat(folder, ".room", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool good = fd >= 0 && ss_file_reserve(fd, 0, ROOM);
	int err = errno;

	if (fd >= 0) {
		close(fd);
		unlinkat(folder, ".room", 0);
	}
	errno = err;
	return good;
}

static int make_folder(char *path, size_t unused)
{
	(void)unused;
	if (!mkdtemp(path))
		return -1;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		(void)flock(fd, LOCK_EX | LOCK_NB);
		if (has_room(fd))
			return fd;
	}
	int err = errno;
	if (fd >= 0)
		close(fd);
	rmdir(path);
	errno = err;
	return -1;
}

static bool is_left(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	       (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) && st.st_mtime + YOUNG_S < time(NULL) &&
	       flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* Removes the files and folders that a killed `somashim` has left in `dir`: nobody has them
 * locked. */
static void remove_left(const char *dir, const char *name)
{
	size_t length = strlen(name);
	char path[PATH_MAX];
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, name, length) != 0 || e->d_name[length] != '.' ||
		    strlen(e->d_name + length) != strlen(".XXXXXX") ||
		    snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= (int)sizeof(path))
			continue;
		int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (fd >= 0 && is_left(fd) && unlink(path) != 0)
			ss_temporary_folder_remove(path);
		if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
}

/* Calls make() for one place after the other, until it succeeds. Returns the last result of
 * make(). */
static int make_in_some_place(const char *name, size_t size, char path[PATH_MAX],
			      int (*make)(char *path, size_t size))
{
	const char *dirs[] = {getenv("TMPDIR"), "/tmp", "/dev/shm"};
	int made = -1;

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && made < 0; i++) {
		if (dirs[i] && *dirs[i]) {
			remove_left(dirs[i], name);
			snprintf(path, PATH_MAX, "%s/%s.XXXXXX", dirs[i], name);
			made = make(path, size);
		}
	}
	return made;
}

int ss_temporary_file(const char *name, size_t size, char path[PATH_MAX])
{
	return make_in_some_place(name, size, path, make_file);
}

bool ss_temporary_folder(const char *name, char path[PATH_MAX])
{
	/* The descriptor stays open, and with it the lock stays. */
	return make_in_some_place(name, 0, path, make_folder) >= 0;
}

char **ss_temporary_files(const char *folder)
{
	struct dirent **entry = NULL;
	int n = scandir(folder, &entry, NULL, alphasort), count = 0;
	char **paths = n >= 0 ? calloc((size_t)n + 1, sizeof(*paths)) : NULL;

	for (int i = 0; i < n; i++) {
		char *path = NULL;

		if (paths && entry[i]->d_name[0] != '.') {
			if (asprintf(&path, "%s/%s", folder, entry[i]->d_name) >= 0) {
				paths[count++] = path;
			} else {
				ss_temporary_files_free(paths);
				paths = NULL;
			}
		}
		free(entry[i]);
	}
	free(entry);
	return paths;
}

void ss_temporary_files_free(char **paths)
{
	for (char **path = paths; path && *path; path++)
		free(*path);
	free(paths);
}

void ss_temporary_folder_remove(const char *folder)
{
	char **paths = ss_temporary_files(folder);

	for (char **path = paths; path && *path; path++)
		unlink(*path);
	ss_temporary_files_free(paths);
	rmdir(folder);
}
