/* SPDX-License-Identifier: MIT */
/* Reads the files that the processes of a run wrote, and prints them as text and JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check/found.h"
#include "cli/plural.h"

#define LINE "========= "

static uint64_t number(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "";
}

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

static void read_lines(struct ss_check_report *f, FILE *in, struct ss_frame_names *names,
		       const struct ss_suppressions *s)
{
	json_t *findings = json_array(), *ranks = json_array();
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, in) >= 0) {
		json_t *object = json_loads(line, 0, NULL); /* a last line may be cut */
		if (strcmp(text(object, "kind"), "finding") == 0)
			json_array_append(findings, object);
		else if (strcmp(text(object, "kind"), "count") == 0)
			json_object_set(finding_of(findings, number(object, "number")), "count",
					json_object_get(object, "count"));
		else if (strcmp(text(object, "kind"), "summary") == 0)
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
	json_decref(findings);
	json_decref(ranks);
	free(line);
}

/* Reads a report; false: it is none. */
static bool read_report(struct ss_check_report *f, FILE *in, struct ss_frame_names *names,
			const struct ss_suppressions *s)
{
	json_t *root = json_loadf(in, JSON_DISABLE_EOF_CHECK, NULL);
	const json_t *findings = json_object_get(root, "findings");
	bool is = json_is_array(findings);

	for (size_t i = 0; i < json_array_size(findings); i++)
		finding_add(f, json_array_get(findings, i), names, s);
	if (is) {
		json_array_extend(f->processes, json_object_get(root, "processes"));
		f->suppressed += number(root, "suppressed");
	}
	json_decref(root);
	return is;
}

static bool read_file(struct ss_check_report *f, const char *path, struct ss_frame_names *names,
		      const struct ss_suppressions *s)
{
	FILE *in = fopen(path, "re");

	if (!in)
		return false;
	if (!read_report(f, in, names, s)) {
		rewind(in);
		read_lines(f, in, names, s);
	}
	return fclose(in) == 0;
}

bool ss_is_found(const char *path)
{
	static const char *const starts[] = {"{\"kind\": \"", "{\n \"findings\": ["};
	char begin[32] = "";
	FILE *in = fopen(path, "re");
	size_t got = in ? fread(begin, 1, sizeof(begin) - 1, in) : 0;

	if (in)
		fclose(in);
	return (got && strncmp(begin, starts[0], strlen(starts[0])) == 0) ||
	       (got && strncmp(begin, starts[1], strlen(starts[1])) == 0);
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
	for (; good && paths && *paths; paths++) {
		good = read_file(f, *paths, names, s);
		if (!good)
			snprintf(err, size, "%s: %s", *paths, strerror(errno));
	}
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

/* ---- text ---------------------------------------------------------------- */

static void put_frames(FILE *out, const json_t *site)
{
	const json_t *frames = json_object_get(site, "frames");

	for (size_t i = 0; i < json_array_size(frames); i++) {
		const json_t *frame = json_array_get(frames, i);
		fprintf(out, LINE "        Host Frame: %s [0x%" PRIx64 "] in %s",
			text(frame, "function"), number(frame, "offset"), text(frame, "module"));
		if (text(frame, "source")[0]) {
			fprintf(out, " (%s:%" PRIu64 ")", text(frame, "source"),
				number(frame, "line"));
		}
		fputc('\n', out);
	}
}

static void put_site(FILE *out, const char *did, const json_t *site)
{
	const json_t *stream = json_object_get(site, "stream");

	if (!site)
		return;
	fprintf(out, LINE "    %s by %s", did, text(site, "call"));
	if (stream && strcmp(text(stream, "kind"), "null") == 0) {
		fprintf(out, " on the null stream of device %" PRIu64, number(stream, "device"));
	} else if (stream) {
		fprintf(out, " on stream %" PRIu64 " (0x%" PRIx64 ", %s, device %" PRIu64 ")",
			number(stream, "number"), number(stream, "handle"), text(stream, "kind"),
			number(stream, "device"));
	}
	fputc('\n', out);
	put_frames(out, site);
}

static void put_ranks(FILE *out, const json_t *ranks)
{
	size_t count = json_array_size(ranks);

	if (count)
		fprintf(out, LINE "    In %s ", ss_plural(count, "rank", "ranks"));
	for (size_t i = 0; i < count; i++)
		fprintf(out, "%" JSON_INTEGER_FORMAT "%s",
			json_integer_value(json_array_get(ranks, i)), i + 1 < count ? ", " : "\n");
}

static void put_finding(FILE *out, const json_t *f)
{
	uint64_t address = number(f, "address"), base = number(f, "base");

	fprintf(out, LINE "%s\n", text(f, "text"));
	if (strcmp(text(f, "fault"), "leak") != 0) {
		if (number(f, "block") != 0) {
			fprintf(out,
				LINE "    Address 0x%" PRIx64 " is at offset %" PRId64
				     " of block %" PRIu64 " of %" PRIu64 " %s at 0x%" PRIx64 "\n",
				address ? address : base, address ? (int64_t)(address - base) : 0,
				number(f, "block"), number(f, "size"),
				ss_plural(number(f, "size"), "byte", "bytes"), base);
		} else {
			fprintf(out, LINE "    Address 0x%" PRIx64 "\n", address);
		}
		if (number(f, "count") > 1)
			fprintf(out, LINE "    Seen %" PRIu64 " times\n", number(f, "count"));
	}
	put_ranks(out, json_object_get(f, "ranks"));
	put_site(out, text(f, "did")[0] ? text(f, "did") : "Used", json_object_get(f, "use"));
	put_site(out, "Allocated", json_object_get(f, "alloc"));
	put_site(out, "Freed", json_object_get(f, "free"));
	if (text(f, "mend")[0])
		fprintf(out, LINE "    %s\n", text(f, "mend"));
	fprintf(out, LINE "\n");
}

static uint64_t sum(const struct ss_check_report *f, const char *key)
{
	uint64_t n = 0;

	for (size_t i = 0; i < json_array_size(f->processes); i++)
		n += number(json_array_get(f->processes, i), key);
	return n;
}

void ss_found_text(const struct ss_check_report *f, FILE *out)
{
	const size_t processes = json_array_size(f->processes);
	const uint64_t checked = sum(f, "checked"), kernels = sum(f, "unknown_kernels");
	const uint64_t graphs = sum(f, "unknown_graphs"), blocks = sum(f, "not_compared");

	fprintf(out, LINE "SOMASHIM CHECK\n");
	for (size_t i = 0; i < json_array_size(f->findings); i++)
		put_finding(out, json_array_get(f->findings, i));
	if (f->leaked_blocks) {
		fprintf(out, LINE "LEAK SUMMARY: %" PRIu64 " %s leaked in %" PRIu64 " %s\n",
			f->leaked_bytes, ss_plural(f->leaked_bytes, "byte", "bytes"),
			f->leaked_blocks, ss_plural(f->leaked_blocks, "allocation", "allocations"));
	}
	fprintf(out,
		LINE "CHECKED: %" PRIu64 " %s in %zu %s. NOT CHECKED: %" PRIu64
		     " whose order is not known, %" PRIu64
		     " after a call that went past somashim, %" PRIu64 " kernel %s and %" PRIu64
		     " graph %s whose pointers are not known, and the bytes of %" PRIu64 " %s\n",
		checked, ss_plural(checked, "use or free", "uses and frees"), processes,
		ss_plural(processes, "process", "processes"), sum(f, "unknown_order"),
		sum(f, "bypassed"), kernels, ss_plural(kernels, "launch", "launches"), graphs,
		ss_plural(graphs, "launch", "launches"), blocks,
		ss_plural(blocks, "block", "blocks"));
	if (f->suppressed)
		fprintf(out, LINE "SUPPRESSED: %" PRIu64 " %s\n", f->suppressed,
			ss_plural(f->suppressed, "finding", "findings"));
	fprintf(out, LINE "ERROR SUMMARY: %" PRIu64 " %s", f->errors,
		ss_plural(f->errors, "error", "errors"));
	if (f->different != f->errors)
		fprintf(out, ", %" PRIu64 " of them different", f->different);
	fputc('\n', out);
}

bool ss_found_json(const struct ss_check_report *f, const char *path)
{
	json_t *root = json_pack("{s:O, s:O, s:I, s:I, s:I, s:I}", "findings", f->findings,
				 "processes", f->processes, "errors", (json_int_t)f->errors,
				 "different", (json_int_t)f->different, "leaked_bytes",
				 (json_int_t)f->leaked_bytes, "suppressed",
				 (json_int_t)f->suppressed);
	bool good = root &&
		    (strcmp(path, "-") == 0 ?
			     json_dumpf(root, stdout, JSON_INDENT(1)) == 0 && putchar('\n') != EOF :
			     json_dump_file(root, path, JSON_INDENT(1)) == 0);

	json_decref(root);
	return good;
}
