/* SPDX-License-Identifier: MIT */
/*
 * Suppressions: one a line, "FAULT FRAME...". FAULT is a pattern for the name of the fault. Each
 * FRAME is a pattern for a function or for the file name of a module; they have to fit frames of
 * one of the call stacks, in this order, innermost first, with any frames between them. # begins a
 * comment.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check/fields.h"
#include "cli/check/found.h"

#define WORDS_MAX 32

struct rule {
	char *line, *word[WORDS_MAX];
	int words;
	unsigned number; /* of the line */
	bool used;
	struct rule *next;
};

struct ss_suppressions {
	struct rule *rules; /* the last line first */
};

void ss_suppressions_free(struct ss_suppressions *s)
{
	while (s && s->rules) {
		struct rule *r = s->rules;
		s->rules = r->next;
		free(r->line);
		free(r);
	}
	free(s);
}

static bool rule_add(struct ss_suppressions *s, const char *line, unsigned number)
{
	struct rule *r = calloc(1, sizeof(*r));
	char *save = NULL;

	if (!r || !(r->line = strdup(line))) {
		free(r);
		return false;
	}
	r->line[strcspn(r->line, "#\n")] = '\0';
	for (char *w = strtok_r(r->line, " \t\r", &save); w && r->words < WORDS_MAX;
	     w = strtok_r(NULL, " \t\r", &save))
		r->word[r->words++] = w;
	if (r->words == 0) {
		free(r->line);
		free(r);
		return true;
	}
	r->number = number;
	r->next = s->rules;
	s->rules = r;
	return true;
}

struct ss_suppressions *ss_suppressions_read(const char *path, char *err, size_t size)
{
	struct ss_suppressions *s = calloc(1, sizeof(*s));
	FILE *in = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	unsigned number = 0;
	bool good = s && in;

	if (!good)
		snprintf(err, size, "%s: %s", path, strerror(s ? errno : ENOMEM));
	while (good && getline(&line, &room, in) >= 0) {
		good = rule_add(s, line, ++number);
		if (!good)
			snprintf(err, size, "%s: out of memory", path);
	}
	if (good && ferror(in)) { /* a folder can be opened, and not read */
		snprintf(err, size, "%s: %s", path, strerror(errno));
		good = false;
	}
	free(line);
	if (in)
		fclose(in);
	if (!good) {
		ss_suppressions_free(s);
		return NULL;
	}
	return s;
}

static bool frame_fits(const json_t *frame, const char *pattern)
{
	const char *function = json_string_value(json_object_get(frame, "function"));
	const char *module = json_string_value(json_object_get(frame, "module"));
	const char *base = module ? strrchr(module, '/') : NULL;

	return (function && fnmatch(pattern, function, 0) == 0) ||
	       (module && fnmatch(pattern, base ? base + 1 : module, 0) == 0);
}

static bool stack_fits(const struct rule *r, const json_t *site)
{
	const json_t *frames = json_object_get(site, "frames");
	int next = 1;

	for (size_t i = 0; i < json_array_size(frames) && next < r->words; i++)
		next += frame_fits(json_array_get(frames, i), r->word[next]);
	return next == r->words;
}

bool ss_suppressed(struct ss_suppressions *s, const json_t *finding)
{
	const char *fault = json_string_value(json_object_get(finding, "fault"));

	for (struct rule *r = s ? s->rules : NULL; r; r = r->next)
		if (fault && fnmatch(r->word[0], fault, 0) == 0 &&
		    (r->words == 1 || stack_fits(r, json_object_get(finding, "use")) ||
		     stack_fits(r, json_object_get(finding, "other")) ||
		     stack_fits(r, json_object_get(finding, "alloc")) ||
		     stack_fits(r, json_object_get(finding, "free"))))
			return r->used = true;
	return false;
}

static void say_unused(const struct rule *r, const char *path)
{
	if (!r)
		return;
	say_unused(r->next, path);
	if (!r->used)
		fprintf(stderr, "somashim: %s:%u: this suppression fits no finding\n", path,
			r->number);
}

void ss_suppressions_say_unused(const struct ss_suppressions *s, const char *path)
{
	say_unused(s->rules, path);
}

/* ---- lines for findings ------------------------------------------------------- */

#define FRAMES_MOST 8

/* A pattern for a name: blanks divide words, and # begins a comment. */
static void put_pattern(FILE *out, const char *name)
{
	putc(' ', out);
	for (; *name; name++)
		putc(strchr(" \t#*?[\\\r\n", *name) ? '?' : *name, out);
}

bool ss_suppressions_write(const struct ss_check_report *f, FILE *out)
{
	static const char *const sites[] = {"use", "free", "alloc"};

	for (size_t i = 0; i < json_array_size(f->findings); i++) {
		const json_t *finding = json_array_get(f->findings, i), *frames = NULL;

		for (size_t j = 0; j < 3 && !json_array_size(frames); j++)
			frames = json_object_get(json_object_get(finding, sites[j]), "frames");
		fprintf(out, "# %s\n%s", text(finding, "text"), text(finding, "fault"));
		for (size_t j = 0; j < json_array_size(frames) && j < FRAMES_MOST; j++) {
			const char *name = text(json_array_get(frames, j), "function");
			if (name[0])
				put_pattern(out, name);
		}
		putc('\n', out);
	}
	return !ferror(out);
}
