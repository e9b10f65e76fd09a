/* SPDX-License-Identifier: MIT */
/* Opens a file, through the tool that unpacks it if it is compressed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/readers/input.h"
#include "cli/readers/temporary_file.h"

#define MAGIC 4 /* bytes that tell the format */

/* For gzip and xz the first byte is enough: no CSV and no pickle begins with it, and the tool
 * refuses a file of another format. The first byte of zstd is a bracket, with which a pickle
 * of protocol 0 begins too. */
const char *ss_input_tool(const void *begin, size_t n)
{
	const unsigned char *magic = begin;

	if (n >= MAGIC && memcmp(magic, "\x28\xb5\x2f\xfd", MAGIC) == 0)
		return "zstd";
	return magic[0] == 0x1f ? "gzip" : magic[0] == 0xfd ? "xz" : NULL;
}

/* Runs the tool on the open file, without a shell and without its path, so that no path can
 * become a command or an option. */
static FILE *unpack(struct ss_input *in, int fd)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return NULL;
	in->pid = fork();
	if (in->pid == 0) {
		dup2(fd, STDIN_FILENO);
		dup2(ends[1], STDOUT_FILENO);
		execlp(in->tool, in->tool, "-dc", (char *)NULL);
		fprintf(stderr, "somashim: %s: %s\n", in->tool, strerror(errno));
		_exit(127);
	}
	close(ends[1]);
	FILE *file = in->pid < 0 ? NULL : fdopen(ends[0], "r");
	if (!file)
		close(ends[0]);
	return file;
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

	int file = ss_temporary_file("somashim-log", path);
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

bool ss_input_open(struct ss_input *in, const char *path, char *err, size_t err_size)
{
	*in = (struct ss_input){0};
	int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) :
					  open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		snprintf(err, err_size, "%s", strerror(errno));
		return false;
	}
	unsigned char magic[MAGIC];
	size_t n = read_up_to(fd, magic, MAGIC);
	if (n == 0) {
		snprintf(err, err_size, "%s", errno ? strerror(errno) : "the file is empty");
		goto error_fd;
	}
	in->tool = ss_input_tool(magic, n);
	if (in->tool && lseek(fd, -(off_t)n, SEEK_CUR) < 0) {
		int file = spool(fd, magic, n);
		if (file < 0) {
			snprintf(err, err_size,
				 "packed, and cannot be put into a temporary file: "
				 "%s",
				 strerror(errno));
			goto error_fd;
		}
		close(fd);
		fd = file;
	}
	in->file = in->tool ? unpack(in, fd) : plain(fd, magic, n);
	if (!in->file) {
		snprintf(err, err_size, "%s", strerror(errno));
		goto error_fd;
	}
	in->first = magic[0];
	if (!in->tool)
		return true;
	close(fd);
	in->first = getc(in->file);
	if (in->first == EOF) {
		snprintf(err, err_size,
			 ss_input_complete(in) ? "the file is empty" : "%s -dc failed", in->tool);
		ss_input_close(in);
		return false;
	}
	ungetc(in->first, in->file);
	return true;

error_fd:
	close(fd);
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
