/* SPDX-License-Identifier: MIT */
/* Files of a user that store the results of self-tests. No locks: a file is replaced as a whole. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/quiet.h"
#include "driver/rocm/verdict_file.h"

#define PREFIX "verdict-"
#define LOCK_TRY_US 50000

/* A program that runs with another user's rights takes no directory from its environment. */
static const char *absolute(const char *variable)
{
	const char *value = secure_getenv(variable);

	return value && value[0] == '/' ? value : NULL;
}

/* Opens the directory at `path`. `make`: creates the directory if it does not exist, but not its
 * parent. */
static int open_directory(const char *path, bool make)
{
	if (make && mkdir(path, 0700) != 0 && errno != EEXIST)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_private(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Opens the directory of the files; -1 and errno: no directory can be trusted. */
static int directory(bool make)
{
	static const char *const below_home[] = {"/.local", "/.local/state"};
	const char *state = absolute("XDG_STATE_HOME"), *home = state ? NULL : absolute("HOME");
	char path[PATH_MAX];
	int fd, n;

	if (!state && !home) {
		errno = ENOENT;
		return -1;
	}
	for (int i = 0; make && home && i < 2; i++) {
		n = snprintf(path, sizeof(path), "%s%s", home, below_home[i]);
		if (n < (int)sizeof(path))
			(void)mkdir(path, 0700);
	}
	n = snprintf(path, sizeof(path), "%s%s/somashim", state ? state : home,
		     state ? "" : below_home[1]);
	if (n >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = open_directory(path, make);
	if (fd >= 0 && !is_private(fd)) {
		close(fd);
		errno = EPERM;
		return -1;
	}
	return fd;
}

bool ss_verdict_file_read(const char *name, const char *key, char result[SS_VERDICT_RESULT])
{
	char found[SS_VERDICT_TEXT + SS_VERDICT_RESULT];
	int dir = directory(false), fd;
	size_t size = strlen(key);
	struct stat st;
	ssize_t n = -1;

	if (dir < 0)
		return false;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	close(dir);
	if (fd < 0)
		return false;
	if (is_private(fd) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && size < SS_VERDICT_TEXT)
		n = read(fd, found, sizeof(found));
	close(fd);
	if (n <= (ssize_t)size || n - (ssize_t)size >= SS_VERDICT_RESULT ||
	    memcmp(found, key, size) != 0 ||
	    memchr(found + size, '\n', (size_t)n - size) != found + n - 1)
		return false;
	snprintf(result, SS_VERDICT_RESULT, "%.*s", (int)((size_t)n - size - 1), found + size);
	return true;
}

bool ss_verdict_file_possible(void)
{
	int dir = directory(true);
	bool is = dir >= 0 && faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) == 0;

	if (dir >= 0)
		close(dir);
	return is;
}

int ss_verdict_file_lock(void (*waiting)(void))
{
	int dir = directory(true), fd;

	if (dir < 0)
		return -1;
	fd = openat(dir, "selftest.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		    0600);
	close(dir);
	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK && errno != EINTR) {
			close(fd);
			return -1;
		}
		waiting();
		usleep(LOCK_TRY_US);
	}
	return fd;
}

int ss_verdict_file_write(const char *name, const char *text)
{
	size_t size = strlen(text);
	int dir = directory(true), fd, err = 0;
	char fresh[64];

	if (dir < 0)
		return errno;
	snprintf(fresh, sizeof(fresh), PREFIX "new-%d", (int)getpid());
	(void)unlinkat(dir, fresh, 0); /* left by a process that died */
	fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		err = errno;
	} else {
		ssize_t written = ss_quiet_write(fd, text, size);

		if (written != (ssize_t)size)
			err = written < 0 ? errno : ENOSPC;
		close(fd);
		if (!err && renameat(dir, fresh, dir, name) != 0)
			err = errno;
		if (err)
			(void)unlinkat(dir, fresh, 0);
	}
	close(dir);
	return err;
}

int ss_verdict_files_remove(void)
{
	int dir = directory(false), n = 0;
	struct dirent *e;
	DIR *d;

	if (dir < 0)
		return errno == ENOENT ? 0 : -1;
	d = fdopendir(dir);
	if (!d) {
		close(dir);
		return -1;
	}
	while (n >= 0 && (e = readdir(d)))
		if (!strncmp(e->d_name, PREFIX, sizeof(PREFIX) - 1))
			n = unlinkat(dir, e->d_name, 0) == 0 ? n + 1 : -1;
	closedir(d);
	return n;
}
