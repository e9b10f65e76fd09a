/* SPDX-License-Identifier: MIT */
/* Names of call sites. A name has as many frames as it takes to tell the site from all others. */
#include <string.h>

#include "cli/report/report.h"

#define FEWEST 3   /* frames of a name, if the stack has as many */
#define MOST 12    /* frames before those in the middle are left out */
#define LONGEST 32 /* characters of template or function arguments that are not shortened */
#define KEPT 12    /* characters at both ends of shortened arguments */

struct text {
	char *at;
	size_t left;
};

static void put(struct text *t, const char *from, size_t length)
{
	length = length < t->left ? length : t->left;
	memcpy(t->at, from, length);
	t->at += length;
	t->left -= length;
	*t->at = '\0';
}

static void put_all(struct text *t, const char *from)
{
	put(t, from, strlen(from));
}

/* The end of the brackets that open at `from`; NULL if they do not close. The signs of an operator
 * are not brackets. */
static const char *closing(const char *from)
{
	int depth = 0;

	for (const char *s = from; *s; s++) {
		if (*s == '<' || *s == '(') {
			depth++;
		} else if ((*s == '>' && s[-1] != '-') || *s == ')') {
			if (--depth == 0)
				return s;
		}
	}
	return NULL;
}

static size_t operator_length(const char *s)
{
	static const char word[] = "operator";
	size_t n = sizeof(word) - 1;

	return strncmp(s, word, n) == 0 ? n + strspn(s + n, "<>=-(") : 0;
}

const char *ss_report_function(const char *name, char *out, size_t size)
{
	struct text t = {out, size - 1};

	*out = '\0';
	for (const char *s = name; *s;) {
		size_t sign = operator_length(s);
		const char *end = !sign && (*s == '<' || *s == '(') ? closing(s) : NULL;

		if (sign) {
			put(&t, s, sign);
			s += sign;
		} else if (end && end - s > LONGEST) {
			put(&t, s, 1 + KEPT);
			put_all(&t, "...");
			put(&t, end - KEPT, KEPT + 1);
			s = end + 1;
		} else {
			put(&t, s, end ? (size_t)(end - s) + 1 : 1);
			s = end ? end + 1 : s + 1;
		}
	}
	return out;
}

static void put_frame(struct text *t, const struct ss_frame *f, const struct ss_frame *beside)
{
	char name[512], other[512], line[16] = "";

	ss_report_function(f->function, name, sizeof(name));
	/* Arguments that tell two call sites apart are not shortened. */
	if (beside && beside != f && beside->line == f->line &&
	    strcmp(beside->source, f->source) == 0 &&
	    strcmp(ss_report_function(beside->function, other, sizeof(other)), name) == 0)
		put_all(t, f->function);
	else
		put_all(t, name);
	if (f->source[0]) {
		snprintf(line, sizeof(line), f->line ? ":%d)" : ")", f->line);
		put_all(t, " (");
		put_all(t, ss_frame_file(f));
		put_all(t, line);
	}
}

/* How often the frame at `i` follows itself: a function that calls itself. */
static uint32_t repeated(const struct ss_site *site, uint32_t i)
{
	uint32_t n = 1;

	while (i + n < site->frames && site->frame[i + n] == site->frame[i])
		n++;
	return n;
}

const char *ss_report_site_name(const struct ss_sites *s, uint32_t index, char *out, size_t size)
{
	const struct ss_site *site = &s->site[index];
	struct text t = {out, size - 1};
	char times[32];
	uint32_t n, shown = 0;

	*out = '\0';
	if (!site->frames)
		put_all(&t, "(call stack not known)");
	for (uint32_t i = 0; i < site->frames && (shown < FEWEST || i <= site->shared);
	     i += n, shown++) {
		if (shown == MOST && i < site->shared && site->shared < site->frames) {
			i = site->shared;
			put_all(&t, " < ...");
		}
		n = repeated(site, i);
		put_all(&t, i ? " < " : "");
		if (s->by != SS_BY_SITE) {
			put_all(&t, ss_site_frame(s, site, i)->function);
			continue;
		}
		put_frame(&t, ss_site_frame(s, site, i),
			  i + n > site->shared ?
				  ss_site_frame(s, &s->site[site->beside], site->shared) :
				  NULL);
		if (n > 1) {
			snprintf(times, sizeof(times), " %u times", n);
			put_all(&t, times);
		}
	}
	return out;
}
