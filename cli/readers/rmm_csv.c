/* SPDX-License-Identifier: MIT */
/*
 * A strict reader for RMM's CSV. Columns are found by their names in the header, as RMM's own
 * replay does, so their order and additional columns do not matter. A row with another number
 * of fields than the header, or with a field of the wrong type, is refused with its line
 * number.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/rmm_csv.h"
#include "trace/format.h"

#define MAX_FIELDS 64
#define MAX_TEXT 65536 /* longer lines are refused */

enum column { THREAD, TIME, ACTION, POINTER, SIZE, STREAM, COLUMNS };

static const char *const names[COLUMNS] = {
	"Thread", "Time", "Action", "Pointer", "Size", "Stream",
};

struct ss_rmm_reader {
	struct ss_input *in;
	unsigned long long line;
	char text[MAX_TEXT];
	int field[COLUMNS]; /* the field that holds each column */
	int fields;         /* the number of fields of every line */
	bool unended;       /* the last line, without a line end */
	bool again;         /* the first line is an entry, and has yet to be read as one */
	char reason[64];    /* a message with a number in it */
};

/* Reads the next line, without its end. Returns 1, or 0 at the end of the file, or -1 for
 * binary data or a line that is too long. */
static int next_line(struct ss_rmm_reader *reader)
{
	size_t n = 0;
	int c;

	while ((c = getc_unlocked(reader->in->file)) != EOF && c != '\n') {
		if (c == '\0' || n == sizeof(reader->text) - 1) {
			reader->line++;
			return -1;
		}
		reader->text[n++] = (char)c;
	}
	if (c == EOF && n == 0)
		return 0;
	while (n > 0 && reader->text[n - 1] == '\r')
		n--;
	reader->text[n] = '\0';
	reader->unended = c == EOF;
	reader->line++;
	return 1;
}

static void report_binary(const struct ss_rmm_reader *reader, char *err, size_t err_size)
{
	bool recording = reader->line == 1 &&
			 memcmp(reader->text, SS_TRACE_MAGIC, strlen(SS_TRACE_MAGIC)) == 0;

	snprintf(err, err_size, "line %llu: %s", reader->line,
		 recording ? "a recording that is packed: unpack it, then see it with `somashim "
			     "report'" :
			     "not text, or longer than any row");
}

/* Splits the line at its commas, in place. Returns the number of fields, of which at most
 * `most` are stored in `field`. */
static int split(char *text, char **field, int most)
{
	int n = 0;

	for (char *s = text; s; n++) {
		if (n < most)
			field[n] = s;
		s = strchr(s, ',');
		if (s)
			*s++ = '\0';
	}
	return n;
}

/* Removes blanks and quotation marks around a field. */
static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " \t\"");
	for (n = strlen(s); n && strchr(" \t\"", s[n - 1]); n--)
		s[n - 1] = '\0';
	return s;
}

/* Is the first line an entry already? Then the columns are those of RMM, in its order. */
static bool has_no_header(struct ss_rmm_reader *reader)
{
	const char *action = reader->text;
	int commas = 0;

	for (const char *s = reader->text; (s = strchr(s, ',')); s++)
		if (++commas == ACTION)
			action = s + 1;
	action += strspn(action, " \t\"");
	if (commas != COLUMNS - 1 ||
	    (strncmp(action, "allocate", 8) != 0 && strncmp(action, "free", 4) != 0))
		return false;
	reader->fields = COLUMNS;
	for (int c = 0; c < COLUMNS; c++)
		reader->field[c] = c;
	reader->again = true;
	return true;
}

static bool read_header(struct ss_rmm_reader *reader, char *err, size_t err_size)
{
	char *field[MAX_FIELDS], *text = reader->text;

	/* Byte order mark, from a spreadsheet */
	text += strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	if (strncmp(text, "version https://git-lfs", 23) == 0) {
		snprintf(err, err_size,
			 "line 1: a Git LFS pointer, not the log: fetch that with "
			 "git lfs pull");
		return false;
	}
	if (has_no_header(reader))
		return true;
	reader->fields = split(text, field, MAX_FIELDS);
	for (int c = 0; c < COLUMNS; c++)
		reader->field[c] = -1;
	for (int i = 0; i < reader->fields && i < MAX_FIELDS; i++) {
		for (int c = 0; c < COLUMNS; c++)
			if (strcasecmp(trim(field[i]), names[c]) == 0 && reader->field[c] < 0)
				reader->field[c] = i;
	}
	if (reader->fields > MAX_FIELDS) {
		snprintf(err, err_size, "line 1: more than %d columns", MAX_FIELDS);
		return false;
	}
	for (int c = 0; c < COLUMNS; c++) {
		if (reader->field[c] < 0) {
			snprintf(err, err_size,
				 "line 1: expected the header "
				 "Thread,Time,Action,Pointer,Size,Stream: there is no column %s",
				 names[c]);
			return false;
		}
	}
	return true;
}

struct ss_rmm_reader *ss_rmm_open(struct ss_input *in, char *err, size_t err_size)
{
	struct ss_rmm_reader *reader = calloc(1, sizeof(*reader));

	if (!reader) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	reader->in = in;
	int got = next_line(reader);
	if (got < 0)
		report_binary(reader, err, err_size);
	else if (got == 0)
		snprintf(err, err_size, "%s", strerror(errno));
	else if (read_header(reader, err, err_size))
		return reader;
	ss_rmm_close(reader);
	return NULL;
}

/* Decimal, hexadecimal with 0x, or (nil), which is how printf writes a null pointer. */
static bool read_number(const char *s, uint64_t *out)
{
	char *end;

	if (strcmp(s, "(nil)") == 0) {
		*out = 0;
		return true;
	}
	if (s[0] < '0' || s[0] > '9')
		return false;
	errno = 0;
	*out = strtoull(s, &end, s[0] == '0' && (s[1] == 'x' || s[1] == 'X') ? 16 : 10);
	return *end == '\0' && errno == 0;
}

/* As read_number(), and hexadecimal without 0x if there are letters in it. */
static bool read_id(const char *s, uint64_t *out)
{
	char *end;

	if (read_number(s, out))
		return true;
	if (!*s || s[strspn(s, "0123456789abcdefABCDEF")] != '\0')
		return false;
	errno = 0;
	*out = strtoull(s, &end, 16);
	return errno == 0;
}

static bool read_time(const char *s, uint64_t *us)
{
	unsigned h, m, sec;
	int used = 0;

	if (sscanf(s, "%2u:%2u:%2u%n", &h, &m, &sec, &used) != 3 || used != 8 || h > 23 || m > 59 ||
	    sec > 60)
		return false;
	s += used;
	uint64_t part = 0;
	if (*s == '.' || *s == ':') {
		s++;
		int digits = 0;
		for (; *s >= '0' && *s <= '9'; s++)
			if (digits++ < 6)
				part = part * 10 + (uint64_t)(*s - '0');
		if (digits == 0)
			return false;
		for (; digits < 6; digits++)
			part *= 10;
	}
	*us = (h * 3600ull + m * 60 + sec) * 1000000 + part;
	return *s == '\0';
}

/* Fills *out from the line. Returns NULL, or a message. */
static const char *parse_line(struct ss_rmm_reader *reader, struct ss_rmm_entry *out)
{
	char *field[MAX_FIELDS], *at[COLUMNS];
	int n = split(reader->text, field, MAX_FIELDS);

	if (n != reader->fields) {
		snprintf(reader->reason, sizeof(reader->reason), "%s than %d fields",
			 n < reader->fields ? "fewer" : "more", reader->fields);
		return reader->reason;
	}
	for (int c = 0; c < COLUMNS; c++)
		at[c] = trim(field[reader->field[c]]);
	out->is_failure = strcmp(at[ACTION], "allocate failure") == 0;
	out->is_free = strcmp(at[ACTION], "free") == 0;
	if (!out->is_failure && !out->is_free && strcmp(at[ACTION], "allocate") != 0)
		return "the action is neither allocate nor free";
	if (!read_id(at[THREAD], &out->thread))
		return "the thread is not a number";
	if (!read_time(at[TIME], &out->time_us))
		return "the time is not HH:MM:SS.uuuuuu";
	if (!read_id(at[POINTER], &out->pointer))
		return "the pointer is not a number";
	if (!read_number(at[SIZE], &out->size))
		return "the size is not a number";
	if (!read_id(at[STREAM], &out->stream))
		return "the stream is not a number";
	return NULL;
}

/* Returns 0 if the whole file was read, else -1 with a message. */
static int at_end(struct ss_rmm_reader *reader, unsigned long long line, char *err, size_t err_size)
{
	if (ferror(reader->in->file) || !ss_input_complete(reader->in)) {
		snprintf(err, err_size, "after line %llu: cannot read on", line);
		return -1;
	}
	return 0;
}

int ss_rmm_next(struct ss_rmm_reader *reader, struct ss_rmm_entry *out, char *err, size_t err_size)
{
	out->cut = false;
	for (;;) {
		int got = reader->again ? 1 : next_line(reader);

		reader->again = false;
		if (got < 0) {
			report_binary(reader, err, err_size);
			return -1;
		}
		if (got == 0)
			return at_end(reader, reader->line, err, err_size);
		if (reader->text[0] == '\0')
			continue;
		const char *wrong = parse_line(reader, out);
		out->line = reader->line;
		if (wrong && reader->unended) {
			out->cut = true;
			return at_end(reader, reader->line - 1, err, err_size);
		}
		if (wrong) {
			snprintf(err, err_size, "line %llu: %s", reader->line, wrong);
			return -1;
		}
		return 1;
	}
}

void ss_rmm_close(struct ss_rmm_reader *reader)
{
	free(reader);
}
