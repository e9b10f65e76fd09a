/* SPDX-License-Identifier: MIT */
/* Reads the files that the processes of a run wrote, and reports that were made of such. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/check/fields.h"
#include "cli/check/found.h"
#include "core/base/regular_file.h"
#include "trace/symbolize.h"

#define NOT_FOUND "it is no file of `somashim check --json' or SOMASHIM_CHECK_FILE"

#define BEGIN "{\"kind\": \"" /* of each line of a process */

static const char *const sites[] = {"use", "other", "alloc", "free"};
#define SITES (sizeof(sites) / sizeof(sites[0]))

static bool is_possible(const json_t *finding)
{
	return json_is_true(json_object_get(finding, "possible"));
}

static bool is_leak(const json_t *finding)
{
	return strcmp(text(finding, "fault"), "leak") == 0;
}

/* Makes all texts in it harmless for a terminal, but for the path of a module, which leads to its
 * file: that is done when its names have been read. */
static void clean(json_t *value, bool modules)
{
	const char *key;
	json_t *part;
	size_t i;

	json_array_foreach(value, i, part) clean(part, modules);
	json_object_foreach(value, key, part)
	{
		if (!json_is_string(part))
			clean(part, modules);
		else if ((modules || strcmp(key, "module") != 0) &&
			 !ss_utf8_is_clean(json_string_value(part)))
			json_object_set_new(value, key, harmless(json_string_value(part)));
	}
}

/* Takes the call stacks of a finding apart, with names for their frames. */
static void stacks_keep(struct ss_check_report *f, json_t *finding, struct ss_symbol_files *names,
			json_t *numbers)
{
	for (size_t i = 0; i < SITES; i++) {
		json_t *site = json_object_get(finding, sites[i]);

		if (names && json_object_get(site, "frames"))
			ss_frame_names_add(names, site);
		clean(json_object_get(site, "frames"), true);
		ss_stack_keep(f, site, numbers);
	}
}

/* A text that is the same for findings where the same calls of the same places are wrong in the
 * same way. Puts the frames of its call stacks back into the finding. The caller frees the text.
 * NULL: out of memory. */
static char *key_of(const struct ss_check_report *f, const json_t *finding)
{
	size_t size = 64 + strlen(text(finding, "fault")) + strlen(text(finding, "error")), length;
	char *key;

	for (size_t i = 0; i < SITES; i++) {
		const json_t *site = json_object_get(finding, sites[i]);
		size += 32 + strlen(text(site, "call")) + strlen(text(site, "kernel"));
	}
	key = malloc(size);
	if (!key)
		return NULL;
	length = (size_t)sprintf(key, "%s\n%d %s", text(finding, "fault"), is_possible(finding),
				 text(finding, "error"));
	for (size_t i = 0; i < SITES; i++) {
		json_t *site = json_object_get(finding, sites[i]);
		length += (size_t)sprintf(key + length, "\n%" JSON_INTEGER_FORMAT " %s\n%s",
					  ss_stack_attach(f, site), text(site, "call"),
					  text(site, "kernel"));
	}
	return key;
}

/* The finding that is the same, of those that were read before. NULL: there is none, and now it is
 * this one. */
static json_t *find_same(struct ss_check_report *f, const char *key)
{
	const json_t *old = key ? json_object_get(f->known, key) : NULL;
	json_t *found = old ? json_array_get(f->findings, (size_t)json_integer_value(old)) : NULL;

	if (key && !found)
		json_object_set_new(f->known, key,
				    json_integer((json_int_t)json_array_size(f->findings)));
	return found;
}

static int by_value(const void *a, const void *b)
{
	const json_int_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The ranks of a finding in their order, each once. */
static void ranks_sort(json_t *finding)
{
	const json_t *ranks = json_object_get(finding, "ranks");
	size_t n = json_array_size(ranks);
	json_int_t *value = malloc((n + 1) * sizeof(*value));
	json_t *all = json_array();

	for (size_t i = 0; value && i < n; i++)
		value[i] = json_integer_value(json_array_get(ranks, i));
	if (value)
		qsort(value, n, sizeof(*value), by_value);
	for (size_t i = 0; value && i < n; i++)
		if (i == 0 || value[i] != value[i - 1])
			json_array_append_new(all, json_integer(value[i]));
	free(value);
	json_object_set_new(finding, "ranks", all);
}

/* Until all files are read, the ranks are in no order, and some may be there twice: whoever sorted
 * them for each file would take time with the square of the ranks. */
static void ranks_into(json_t *to, const json_t *from)
{
	json_t *all = json_object_get(to, "ranks");

	if (json_array_size(from) && json_is_array(all))
		json_array_extend(all, (json_t *)from);
	else if (json_array_size(from))
		json_object_set_new(to, "ranks", json_copy((json_t *)from));
}

static void sum_into(json_t *to, const json_t *from, const char *key)
{
	json_object_set_new(to, key,
			    json_integer((json_int_t)(number(to, key) + number(from, key))));
}

/* Names the kernels, also in the sentences. */
static void name_kernels(json_t *finding, struct ss_symbol_files *names)
{
	static const char *const sentences[] = {"text", "mend"};

	for (size_t i = 0; i < SITES; i++) {
		json_t *site = json_object_get(finding, sites[i]);
		const char *kernel = text(site, "kernel");
		char *raw = kernel[0] ? strdup(kernel) : NULL;

		if (raw)
			ss_kernel_name_add(names, site);
		for (size_t j = 0; raw && j < 2; j++) {
			const char *is = text(finding, sentences[j]), *at = strstr(is, raw);
			if (at)
				json_object_set_new(finding, sentences[j],
						    json_sprintf("%.*s%s%s", (int)(at - is), is,
								 text(site, "kernel"),
								 at + strlen(raw)));
		}
		free(raw);
	}
}

/* Its call stacks have been taken apart. */
static void finding_add(struct ss_check_report *f, json_t *finding, struct ss_symbol_files *names,
			struct ss_suppressions *s)
{
	char *key;

	if (!text(finding, "fault")[0] || (json_int_t)number(finding, "count") < 1) {
		f->not_read++;
		return;
	}
	if (names)
		name_kernels(finding, names);
	key = key_of(f, finding);
	if (ss_suppressed(s, finding)) {
		f->suppressed++;
		free(key);
		return;
	}
	if (is_possible(finding)) {
		f->possible += number(finding, "count");
	} else if (!is_leak(finding)) {
		f->errors += number(finding, "count");
	} else {
		f->leaked_bytes += number(finding, "size");
		f->leaked_blocks += number(finding, "count");
	}
	json_t *old = find_same(f, key);
	free(key);
	if (old) {
		sum_into(old, finding, "count");
		if (is_leak(old))
			sum_into(old, finding, "size");
		ranks_into(old, json_object_get(finding, "ranks"));
		return;
	}
	f->errors += is_leak(finding);
	f->different += !is_possible(finding);
	json_object_del(finding, "number");
	json_object_set_new(finding, "ranks", json_copy(json_object_get(finding, "ranks")));
	json_array_append(f->findings, finding);
}

/* The lines of one process, as far as they are read. */
struct lines {
	json_t *findings;
	json_t *numbered; /* the same findings, by the number in the process */
	json_t *stacks;   /* places of call stacks, by their number there */
};

/* Adds the findings of a process. `rank`: its own in the job, or NULL. */
static void process_add(struct ss_check_report *f, struct lines *l, json_t *rank,
			struct ss_symbol_files *names, struct ss_suppressions *s)
{
	json_t *ranks = json_array();
	json_t *finding;
	size_t i;

	if (json_is_integer(rank))
		json_array_append(ranks, rank);
	json_array_foreach(l->findings, i, finding)
	{
		json_object_set(finding, "ranks", ranks);
		finding_add(f, finding, names, s);
	}
	json_array_clear(l->findings);
	json_object_clear(l->numbered);
	json_object_clear(l->stacks);
	json_decref(ranks);
}

/* Reads the lines of processes, one after the other; false: they are none. The summary of each is
 * its last line. One that was killed has none. */
static bool read_lines(struct ss_check_report *f, const char *lines, struct ss_symbol_files *names,
		       struct ss_suppressions *s)
{
	struct lines l = {json_array(), json_object(), json_object()};
	char number_text[24];
	size_t damaged = 0, read = 0;
	bool ended = true, begun = strncmp(lines, BEGIN, strlen(BEGIN)) == 0;

	for (const char *line = lines; *line && ended;) {
		size_t length = strcspn(line, "\n");
		json_t *object = json_loadb(line, length, 0, NULL);
		clean(object, false);
		const char *kind = text(object, "kind");

		ended = line[length] == '\n'; /* the last may be cut, where a process was killed */
		line += length + ended;
		read += kind[0] != '\0';
		damaged += !kind[0] && length;
		snprintf(number_text, sizeof(number_text), "%" PRIu64, number(object, "number"));
		if (strcmp(kind, "finding") == 0) {
			stacks_keep(f, object, names, l.stacks);
			json_array_append(l.findings, object);
			json_object_set(l.numbered, number_text, object);
		} else if (strcmp(kind, "count") == 0) {
			json_object_set(json_object_get(l.numbered, number_text), "count",
					json_object_get(object, "count"));
		} else if (strcmp(kind, "summary") == 0) {
			json_array_append(f->processes, object);
			process_add(f, &l, json_object_get(object, "rank"), names, s);
		}
		json_decref(object);
	}
	process_add(f, &l, NULL, names, s);
	f->not_read += read || begun ? damaged : 0;
	json_decref(l.findings);
	json_decref(l.numbered);
	json_decref(l.stacks);
	return read || begun;
}

/* Reads a report, in which everything has its name; false: it is none. */
static bool read_report(struct ss_check_report *f, const char *all, struct ss_suppressions *s)
{
	json_t *root = json_loads(all, 0, NULL);
	clean(root, false);
	const json_t *findings = json_object_get(root, "findings");
	bool is = json_is_array(findings);

	for (size_t i = 0; i < json_array_size(findings); i++) {
		json_t *finding = json_array_get(findings, i);
		stacks_keep(f, finding, NULL, NULL);
		finding_add(f, finding, NULL, s);
	}
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

static bool read_file(struct ss_check_report *f, const char *path, struct ss_symbol_files *names,
		      struct ss_suppressions *s, char *err, size_t size)
{
	FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	char why[256] = "";

	if (!in) {
		snprintf(err, size, "%s: %s", path, strerror(errno));
		return false;
	}
	char *all = read_all(in, why, sizeof(why));
	bool good = all && (read_report(f, all, s) || read_lines(f, all, names, s));
	if (!good)
		snprintf(err, size, "%s: %s", path, why[0] ? why : NOT_FOUND);
	free(all);
	if (in != stdin)
		fclose(in);
	return good;
}

/* Other programs may lay JSON out with other blanks. Regular files only: what is read of a pipe is
 * gone. */
bool ss_is_found(const char *path)
{
	static const char *const starts[] = {"{\"kind\":\"", "{\"findings\":["};
	char begin[64], dense[64] = "";
	int fd = ss_regular_open(path);
	ssize_t got = fd >= 0 ? read(fd, begin, sizeof(begin) - 1) : 0;
	size_t n = 0;

	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; i < got; i++)
		if (!isspace((unsigned char)begin[i]))
			dense[n++] = begin[i];
	return strncmp(dense, starts[0], strlen(starts[0])) == 0 ||
	       strncmp(dense, starts[1], strlen(starts[1])) == 0;
}

bool ss_found_read(struct ss_check_report *f, char *const *paths, struct ss_suppressions *s,
		   char *err, size_t size)
{
	struct ss_symbol_files *names = ss_symbol_files_open(NULL);
	bool good;

	memset(f, 0, sizeof(*f));
	f->findings = json_array();
	f->processes = json_array();
	f->known = json_object();
	f->stacks = json_array();
	f->stack_known = json_object();
	good = names && f->findings && f->processes && f->known && f->stacks && f->stack_known;
	if (!good)
		snprintf(err, size, "out of memory");
	for (; good && paths && *paths; paths++)
		good = read_file(f, *paths, names, s, err, size);
	ss_symbol_files_close(names);
	for (size_t i = 0; good && i < json_array_size(f->findings); i++)
		ranks_sort(json_array_get(f->findings, i));
	if (!good)
		ss_found_finish(f);
	return good;
}

void ss_found_finish(struct ss_check_report *f)
{
	json_decref(f->findings);
	json_decref(f->processes);
	json_decref(f->known);
	json_decref(f->stacks);
	json_decref(f->stack_known);
}
