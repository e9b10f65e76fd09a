/* SPDX-License-Identifier: MIT */
/* Names of files that processes write (file_name.h). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/file_name.h"
#include "trace/process_job.h"

#define FD_LEAST 512      /* lowest descriptor to use, if the limit allows it */
#define NAMES_MOST 10000u /* names that are tried */

int ss_file_move_up(int fd)
{
	struct rlimit limit;
	int least = FD_LEAST;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= FD_LEAST)
		least = (int)limit.rlim_cur - 1;
	int high = fcntl(fd, F_DUPFD_CLOEXEC, least);
	if (high < 0 && fd <= STDERR_FILENO)
		high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

/* ---- names ---------------------------------------------------------------- */

struct text {
	char *out;
	size_t length, size;
	bool full;
};

static void put(struct text *t, const char *from, size_t n)
{
	if (t->full || n >= t->size - t->length) {
		t->full = true;
		return;
	}
	memcpy(t->out + t->length, from, n);
	t->length += n;
	t->out[t->length] = '\0';
}

static void put_text(struct text *t, const char *from)
{
	put(t, from, strlen(from));
}

/* Number of characters of the directive at `s`; 0: there is none. */
static size_t directive(const char *s)
{
	const char *end;

	if (s[0] != '%')
		return 0;
	if (s[1] == 'q') {
		end = s[2] == '{' ? strchr(s, '}') : NULL;
		return end && end > s + 3 ? (size_t)(end - s) + 1 : 0;
	}
	return s[1] && strchr("phr%", s[1]) ? 2 : 0;
}

bool ss_file_name_append(char *pattern, size_t size, const char *text)
{
	size_t old = strlen(pattern), length = old;

	for (; *text; text++) {
		if (length + (*text == '%' ? 2 : 1) >= size) {
			pattern[old] = '\0';
			return false;
		}
		pattern[length++] = *text;
		if (*text == '%')
			pattern[length++] = '%';
	}
	pattern[length] = '\0';
	return true;
}

static void put_variable(struct text *t, const char *name, size_t length)
{
	char copy[128];

	if (length < sizeof(copy)) {
		memcpy(copy, name, length);
		copy[length] = '\0';
		const char *value = secure_getenv(copy);
		put_text(t, value ? value : "");
	}
}

static void put_value(struct text *t, const char *s, size_t length)
{
	struct ss_process_job job;
	char text[256] = "";

	switch (s[1]) {
	case 'p': snprintf(text, sizeof(text), "%d", (int)getpid()); break;
	case 'h':
		if (gethostname(text, sizeof(text) - 1) != 0)
			strcpy(text, "host");
		break;
	case 'r':
		snprintf(text, sizeof(text), "%d",
			 ss_process_job(&job) ? ss_process_number(job.rank) : 0);
		break;
	case 'q': put_variable(t, s + 3, length - 4); return;
	default: strcpy(text, "%"); break;
	}
	put_text(t, text);
}

/* The start of the extension, or the end. A part that depends on the process is no extension. */
static const char *extension(const char *pattern)
{
	const char *slash = strrchr(pattern, '/'), *name = slash ? slash + 1 : pattern;
	const char *dot = strrchr(name, '.');

	return dot && dot > name && !strchr(dot, '%') ? dot : pattern + strlen(pattern);
}

bool ss_file_name(const char *pattern, unsigned number, char *out, size_t size)
{
	struct text t = {.out = out, .size = size};
	const char *end = extension(pattern);
	char text[16];

	put(&t, "", 0);
	for (const char *s = pattern;;) {
		if (s == end && number > 1) {
			snprintf(text, sizeof(text), ".%u", number);
			put_text(&t, text);
		}
		if (!*s)
			break;
		size_t length = directive(s);
		if (length) {
			put_value(&t, s, length);
			s += length;
		} else {
			put(&t, s++, 1);
		}
	}
	errno = t.full ? ENAMETOOLONG : errno;
	return !t.full;
}

bool ss_file_glob(const char *pattern, char *out, size_t size)
{
	struct text t = {.out = out, .size = size};
	const char *end = extension(pattern);

	put(&t, "", 0);
	for (const char *s = pattern;; s++) {
		size_t length = directive(s);
		if (s == end)
			put_text(&t, "*");
		if (!*s)
			break;
		if (length) {
			put_text(&t, s[1] == '%' ? "%" : "*");
			s += length - 1;
			continue;
		}
		if (strchr("*?[]\\", *s))
			put_text(&t, "\\");
		put(&t, s, 1);
	}
	return !t.full;
}

/* ---- files ---------------------------------------------------------------- */

/* Descriptors of the process by another name, and devices. */
static bool is_special(const char *path)
{
	return (strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0) ||
	       strncmp(path, "/proc/", 6) == 0;
}

static bool is_at(const char *path, const struct stat *st)
{
	struct stat now;

	return stat(path, &now) == 0 && now.st_dev == st->st_dev && now.st_ino == st->st_ino;
}

/* -1 with errno EEXIST: the name is taken. `keep`: contents that a process left make it so. */
static int claim(const char *path, int flags, bool keep)
{
	struct stat st;
	int fd = open(path, flags | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0644);
	bool made = fd >= 0;

	if (!made && errno == EEXIST) {
		/* open() of a FIFO would otherwise wait for a reader. */
		fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		/* The file is another user's, or a link to nothing, or has been removed. */
		if (fd < 0 && (errno == EACCES || errno == ENOENT))
			errno = EEXIST;
	}
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) != 0)
		goto error;
	if (!S_ISREG(st.st_mode) || is_special(path))
		return fd;
	/* Some filesystems have no locks. On these an existing file may belong to any process. */
	bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
	if ((!locked && (errno == EWOULDBLOCK || (!made && keep))) || fstat(fd, &st) != 0 ||
	    (keep && st.st_size != 0) || !is_at(path, &st)) {
		errno = EEXIST;
		goto error;
	}
	return fd;

error:;
	int err = errno;
	close(fd);
	errno = err;
	return -1;
}

static int first_free(const char *pattern, int flags, bool keep, char *path, size_t size,
		      unsigned *number)
{
	for (*number = 1; *number <= NAMES_MOST; ++*number) {
		if (!ss_file_name(pattern, *number, path, size))
			return -1;
		int fd = claim(path, flags, keep);
		if (fd >= 0 || errno != EEXIST)
			return fd;
	}
	errno = EEXIST;
	return -1;
}

int ss_file_new(const char *pattern, int flags, char *path, size_t size, unsigned *number)
{
	return first_free(pattern, flags, true, path, size, number);
}

int ss_file_hold(const char *pattern, char *path, size_t size, unsigned *number)
{
	int fd = first_free(pattern, O_WRONLY, false, path, size, number);
	struct stat st;

	if (fd < 0)
		return -1;
	/* A rename would put a file in the place of /dev/null. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && !is_special(path))
		return fd;
	close(fd);
	errno = ENODEV;
	return -1;
}

/* Makes a file without a name, or if that is impossible, a file that is removed at once. `folder`
 * ends in a slash. */
static bool can_make(const char *folder)
{
	char path[PATH_MAX + 32];
	int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
		snprintf(path, sizeof(path), "%s.somashim-%d", folder, (int)getpid());
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			unlink(path);
	}
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

bool ss_file_possible(const char *pattern)
{
	char path[PATH_MAX], *slash;
	struct stat st;

	if (!ss_file_name(pattern, 1, path, sizeof(path)))
		return false;
	if (stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode)) {
			errno = EISDIR;
			return false;
		}
		if (!S_ISREG(st.st_mode)) {
			errno = ENODEV;
			return false;
		}
	} else if (errno != ENOENT) {
		return false;
	}
	slash = strrchr(path, '/');
	if (!slash)
		return can_make("./");
	if (!slash[1]) { /* not a folder */
		errno = EISDIR;
		return false;
	}
	slash[1] = '\0';
	if (can_make(path))
		return true;
	slash = strrchr(pattern, '/');
	return errno == ENOENT && slash && memchr(pattern, '%', (size_t)(slash - pattern));
}
