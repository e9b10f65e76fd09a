/* SPDX-License-Identifier: MIT */
/*
 * A strict reader for RMM's CSV. Columns are found by the names in the header, as
 * RMM's own replay does, so more of them and another order are no matter; a row
 * that has not as many fields as the header, or a field that is not what its
 * column says, is refused with its line.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/rmm_csv.h"

#define MOST_FIELDS 64
#define MOST_TEXT 65536 /* a line that is longer is none */

enum column { THREAD, TIME, ACTION, POINTER, SIZE, STREAM, COLUMNS };

static const char *const names[COLUMNS] = {
	"Thread", "Time", "Action", "Pointer", "Size", "Stream",
};

struct ss_rmm_reader {
	struct ss_input *in;
	unsigned long long line;
	char text[MOST_TEXT];
	int field[COLUMNS]; /* where each column stands */
	int fields;         /* of every line */
	bool unended;       /* the line is the last, and has no end */
	char reason[64];    /* what is wrong, where it has a number in it */
};

/* The next line without its end: 1, 0 at the end of the file, -1 for what is no text, which
 * nobody can tell how long it is. */
static int next_line(struct ss_rmm_reader *log) {
	size_t n = 0;
	int c;

	while ((c = getc_unlocked(log->in->file)) != EOF && c != '\n') {
		if (c == '\0' || n == sizeof(log->text) - 1) {
			log->line++;
			return -1;
		}
		log->text[n++] = (char)c;
	}
	if (c == EOF && n == 0) {
		return 0;
	}
	while (n > 0 && log->text[n - 1] == '\r') {
		n--;
	}
	log->text[n] = '\0';
	log->unended = c == EOF;
	log->line++;
	return 1;
}

static void no_text(const struct ss_rmm_reader *log, char *err, size_t err_size) {
	snprintf(err, err_size, "line %llu: not text, or longer than any row", log->line);
}

/* Cuts the line at its commas, in place. How many fields it has, at most `most`
 * of them in `field`. */
static int split(char *text, char **field, int most) {
	int n = 0;

	for (char *s = text; s; n++) {
		if (n < most) {
			field[n] = s;
		}
		s = strchr(s, ',');
		if (s) {
			*s++ = '\0';
		}
	}
	return n;
}

/* Without blanks and quotation marks around it. */
static char *bare(char *s) {
	size_t n;

	s += strspn(s, " \t\"");
	for (n = strlen(s); n && strchr(" \t\"", s[n - 1]); n--) {
		s[n - 1] = '\0';
	}
	return s;
}

static bool read_header(struct ss_rmm_reader *log, char *err, size_t err_size) {
	char *field[MOST_FIELDS], *text = log->text;

	text += strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* a spreadsheet's mark */
	if (strncmp(text, "version https://git-lfs", 23) == 0) {
		snprintf(err, err_size, "line 1: a Git LFS pointer, not the log: fetch that with "
			"git lfs pull");
		return false;
	}
	log->fields = split(text, field, MOST_FIELDS);
	for (int c = 0; c < COLUMNS; c++) {
		log->field[c] = -1;
	}
	for (int i = 0; i < log->fields && i < MOST_FIELDS; i++) {
		for (int c = 0; c < COLUMNS; c++) {
			if (strcasecmp(bare(field[i]), names[c]) == 0 && log->field[c] < 0) {
				log->field[c] = i;
			}
		}
	}
	if (log->fields > MOST_FIELDS) {
		snprintf(err, err_size, "line 1: more than %d columns", MOST_FIELDS);
		return false;
	}
	for (int c = 0; c < COLUMNS; c++) {
		if (log->field[c] < 0) {
			snprintf(err, err_size, "line 1: expected the header "
				"Thread,Time,Action,Pointer,Size,Stream: there is no column %s",
				names[c]);
			return false;
		}
	}
	return true;
}

struct ss_rmm_reader *ss_rmm_open(struct ss_input *in, char *err, size_t err_size) {
	struct ss_rmm_reader *log = calloc(1, sizeof(*log));

	if (!log) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	log->in = in;
	int got = next_line(log);
	if (got < 0) {
		no_text(log, err, err_size);
	} else if (got == 0) {
		snprintf(err, err_size, "%s", strerror(errno));
	} else if (read_header(log, err, err_size)) {
		return log;
	}
	ss_rmm_close(log);
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
	*out = strtoull(s, &end, s[0] == '0' && (s[1] == 'x' || s[1] == 'X') ? 16 : 10);
	return *end == '\0' && errno == 0;
}

/* As above; and hexadecimal without a mark, where digits alone do not do. */
static bool read_id(const char *s, uint64_t *out) {
	char *end;

	if (read_number(s, out)) {
		return true;
	}
	if (!*s || s[strspn(s, "0123456789abcdefABCDEF")] != '\0') {
		return false;
	}
	errno = 0;
	*out = strtoull(s, &end, 16);
	return errno == 0;
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

/* Fills *out from the line; NULL, or what is wrong. */
static const char *parse_line(struct ss_rmm_reader *log, struct ss_rmm_entry *out, bool *skip) {
	char *field[MOST_FIELDS], *at[COLUMNS];
	int n = split(log->text, field, MOST_FIELDS);

	if (n != log->fields) {
		snprintf(log->reason, sizeof(log->reason), "%s than %d fields",
			n < log->fields ? "fewer" : "more", log->fields);
		return log->reason;
	}
	for (int c = 0; c < COLUMNS; c++) {
		at[c] = bare(field[log->field[c]]);
	}
	*skip = strcmp(at[ACTION], "allocate failure") == 0;
	out->is_free = strcmp(at[ACTION], "free") == 0;
	if (!*skip && !out->is_free && strcmp(at[ACTION], "allocate") != 0) {
		return "the action is neither allocate nor free";
	}
	if (!read_id(at[THREAD], &out->thread)) {
		return "the thread is not a number";
	}
	if (!read_time(at[TIME], &out->time_us)) {
		return "the time is not HH:MM:SS.uuuuuu";
	}
	if (!read_id(at[POINTER], &out->pointer)) {
		return "the pointer is not a number";
	}
	if (!read_number(at[SIZE], &out->size)) {
		return "the size is not a number";
	}
	if (!read_id(at[STREAM], &out->stream)) {
		return "the stream is not a number";
	}
	return NULL;
}

/* 0 if everything was read, else -1 as ss_rmm_next. */
static int at_end(struct ss_rmm_reader *log, unsigned long long line, char *err, size_t err_size) {
	if (ferror(log->in->file) || !ss_input_complete(log->in)) {
		snprintf(err, err_size, "after line %llu: cannot read on", line);
		return -1;
	}
	return 0;
}

int ss_rmm_next(struct ss_rmm_reader *log, struct ss_rmm_entry *out, char *err, size_t err_size) {
	out->cut = false;
	for (;;) {
		bool skip = false;

		int got = next_line(log);
		if (got < 0) {
			no_text(log, err, err_size);
			return -1;
		}
		if (got == 0) {
			return at_end(log, log->line, err, err_size);
		}
		if (log->text[0] == '\0') {
			continue;
		}
		const char *wrong = parse_line(log, out, &skip);
		out->line = log->line;
		if (wrong && log->unended) {
			out->cut = true;
			return at_end(log, log->line - 1, err, err_size);
		}
		if (wrong) {
			snprintf(err, err_size, "line %llu: %s", log->line, wrong);
			return -1;
		}
		if (!skip) {
			return 1;
		}
	}
}

void ss_rmm_close(struct ss_rmm_reader *log) {
	free(log);
}
