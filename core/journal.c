/* SPDX-License-Identifier: MIT */
/*
 * The allocation log: one RMM CSV line per allocation and free, and a strict
 * reader for the same format.
 *
 * The writer runs inside the application's calls: no lock, no heap, no stdio,
 * errno untouched. Each line is one write(2) on an O_APPEND descriptor, so the
 * kernel has it when the call returns and lines of threads never mix.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/journal.h"

#define HEADER "Thread,Time,Action,Pointer,Size,Stream"

struct ss_journal {
	int fd;
	long utc_offset; /* read once: localtime() locks, which a fork may hold */
};

bool ss_path_expand(const char *pattern, char *out, size_t size) {
	size_t n = 0;

	for (const char *s = pattern; *s; s++) {
		char text[16] = { *s };
		if (s[0] == '%' && (s[1] == 'p' || s[1] == '%')) {
			s++;
			if (*s == 'p') {
				snprintf(text, sizeof(text), "%d", (int)getpid());
			}
		}
		size_t len = strlen(text);
		if (len >= size || n >= size - len) {
			return false;
		}
		memcpy(out + n, text, len);
		n += len;
	}
	if (n >= size) {
		return false;
	}
	out[n] = '\0';
	return true;
}

/* ---- writing ------------------------------------------------------------ */

static char *put_decimal(char *p, uint64_t n, int width) {
	char digits[20];
	int len = 0;

	do {
		digits[len++] = (char)('0' + n % 10);
		n /= 10;
	} while (n || len < width);
	while (len) {
		*p++ = digits[--len];
	}
	return p;
}

static char *put_hex(char *p, uint64_t n) {
	int shift = n ? (63 - __builtin_clzll(n)) / 4 * 4 : 0;

	*p++ = '0';
	*p++ = 'x';
	for (; shift >= 0; shift -= 4) {
		*p++ = "0123456789abcdef"[(n >> shift) & 15];
	}
	return p;
}

static char *put_text(char *p, const char *s) {
	size_t len = strlen(s);
	memcpy(p, s, len);
	return p + len;
}

static void put_line(struct ss_journal *j, const char *action, const void *ptr, size_t size,
		const void *stream) {
	char line[192], *p = line;
	int saved = errno;
	struct timespec now;

	if (!j) {
		return;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	unsigned day = (unsigned)(((now.tv_sec + j->utc_offset) % 86400 + 86400) % 86400);

	p = put_decimal(p, (uint64_t)syscall(SYS_gettid), 1);
	*p++ = ',';
	p = put_decimal(p, day / 3600, 2);
	*p++ = ':';
	p = put_decimal(p, day / 60 % 60, 2);
	*p++ = ':';
	p = put_decimal(p, day % 60, 2);
	*p++ = '.';
	p = put_decimal(p, (uint64_t)now.tv_nsec / 1000, 6);
	*p++ = ',';
	p = put_text(p, action);
	*p++ = ',';
	p = put_hex(p, (uint64_t)(uintptr_t)ptr);
	*p++ = ',';
	p = put_decimal(p, size, 1);
	*p++ = ',';
	p = put_hex(p, (uint64_t)(uintptr_t)stream);
	*p++ = '\n';

	ssize_t n;
	do {
		n = write(j->fd, line, (size_t)(p - line));
	} while (n < 0 && errno == EINTR);
	errno = saved;
}

struct ss_journal *ss_journal_open(const char *pattern) {
	char path[1024];
	struct stat st;
	struct tm tm;
	time_t now = time(NULL);

	if (!ss_path_expand(pattern, path, sizeof(path))) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	struct ss_journal *j = calloc(1, sizeof(*j));
	if (!j) {
		return NULL;
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0) {
		goto error_alloc;
	}
	/* Programs that close "all" descriptors stop at a low number; ours
	 * must not come back as one of their files. */
	j->fd = fcntl(fd, F_DUPFD_CLOEXEC, 512);
	if (j->fd < 0) {
		j->fd = fd;
	} else {
		close(fd);
	}
	if (localtime_r(&now, &tm)) {
		j->utc_offset = tm.tm_gmtoff;
	}
	if (fstat(j->fd, &st) == 0 && (st.st_size == 0 || !S_ISREG(st.st_mode))) {
		static const char header[] = HEADER "\n";
		if (write(j->fd, header, sizeof(header) - 1) < 0) {
			goto error_fd;
		}
	}
	return j;

error_fd:
	fd = errno;
	close(j->fd);
	errno = fd;
error_alloc:
	free(j);
	return NULL;
}

void ss_journal_close(struct ss_journal *j) {
	if (j) {
		close(j->fd);
		free(j);
	}
}

void ss_journal_alloc(struct ss_journal *j, const void *ptr, size_t size, const void *stream) {
	put_line(j, "allocate", ptr, size, stream);
}

void ss_journal_free(struct ss_journal *j, const void *ptr, size_t size, const void *stream) {
	put_line(j, "free", ptr, size, stream);
}

/* ---- reading ------------------------------------------------------------ */

struct ss_log {
	FILE *file;
	pid_t xz; /* the decompressor, 0 if none */
	unsigned long long line;
	char *text;
	size_t text_size;
};

/* xz without a shell: a path is data, never a command. */
static FILE *open_xz(const char *path, pid_t *pid) {
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0) {
		return NULL;
	}
	*pid = fork();
	if (*pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		execlp("xz", "xz", "-dc", "--", path, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	FILE *file = *pid < 0 ? NULL : fdopen(ends[0], "r");
	if (!file) {
		close(ends[0]);
	}
	return file;
}

/* False when the decompressor failed: what it gave so far is not the log. */
static bool finish_xz(struct ss_log *log) {
	int status = 0;

	if (log->xz <= 0) {
		return true;
	}
	while (waitpid(log->xz, &status, 0) < 0 && errno == EINTR) {
	}
	log->xz = 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The next line without its end; false at the end of the file. */
static bool next_line(struct ss_log *log) {
	ssize_t n = getline(&log->text, &log->text_size, log->file);
	if (n < 0) {
		return false;
	}
	while (n > 0 && (log->text[n - 1] == '\n' || log->text[n - 1] == '\r')) {
		log->text[--n] = '\0';
	}
	log->line++;
	return true;
}

struct ss_log *ss_log_open(const char *path, char *err, size_t err_size) {
	size_t len = strlen(path);
	struct ss_log *log = calloc(1, sizeof(*log));

	if (!log) {
		snprintf(err, err_size, "%s: out of memory", path);
		return NULL;
	}
	if (access(path, R_OK) == 0) {
		log->file = len > 3 && strcmp(path + len - 3, ".xz") == 0 ?
			open_xz(path, &log->xz) : fopen(path, "re");
	}
	if (!log->file) {
		snprintf(err, err_size, "%s: %s", path, strerror(errno));
		ss_log_close(log);
		return NULL;
	}
	if (!next_line(log)) {
		snprintf(err, err_size, "%s: %s", path,
			finish_xz(log) ? "the file is empty" : "xz -dc failed");
	} else if (strcmp(log->text, HEADER) != 0) {
		snprintf(err, err_size, "%s: line 1: expected the header " HEADER, path);
	} else {
		return log;
	}
	ss_log_close(log);
	return NULL;
}

/* Decimal, 0x hexadecimal, or what printf makes of a null pointer. */
static bool read_number(const char *s, uint64_t *out) {
	char *end;

	if (strcmp(s, "(nil)") == 0) {
		*out = 0;
		return true;
	}
	if (s[0] < '0' || s[0] > '9') {
		return false;
	}
	errno = 0;
	*out = strtoull(s, &end, s[0] == '0' && s[1] == 'x' ? 16 : 10);
	return *end == '\0' && errno == 0;
}

static bool read_time(const char *s, uint64_t *us) {
	unsigned h, m, sec;
	int used = 0;

	if (sscanf(s, "%2u:%2u:%2u%n", &h, &m, &sec, &used) != 3 || used != 8 ||
			h > 23 || m > 59 || sec > 60) {
		return false;
	}
	s += used;
	uint64_t part = 0;
	if (*s == '.' || *s == ':') {
		s++;
		int digits = 0;
		for (; *s >= '0' && *s <= '9'; s++) {
			if (digits++ < 6) {
				part = part * 10 + (uint64_t)(*s - '0');
			}
		}
		if (digits == 0) {
			return false;
		}
		for (; digits < 6; digits++) {
			part *= 10;
		}
	}
	*us = (h * 3600ull + m * 60 + sec) * 1000000 + part;
	return *s == '\0';
}

/* Splits the line in place and fills *out; NULL, or what is wrong. */
static const char *parse_line(char *text, struct ss_log_entry *out, bool *skip) {
	char *field[6];
	int n = 0;

	for (char *s = text; s; n++) {
		if (n == 6) {
			return "more than 6 fields";
		}
		field[n] = s;
		s = strchr(s, ',');
		if (s) {
			*s++ = '\0';
		}
	}
	if (n != 6) {
		return "fewer than 6 fields";
	}
	*skip = strcmp(field[2], "allocate failure") == 0;
	out->is_free = strcmp(field[2], "free") == 0;
	if (!*skip && !out->is_free && strcmp(field[2], "allocate") != 0) {
		return "the action is neither allocate nor free";
	}
	if (!read_number(field[0], &out->thread)) {
		return "the thread is not a number";
	}
	if (!read_time(field[1], &out->time_us)) {
		return "the time is not HH:MM:SS.uuuuuu";
	}
	if (!read_number(field[3], &out->pointer)) {
		return "the pointer is not a number";
	}
	if (!read_number(field[4], &out->size)) {
		return "the size is not a number";
	}
	if (!read_number(field[5], &out->stream)) {
		return "the stream is not a number";
	}
	return NULL;
}

int ss_log_next(struct ss_log *log, struct ss_log_entry *out, char *err, size_t err_size) {
	for (;;) {
		bool skip = false;

		if (!next_line(log)) {
			if (ferror(log->file) || !finish_xz(log)) {
				snprintf(err, err_size, "after line %llu: cannot read on",
					log->line);
				return -1;
			}
			return 0;
		}
		if (log->text[0] == '\0') {
			continue;
		}
		const char *wrong = parse_line(log->text, out, &skip);
		out->line = log->line;
		if (wrong) {
			snprintf(err, err_size, "line %llu: %s", log->line, wrong);
			return -1;
		}
		if (!skip) {
			return 1;
		}
	}
}

void ss_log_close(struct ss_log *log) {
	if (!log) {
		return;
	}
	if (log->file) {
		fclose(log->file); /* first: a blocked xz then ends by SIGPIPE */
	}
	finish_xz(log);
	free(log->text);
	free(log);
}
