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
#define LINKER_NAME "linker_name" /* of a site, while its file is read */
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

/* Can a line of JSON have no text that clean() would change? Such a text has a byte that is no
 * printable ASCII, or an escape. */
static bool is_plain(const char *line, size_t length)
{
	bool plain = true;

	for (size_t i = 0; i < length; i++)
		plain &= line[i] >= ' ' && line[i] < 0x7f && line[i] != '\\';
	return plain;
}

/* Names a kernel. The site, which `told` gets, keeps the linker's name for the sentences. */
static void name_kernel(json_t *site, struct ss_symbol_files *names, json_t *told)
{
	char key[32];

	if (!text(site, "kernel")[0])
		return;
	snprintf(key, sizeof(key), "kernel %p", (void *)site);
	json_object_set(told, key, site);
	json_object_set(site, LINKER_NAME, json_object_get(site, "kernel"));
	ss_kernel_name_add(names, site);
}

/* Names the frames and the kernel of a site that is told for the first time. */
static void site_keep(struct ss_check_report *f, json_t *site, struct ss_symbol_files *names,
		      json_t *told)
{
	if (json_object_get(site, "frames")) {
		if (names)
			ss_frame_names_add(names, site);
		clean(json_object_get(site, "frames"), true);
	}
	json_object_del(site, LINKER_NAME);
	if (names)
		name_kernel(site, names, told);
	ss_site_keep(f, site, told);
}

/* The sites of a finding get all that is known of them; a number becomes its site. */
static void sites_keep(struct ss_check_report *f, json_t *finding, struct ss_symbol_files *names,
		       json_t *told)
{
	for (size_t i = 0; i < SITES; i++) {
		json_t *site = json_object_get(finding, sites[i]);

		if (json_is_object(site)) {
			site_keep(f, site, names, told);
		} else if (site) {
			json_t *known = json_is_integer(site) ? ss_site_of(site, told) : NULL;
			known ? json_object_set(finding, sites[i], known) :
				json_object_del(finding, sites[i]);
		}
	}
}

/* A text that is the same for findings where the same calls of the same places are wrong in the
 * same way. Their call stacks are the same arrays. The caller frees the text. NULL: out of
 * memory. */
static char *key_of(const json_t *finding)
{
	size_t size = 64 + strlen(text(finding, "fault")) + strlen(text(finding, "error")), length;
	char *key;

	for (size_t i = 0; i < SITES; i++) {
		const json_t *site = json_object_get(finding, sites[i]);
		size += 48 + strlen(text(site, "call")) + strlen(text(site, "kernel"));
	}
	key = malloc(size);
	if (!key)
		return NULL;
	length = (size_t)sprintf(key, "%s\n%d %s", text(finding, "fault"), is_possible(finding),
				 text(finding, "error"));
	for (size_t i = 0; i < SITES; i++) {
		const json_t *site = json_object_get(finding, sites[i]);
		if (!site)
			continue;
		length += (size_t)sprintf(key + length, "\n%zu %p %s\n%s", i,
					  (void *)json_object_get(site, "frames"),
					  text(site, "call"), text(site, "kernel"));
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
	json_int_t *value;
	json_t *all;

	if (n < 2)
		return;
	value = malloc(n * sizeof(*value));
	all = json_array();
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
 * them for each file would take time with the square of the ranks. All findings of a process begin
 * with one array, so the first addition makes a copy. */
static void ranks_into(json_t *to, const json_t *from)
{
	json_t *all = json_object_get(to, "ranks");

	if (!json_array_size(from))
		return;
	if (!all || all->refcount > 1) {
		json_object_set_new(to, "ranks", json_copy(all));
		all = json_object_get(to, "ranks");
	}
	json_array_extend(all, (json_t *)from);
}

static void sum_into(json_t *to, const json_t *from, const char *key)
{
	json_object_set_new(to, key,
			    json_integer((json_int_t)(number(to, key) + number(from, key))));
}

/* Names the kernels in the sentences. */
static void name_in_sentences(json_t *finding)
{
	static const char *const sentences[] = {"text", "mend"};

	for (size_t i = 0; i < SITES; i++) {
		const json_t *site = json_object_get(finding, sites[i]);
		const char *raw = site ? text(site, LINKER_NAME) : "";

		for (size_t j = 0; raw[0] && j < 2; j++) {
			const char *is = text(finding, sentences[j]), *at = strstr(is, raw);
			if (at)
				json_object_set_new(finding, sentences[j],
						    json_sprintf("%.*s%s%s", (int)(at - is), is,
								 text(site, "kernel"),
								 at + strlen(raw)));
		}
	}
}

/* Its sites are complete. */
static void finding_add(struct ss_check_report *f, json_t *finding, struct ss_suppressions *s)
{
	bool possible = is_possible(finding), leak = is_leak(finding);
	uint64_t count = number(finding, "count");
	char *key;

	if (!text(finding, "fault")[0] || (json_int_t)count < 1) {
		f->not_read++;
		return;
	}
	name_in_sentences(finding);
	key = key_of(finding);
	if (ss_suppressed(s, finding)) {
		f->suppressed++;
		free(key);
		return;
	}
	if (possible) {
		f->possible += count;
	} else if (!leak) {
		f->errors += count;
	} else {
		f->leaked_bytes += number(finding, "size");
		f->leaked_blocks += count;
	}
	json_t *old = find_same(f, key);
	free(key);
	if (old) {
		sum_into(old, finding, "count");
		if (leak)
			sum_into(old, finding, "size");
		ranks_into(old, json_object_get(finding, "ranks"));
		return;
	}
	f->errors += leak;
	f->different += !possible;
	json_object_del(finding, "number");
	if (!json_is_array(json_object_get(finding, "ranks")))
		json_object_set_new(finding, "ranks", json_array());
	json_array_append(f->findings, finding);
}

/* The lines of one process, as far as they are read. */
struct lines {
	json_t *findings;
	/* The same findings, by the number in the process: the first `indexed` of them */
	json_t *numbered;
	size_t indexed;
	json_t *told; /* sites, call stacks and streams, by their number there */
};

/* The finding with this number. NULL: there is none. */
static json_t *finding_of(struct lines *l, uint64_t wanted)
{
	char key[24];

	for (; l->indexed < json_array_size(l->findings); l->indexed++) {
		json_t *finding = json_array_get(l->findings, l->indexed);
		snprintf(key, sizeof(key), "%" PRIu64, number(finding, "number"));
		json_object_set(l->numbered, key, finding);
	}
	snprintf(key, sizeof(key), "%" PRIu64, wanted);
	return json_object_get(l->numbered, key);
}

/* Adds the findings of a process. `rank`: its own in the job, or NULL. */
static void process_add(struct ss_check_report *f, struct lines *l, json_t *rank,
			struct ss_suppressions *s)
{
	json_t *ranks = json_array();
	json_t *finding, *told;
	const char *key;
	size_t i;

	if (json_is_integer(rank))
		json_array_append(ranks, rank);
	json_array_foreach(l->findings, i, finding)
	{
		json_object_set(finding, "ranks", ranks);
		finding_add(f, finding, s);
	}
	json_object_foreach(l->told, key, told) json_object_del(told, LINKER_NAME);
	json_array_clear(l->findings);
	json_object_clear(l->numbered);
	l->indexed = 0;
	json_object_clear(l->told);
	json_decref(ranks);
}

/* Reads the lines of processes, one after the other; false: they are none. The summary of each is
 * its last line. One that was killed has none. */
static bool read_lines(struct ss_check_report *f, const char *lines, struct ss_symbol_files *names,
		       struct ss_suppressions *s)
{
	struct lines l = {
		.findings = json_array(), .numbered = json_object(), .told = json_object()};
	size_t damaged = 0, read = 0;
	bool ended = true, begun = strncmp(lines, BEGIN, strlen(BEGIN)) == 0;

	for (const char *line = lines; *line && ended;) {
		size_t length = strcspn(line, "\n");
		const bool plain = is_plain(line, length);
		json_t *object = plain ? ss_flat_object(line, length) : NULL;
		if (!object)
			object = json_loadb(line, length, 0, NULL);
		if (!plain)
			clean(object, false);
		const char *kind = text(object, "kind");

		ended = line[length] == '\n'; /* the last may be cut, where a process was killed */
		line += length + ended;
		read += kind[0] != '\0';
		damaged += !kind[0] && length;
		if (strcmp(kind, "finding") == 0) {
			sites_keep(f, object, names, l.told);
			json_array_append(l.findings, object);
		} else if (strcmp(kind, "count") == 0) {
			json_object_set(finding_of(&l, number(object, "number")), "count",
					json_object_get(object, "count"));
		} else if (strcmp(kind, "summary") == 0) {
			json_array_append(f->processes, object);
			process_add(f, &l, json_object_get(object, "rank"), s);
		}
		json_decref(object);
	}
	process_add(f, &l, NULL, s);
	f->not_read += read || begun ? damaged : 0;
	json_decref(l.findings);
	json_decref(l.numbered);
	json_decref(l.told);
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
		sites_keep(f, finding, NULL, NULL);
		finding_add(f, finding, s);
	}
	if (is) {
		json_array_extend(f->processes, json_object_get(root, "processes"));
		f->suppressed += number(root, "suppressed");
		f->not_read += number(root, "not_read");
	}
	json_decref(root);
	return is;
}

/* The contents of the file, up to the first byte that is 0: JSON has none. It is read once, since
 * it may be a pipe, and not at all if it cannot be JSON, since it may have no end. NULL with a
 * message. */
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
	f->stacks = json_object();
	good = names && f->findings && f->processes && f->known && f->stacks;
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
}
