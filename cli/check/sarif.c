/* SPDX-License-Identifier: MIT */
/* Findings as SARIF 2.1.0, which code hosts show beside the source. */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/check/fields.h"
#include "cli/check/found.h"
#include "core/check/check.h"

static const char *const about[SS_FAULTS] = {
	[SS_FAULT_USE_BEFORE_ALLOC] = "A use of a block is not ordered after its allocation",
	[SS_FAULT_FREE_BEFORE_ALLOC] = "The free of a block is not ordered after its allocation",
	[SS_FAULT_USE_AFTER_FREE] = "A use of a block comes after its free",
	[SS_FAULT_USE_FREE_RACE] = "Nothing orders the use of a block and its free before it",
	[SS_FAULT_FREE_USE_RACE] = "The free of a block is not ordered after a use before it",
	[SS_FAULT_RACE] = "Two commands use the same bytes, one writes, and nothing orders them",
	[SS_FAULT_DOUBLE_FREE] = "A block is freed twice",
	[SS_FAULT_INTERIOR_FREE] = "An address inside a block is freed",
	[SS_FAULT_FOREIGN_FREE] = "An address that no allocation returned is freed",
	[SS_FAULT_WRONG_FREE] = "Memory is freed by the call for another kind of memory",
	[SS_FAULT_DESTROYED_POOL] = "A call names a pool that was destroyed",
	[SS_FAULT_OUT_OF_BOUNDS] = "A copy or a memset leaves its block",
	[SS_FAULT_OVERWRITTEN] = "Bytes around a block were written",
	[SS_FAULT_WRITE_AFTER_FREE] = "Bytes of a freed block were written",
	[SS_FAULT_MEMORY_FAULT] = "The device faulted at an address",
	[SS_FAULT_UNINITIALIZED] = "A copy to the host has what was never written",
	[SS_FAULT_UNUSED] = "A block was freed that was never written",
	[SS_FAULT_API_ERROR] = "A call of HIP has failed",
	[SS_FAULT_LEAK] = "A block is never freed",
};

/* Takes "." and ".." out of an absolute path. */
static void normalize(char *path)
{
	char *to = path;

	for (const char *from = path; *from;) {
		size_t n = strcspn(from + 1, "/");

		if (n == 2 && !strncmp(from + 1, "..", 2)) {
			while (to > path && *--to != '/')
				;
		} else if (n && !(n == 1 && from[1] == '.')) {
			memmove(to, from, n + 1);
			to += n + 1;
		}
		from += n + 1;
	}
	*to = '\0';
}

/* A URI for the path. One that lies in the current folder is relative to it, as code hosts want it
 * of a command that was called in the top folder of the sources. */
static json_t *uri(const char *folder, const char *path)
{
	char whole[2 * PATH_MAX + 2], here[PATH_MAX], out[3 * sizeof(whole) + 8], *to = out;
	size_t length = getcwd(here, sizeof(here)) ? strlen(here) : 0;
	const char *from = path;

	if (strlen(path) < PATH_MAX && strlen(folder) < PATH_MAX &&
	    (folder[0] == '/' || path[0] == '/')) {
		snprintf(whole, sizeof(whole), "%s%s%s", path[0] == '/' ? "" : folder,
			 path[0] == '/' ? "" : "/", path);
		normalize(whole);
		from = whole;
		if (length && !strncmp(whole, here, length) && whole[length] == '/')
			from += length + 1;
		else
			to = stpcpy(out, "file://");
	}
	for (; *from && to < out + sizeof(out) - 4; from++)
		if (isascii(*from) && (isalnum(*from) || strchr("/-._~+", *from)))
			*to++ = *from;
		else
			to += sprintf(to, "%%%02X", (unsigned char)*from);
	return json_stringn(out, (size_t)(to - out));
}

static json_t *location(const json_t *frame)
{
	const char *folder = json_string_value(json_object_get(frame, "folder"));
	const char *source = json_string_value(json_object_get(frame, "source"));
	const char *function = json_string_value(json_object_get(frame, "function"));
	const char *module = json_string_value(json_object_get(frame, "module"));
	json_int_t line = json_integer_value(json_object_get(frame, "line"));
	json_t *l = json_object(), *physical;

	if (source && line > 0) {
		physical = json_pack("{s:{s:o}, s:{s:I}}", "artifactLocation", "uri",
				     uri(folder ? folder : "", source), "region", "startLine",
				     line);
	} else {
		physical = json_pack("{s:{s:o}}", "artifactLocation", "uri",
				     uri("", module ? module : "unknown"));
	}
	json_object_set_new(l, "physicalLocation", physical);
	if (function) {
		json_object_set_new(
			l, "logicalLocations",
			json_pack("[{s:s, s:s}]", "name", function, "kind", "function"));
	}
	return l;
}

static json_t *stack(const char *what, const json_t *site)
{
	const json_t *frames = json_object_get(site, "frames");
	json_t *list = json_array();

	for (size_t i = 0; i < json_array_size(frames); i++) {
		json_array_append_new(
			list, json_pack("{s:o}", "location", location(json_array_get(frames, i))));
	}
	return json_pack("{s:{s:s}, s:o}", "message", "text", what, "frames", list);
}

/* Is the frame the program's, or of a library of its own? */
static bool is_own(const json_t *frame)
{
	static const char *const system[] = {"/lib/",    "/lib32/",       "/lib64/",
					     "/usr/lib", "/usr/include/", "/opt/rocm"};
	static const char *const keys[] = {"module", "source"};

	for (size_t i = 0; i < sizeof(system) / sizeof(system[0]); i++)
		for (size_t j = 0; j < 2; j++)
			if (strncmp(text(frame, keys[j]), system[i], strlen(system[i])) == 0)
				return false;
	return true;
}

/* The innermost frame of the program whose source is known; else its innermost; else the
 * innermost. */
static const json_t *best_frame(const json_t *finding)
{
	static const char *const order[] = {"use", "free", "alloc"};
	const json_t *first = NULL, *own = NULL;

	for (size_t i = 0; i < 3; i++) {
		const json_t *frames = json_object_get(json_object_get(finding, order[i]),
						       "frames");
		for (size_t j = 0; j < json_array_size(frames); j++) {
			const json_t *frame = json_array_get(frames, j);
			if (json_object_get(frame, "source") && is_own(frame))
				return frame;
			if (!own && is_own(frame))
				own = frame;
			first = first ? first : frame;
		}
	}
	return own ? own : first;
}

static json_t *result(const json_t *finding)
{
	static const char *const names[][2] = {
		{"use", "used"}, {"other", "also used"}, {"alloc", "allocated"}, {"free", "freed"}};
	const char *what = text(finding, "text"), *mend = text(finding, "mend");
	json_t *stacks = json_array(), *locations = json_array();
	const json_t *frame = best_frame(finding);
	char message[2048];

	snprintf(message, sizeof(message), "%s.%s%s", what, mend[0] ? " " : "", mend);
	if (frame)
		json_array_append_new(locations, location(frame));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const json_t *site = json_object_get(finding, names[i][0]);
		if (site)
			json_array_append_new(stacks, stack(names[i][1], site));
	}
	return json_pack(
		"{s:O, s:s, s:{s:s}, s:O, s:o, s:o}", "ruleId", json_object_get(finding, "fault"),
		"level", json_is_true(json_object_get(finding, "possible")) ? "note" : "error",
		"message", "text", message, "occurrenceCount", json_object_get(finding, "count"),
		"locations", locations, "stacks", stacks);
}

bool ss_found_sarif(const struct ss_check_report *f, FILE *out)
{
	json_t *results = json_array(), *rules = json_array(), *root;

	for (int i = 0; i < SS_FAULTS; i++) {
		json_array_append_new(rules, json_pack("{s:s, s:{s:s}}", "id",
						       ss_fault_name((enum ss_fault)i),
						       "shortDescription", "text", about[i]));
	}
	for (size_t i = 0; i < json_array_size(f->findings); i++)
		json_array_append_new(results, result(json_array_get(f->findings, i)));
	root = json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:o}}, s:o}]}", "$schema",
			 "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0",
			 "runs", "tool", "driver", "name", "somashim check", "version",
			 SOMASHIM_VERSION, "rules", rules, "results", results);
	bool good = root && json_dumpf(root, out, JSON_INDENT(1)) == 0;
	json_decref(root);
	return good;
}
