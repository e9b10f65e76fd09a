/* SPDX-License-Identifier: MIT */
/* Opens a file, through the tool that unpacks it if it is compressed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/readers/input.h"
#include "cli/readers/temporary_file.h"

#define MAGIC 16 /* bytes that tell the format */
#define LAYERS 3 /* packed files in each other that are opened, at most */

/* The first bytes of packed files, and the tools that unpack them from their stdin. For gzip and xz
 * the first byte is enough: no CSV and no pickle begins with it, and the tool refuses a file of
 * another format. The first byte of zstd is a bracket, with which a pickle of protocol 0 begins
 * too. torch.save() writes a zip; unzip needs a name, and a file that it can search. */
static const struct tool {
	const char *magic;
	size_t length;
	const char *name; /* for messages */
	const char *argv[5];
} tools[] = {
	{"\x1f", 1, "gzip -dc", {"gzip", "-dc"}},
	{"\xfd", 1, "xz -dc", {"xz", "-dc"}},
	{"\x28\xb5\x2f\xfd", 4, "zstd -dc", {"zstd", "-dc"}},
	{"PK\x03\x04", 4, "unzip -p FILE '*data.pkl'", {"unzip", "-p", "/dev/stdin", "*data.pkl"}},
};

/* Files that people try, and that are no log. */
static const struct {
	const char *magic;
	size_t length;
	const char *what;
} others[] = {
	{"SQLite format 3", 15, "an SQLite database, as rocprofv3 and others write it"},
	{"\x7f"
	 "ELF",
	 4, "a program or a library"},
	{"PK\x05\x06", 4, "an empty zip archive"},
};

static const struct tool *tool_for(const void *begin, size_t n)
{
	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
		if (n >= tools[i].length && memcmp(begin, tools[i].magic, tools[i].length) == 0)
			return &tools[i];
	return NULL;
}

bool ss_input_is_packed(const void *begin, size_t n)
{
	return tool_for(begin, n) != NULL;
}

const char *ss_input_other(const void *begin, size_t n)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (n >= others[i].length && memcmp(begin, others[i].magic, others[i].length) == 0)
			return others[i].what;
	return NULL;
}

/* Runs the tool on the open file, without a shell and without its path, so that no path can
 * become a command or an option. Takes `fd`. Returns the end of a pipe with the contents, or -1. */
static int unpack(struct ss_input *in, const struct tool *tool, int fd)
{
	int ends[2] = {-1, -1};

	in->tool = tool->name;
	in->pid = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
	if (in->pid == 0) {
		dup2(fd, STDIN_FILENO);
		dup2(ends[1], STDOUT_FILENO);
		execvp(tool->argv[0], (char *const *)(uintptr_t)tool->argv);
		fprintf(stderr, "somashim: %s: %s\n", tool->argv[0], strerror(errno));
		_exit(127);
	}
	int error = errno;
	if (in->pid < 0 && ends[0] >= 0)
		close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
	close(fd);
	errno = error;
	return in->pid < 0 ? -1 : ends[0];
}

/* Reads up to `most` bytes and returns how many it got. If it got none, errno says why; it is
 * 0 at the end of the file. */
static size_t read_up_to(int fd, unsigned char *to, size_t most)
{
	size_t got = 0;
	ssize_t n;

	do {
		n = read(fd, to + got, most - got);
		got += n > 0 ? (size_t)n : 0;
	} while (got < most && (n > 0 || (n < 0 && errno == EINTR)));
	errno = n < 0 ? errno : 0;
	return got;
}

static bool write_all(int fd, const unsigned char *from, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, from, size);
		if (n < 0 && errno != EINTR)
			return false;
		from += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* Copies a pipe into a temporary file, because `magic` was read from the pipe and the tool
 * needs it. Returns the file, at its start, or -1. */
static int spool(int fd, const unsigned char *magic, size_t n)
{
	unsigned char data[16384];
	char path[PATH_MAX];

	int file = ss_temporary_file("somashim-log", 0, path);
	if (file < 0)
		return -1;
	unlink(path);
	bool ok = write_all(file, magic, n);
	while (ok && (n = read_up_to(fd, data, sizeof(data))) > 0)
		ok = write_all(file, data, n);
	if (!ok || errno || lseek(file, 0, SEEK_SET) < 0) {
		close(file);
		return -1;
	}
	return file;
}

/* The stream of a file that is not compressed, with `magic` put back. */
static FILE *plain(int fd, const unsigned char *magic, size_t n)
{
	FILE *file = fdopen(fd, "r");

	if (file && lseek(fd, -(off_t)n, SEEK_CUR) < 0)
		while (n > 0) /* a pipe; glibc takes back more than one byte */
			ungetc(magic[--n], file);
	return file;
}

/* Puts what a pipe still has into a file, behind the `n` bytes that were read from it, and waits
 * for the tool at its other end, if there is one. Takes `fd`. -1 with a message in `err`. */
static int settle(struct ss_input *in, int fd, const unsigned char *magic, size_t n, char *err,
		  size_t err_size)
{
	int file = spool(fd, magic, n);

	if (file < 0) {
		snprintf(err, err_size, "packed, and cannot be put into a temporary file: %s",
			 strerror(errno));
	}
	close(fd);
	if (file >= 0 && !ss_input_complete(in)) {
		snprintf(err, err_size, "%s failed", in->tool);
		close(file);
		file = -1;
	}
	return file;
}

bool ss_input_open(struct ss_input *in, const char *path, char *err, size_t err_size)
{
	unsigned char magic[MAGIC];
	const struct tool *tool;
	size_t n;

	*in = (struct ss_input){0};
	int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) :
					  open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		snprintf(err, err_size, "%s", strerror(errno));
		return false;
	}
	for (int layer = 0;; layer++) {
		n = read_up_to(fd, magic, MAGIC);
		if (n == 0 && errno)
			snprintf(err, err_size, "%s", strerror(errno));
		else if (n == 0)
			snprintf(err, err_size,
				 ss_input_complete(in) ? "the file is empty" : "%s failed",
				 in->tool);
		if (n == 0)
			goto error;
		tool = tool_for(magic, n);
		if (!tool)
			break;
		if (layer == LAYERS) {
			snprintf(err, err_size, "packed more than %d times", LAYERS);
			goto error;
		}
		if (in->pid > 0 || lseek(fd, -(off_t)n, SEEK_CUR) < 0)
			fd = settle(in, fd, magic, n, err, err_size);
		if (fd < 0)
			goto error;
		fd = unpack(in, tool, fd);
		if (fd < 0) {
			snprintf(err, err_size, "%s", strerror(errno));
			goto error;
		}
	}
	const char *other = ss_input_other(magic, n);
	in->file = other ? NULL : plain(fd, magic, n);
	in->first = magic[0];
	if (in->file)
		return true;
	snprintf(err, err_size, "%s", other ? other : strerror(errno));

error:
	if (fd >= 0)
		close(fd);
	ss_input_complete(in);
	*in = (struct ss_input){0};
	return false;
}

bool ss_input_complete(struct ss_input *in)
{
	int status;
	pid_t pid;

	if (in->pid <= 0)
		return true;
	do {
		pid = waitpid(in->pid, &status, 0);
	} while (pid < 0 && errno == EINTR);
	in->pid = 0;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void ss_input_close(struct ss_input *in)
{
	if (in->file)
		fclose(in->file); /* first, so that a tool that still writes gets SIGPIPE */
	ss_input_complete(in);
	*in = (struct ss_input){0};
}
