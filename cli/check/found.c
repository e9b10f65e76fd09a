/* SPDX-License-Identifier: MIT */
/* Reads the files that the processes of a run wrote, and reports that were made of such. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/check/fields.h"
#include "cli/check/found.h"

#define NOT_FOUND "it is no file of `somashim check --json' or SOMASHIM_CHECK_FILE"

#define BEGIN "{\"kind\": \"" /* of each line of a process */

static const char *const sites[] = {"use", "alloc", "free"};

static bool is_leak(const json_t *finding)
{
	return strcmp(text(finding, "fault"), "leak") == 0;
}

/* Are the same calls of the same places wrong in the same way? */
static bool same(const json_t *a, const json_t *b)
{
	bool equal = strcmp(text(a, "fault"), text(b, "fault")) == 0;

	for (size_t i = 0; equal && i < sizeof(sites) / sizeof(sites[0]); i++) {
		const json_t *x = json_object_get(a, sites[i]), *y = json_object_get(b, sites[i]);

		equal = strcmp(text(x, "call"), text(y, "call")) == 0;
		x = json_object_get(x, "frames");
		y = json_object_get(y, "frames");
		equal = equal && (!x) == (!y) && (!x || json_equal(x, y));
	}
	return equal;
}

/* The ranks of both, each once, in their order. */
static void ranks_into(json_t *to, const json_t *from)
{
	json_t *all = json_object_get(to, "ranks");

	for (size_t i = 0; i < json_array_size(from); i++) {
		json_int_t rank = json_integer_value(json_array_get(from, i));
		size_t at = 0;

		while (at < json_array_size(all) &&
		       json_integer_value(json_array_get(all, at)) < rank)
			at++;
		if (at == json_array_size(all) ||
		    json_integer_value(json_array_get(all, at)) != rank)
			json_array_insert_new(all, at, json_integer(rank));
	}
}

static void sum_into(json_t *to, const json_t *from, const char *key)
{
	json_object_set_new(to, key,
			    json_integer((json_int_t)(number(to, key) + number(from, key))));
}

static void finding_add(struct ss_check_report *f, json_t *finding, struct ss_frame_names *names,
			const struct ss_suppressions *s)
{
	if (!text(finding, "fault")[0] || (json_int_t)number(finding, "count") < 1) {
		f->not_read++;
		return;
	}
	for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++) {
		json_t *frames = json_object_get(json_object_get(finding, sites[i]), "frames");
		for (size_t j = 0; j < json_array_size(frames); j++)
			ss_frame_names_add(names, json_array_get(frames, j));
	}
	if (ss_suppressed(s, finding)) {
		f->suppressed++;
		return;
	}
	if (!is_leak(finding)) {
		f->errors += number(finding, "count");
	} else {
		f->leaked_bytes += number(finding, "size");
		f->leaked_blocks += number(finding, "count");
	}
	for (size_t i = 0; i < json_array_size(f->findings); i++) {
		json_t *old = json_array_get(f->findings, i);
		if (!same(old, finding))
			continue;
		sum_into(old, finding, "count");
		if (is_leak(old))
			sum_into(old, finding, "size");
		ranks_into(old, json_object_get(finding, "ranks"));
		return;
	}
	f->errors += is_leak(finding);
	json_object_del(finding, "number");
	json_array_append(f->findings, finding);
}

/* The finding of this number of one process. */
static json_t *finding_of(const json_t *findings, uint64_t want)
{
	for (size_t i = 0; i < json_array_size(findings); i++)
		if (number(json_array_get(findings, i), "number") == want)
			return json_array_get(findings, i);
	return NULL;
}

/* Reads the lines of a process; false: they are none. */
static bool read_lines(struct ss_check_report *f, const char *lines, struct ss_frame_names *names,
		       const struct ss_suppressions *s)
{
	json_t *findings = json_array(), *ranks = json_array();
	size_t damaged = 0, read = 0;
	bool ended = true, begun = strncmp(lines, BEGIN, strlen(BEGIN)) == 0;

	for (const char *line = lines; *line && ended;) {
		size_t length = strcspn(line, "\n");
		json_t *object = json_loadb(line, length, 0, NULL);
		const char *kind = text(object, "kind");

		ended = line[length] == '\n'; /* the last may be cut, where a process was killed */
		line += length + ended;
		read += kind[0] != '\0';
		damaged += !kind[0] && length;
		if (strcmp(kind, "finding") == 0)
			json_array_append(findings, object);
		else if (strcmp(kind, "count") == 0)
			json_object_set(finding_of(findings, number(object, "number")), "count",
					json_object_get(object, "count"));
		else if (strcmp(kind, "summary") == 0)
			json_array_append(f->processes, object);
		if (json_is_integer(json_object_get(object, "rank")))
			json_array_append(ranks, json_object_get(object, "rank"));
		json_decref(object);
	}
	for (size_t i = 0; i < json_array_size(findings); i++) {
		json_t *finding = json_array_get(findings, i);
		json_object_set_new(finding, "ranks", json_deep_copy(ranks));
		finding_add(f, finding, names, s);
	}
	f->not_read += read || begun ? damaged : 0;
	json_decref(findings);
	json_decref(ranks);
	return read || begun;
}

/* Reads a report; false: it is none. */
static bool read_report(struct ss_check_report *f, const char *all, struct ss_frame_names *names,
			const struct ss_suppressions *s)
{
	json_t *root = json_loads(all, 0, NULL);
	const json_t *findings = json_object_get(root, "findings");
	bool is = json_is_array(findings);

	for (size_t i = 0; i < json_array_size(findings); i++)
		finding_add(f, json_array_get(findings, i), names, s);
	if (is) {
		json_array_extend(f->processes, json_object_get(root, "processes"));
		f->suppressed += number(root, "suppressed");
		f->not_read += number(root, "not_read");
	}
	json_decref(root);
	return is;
}

/* What the file has, up to the first byte that is 0: JSON has none. It is read once, since it may
 * be a pipe, and not at all if it cannot be JSON, since it may have no end. NULL with a message. */
static char *read_all(FILE *in, char *err, size_t size)
{
	char *all = NULL;
	size_t room = 0;
	int first = getc(in);

	if (first == EOF) {
		snprintf(err, size, "%s", ferror(in) ? strerror(errno) : "the file is empty");
		return NULL;
	}
	ungetc(first, in);
	if (first != '{') {
		snprintf(err, size, NOT_FOUND);
	} else if (getdelim(&all, &room, '\0', in) < 0 || ferror(in)) {
		snprintf(err, size, "%s", strerror(errno));
		free(all);
		all = NULL;
	}
	return all;
}

static bool read_file(struct ss_check_report *f, const char *path, struct ss_frame_names *names,
		      const struct ss_suppressions *s, char *err, size_t size)
{
	FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	char why[256] = "";

	if (!in) {
		snprintf(err, size, "%s: %s", path, strerror(errno));
		return false;
	}
	char *all = read_all(in, why, sizeof(why));
	bool good = all && (read_report(f, all, names, s) || read_lines(f, all, names, s));
	if (!good)
		snprintf(err, size, "%s: %s", path, why[0] ? why : NOT_FOUND);
	free(all);
	if (in != stdin)
		fclose(in);
	return good;
}

/* Other programs may lay JSON out with other blanks. Regular files only: opening a FIFO would wait,
 * and what is read of a pipe is gone. */
bool ss_is_found(const char *path)
{
	static const char *const starts[] = {"{\"kind\":\"", "{\"findings\":["};
	char begin[64], dense[64] = "";
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t got = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ?
			      read(fd, begin, sizeof(begin) - 1) :
			      0;
	size_t n = 0;

	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; i < got; i++)
		if (!isspace((unsigned char)begin[i]))
			dense[n++] = begin[i];
	return strncmp(dense, starts[0], strlen(starts[0])) == 0 ||
	       strncmp(dense, starts[1], strlen(starts[1])) == 0;
}

bool ss_found_read(struct ss_check_report *f, char *const *paths, const struct ss_suppressions *s,
		   char *err, size_t size)
{
	struct ss_frame_names *names = ss_frame_names_open();
	bool good;

	memset(f, 0, sizeof(*f));
	f->findings = json_array();
	f->processes = json_array();
	good = names && f->findings && f->processes;
	if (!good)
		snprintf(err, size, "out of memory");
	for (; good && paths && *paths; paths++)
		good = read_file(f, *paths, names, s, err, size);
	ss_frame_names_close(names);
	f->different = json_array_size(f->findings);
	if (!good)
		ss_found_finish(f);
	return good;
}

void ss_found_finish(struct ss_check_report *f)
{
	json_decref(f->findings);
	json_decref(f->processes);
}
