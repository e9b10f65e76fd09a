/* SPDX-License-Identifier: MIT */
/* Opens what replay reads, through the tool that unpacks it if it is compressed. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/log.h"

/* One byte is enough: no CSV and no pickle begins with one of these, and what is
 * not of that format after all is refused by the tool. */
static const char *tool_of(int first) {
	switch (first) {
	case 0x1f: return "gzip";
	case 0x28: return "zstd";
	case 0xfd: return "xz";
	default: return NULL;
	}
}

/* Without a shell and without the name: a path is data, never a command. */
static FILE *unpack(struct ss_input *in, int fd) {
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0) {
		return NULL;
	}
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
	if (!file) {
		close(ends[0]);
	}
	return file;
}

/* The first byte, EOF if there is none or an error; errno tells which. */
static int first_byte(int fd) {
	unsigned char byte;
	ssize_t n;

	do {
		n = read(fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	errno = n < 0 ? errno : 0;
	return n == 1 ? byte : EOF;
}

bool ss_input_open(struct ss_input *in, const char *path, char *err, size_t err_size) {
	*in = (struct ss_input){ 0 };
	int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) :
		open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		snprintf(err, err_size, "%s", strerror(errno));
		return false;
	}
	int first = first_byte(fd);
	if (first == EOF) {
		snprintf(err, err_size, "%s", errno ? strerror(errno) : "the file is empty");
		goto error_fd;
	}
	in->tool = tool_of(first);
	if (!in->tool) {
		in->file = fdopen(fd, "r");
	} else if (lseek(fd, -1, SEEK_CUR) < 0) {
		/* The byte that told is gone, and the tool would miss it. */
		snprintf(err, err_size, "compressed, and no file: unpack it before (%s -dc)",
			in->tool);
		goto error_fd;
	} else {
		in->file = unpack(in, fd);
	}
	if (!in->file) {
		snprintf(err, err_size, "%s", strerror(errno));
		goto error_fd;
	}
	if (in->tool) {
		close(fd);
		first = getc(in->file);
		if (first == EOF) {
			snprintf(err, err_size, ss_input_complete(in) ? "the file is empty" :
				"%s -dc failed", in->tool);
			ss_input_close(in);
			return false;
		}
	}
	in->first = first;
	ungetc(first, in->file);
	return true;

error_fd:
	close(fd);
	return false;
}

bool ss_input_complete(struct ss_input *in) {
	int status = 0;

	if (in->pid <= 0) {
		return true;
	}
	while (waitpid(in->pid, &status, 0) < 0 && errno == EINTR) {
	}
	in->pid = 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void ss_input_close(struct ss_input *in) {
	if (in->file) {
		fclose(in->file); /* first: a tool that is still writing then ends by SIGPIPE */
	}
	ss_input_complete(in);
	*in = (struct ss_input){ 0 };
}
