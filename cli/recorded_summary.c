/* SPDX-License-Identifier: MIT */
/*
 * The end of `somashim record`: figures of the largest process, and the next command. The file is
 * read once and no frame gets a name, which takes about a second for ten million events.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/trace_memory.h"
#include "cli/plural.h"
#include "cli/recorded_summary.h"
#include "cli/report/report.h"
#include "core/base/utf8.h"

#define BYTES_MOST (256ull << 20) /* of all files: more would take longer than some seconds */
#define FILES_MOST 64
#define NAMED 3 /* files that the command names */

struct figures {
	uint64_t begin_ns, end_ns, allocs, frees, failures;
	uint64_t used_peak, reserved_peak; /* of the device where they are highest */
	uint64_t live, live_blocks;        /* at the end */
	enum ss_trace_end end;
};

static void count(void *arg, enum ss_change change, const struct ss_range *range,
		  const struct ss_trace_item *e)
{
	struct figures *f = arg;

	if (change == SS_CHANGE_ALLOC) {
		f->live += range->size;
		f->live_blocks++;
	} else if (change == SS_CHANGE_FREE) {
		f->live -= range->size;
		f->live_blocks--;
	}
	if (!ss_trace_item_lived(e)) {
		f->allocs += change == SS_CHANGE_ALLOC;
		f->frees += change == SS_CHANGE_FREE;
	}
}

static void raise_peaks(struct figures *f, const struct ss_level *level)
{
	f->used_peak = level->used > f->used_peak ? level->used : f->used_peak;
	f->reserved_peak = level->reserved > f->reserved_peak ? level->reserved : f->reserved_peak;
}

/* A ring starts with events that describe the memory at its beginning. That memory existed at one
 * moment, so peaks count only after the last of these events. */
static bool play(struct ss_trace_reader *r, struct figures *f)
{
	struct ss_sites none = {0};
	struct ss_trace_memory m;
	struct ss_trace_item e;
	bool good = ss_trace_memory_init(&m, r, &none, count, f), lived = false;

	while (good && ss_trace_reader_next(r, &e)) {
		f->begin_ns = f->begin_ns ? f->begin_ns : e.time_ns;
		f->end_ns = e.time_ns > f->end_ns ? e.time_ns : f->end_ns;
		f->failures += e.kind == SS_TRACE_OOM || e.kind == SS_TRACE_LIMIT;
		if (lived && !ss_trace_item_lived(&e))
			for (int i = 0; i < SS_DEVICES; i++)
				raise_peaks(f, &m.device[i]);
		lived = ss_trace_item_lived(&e);
		good = ss_trace_memory_apply(&m, &e);
		if (!lived)
			raise_peaks(f, &m.device[ss_trace_memory_device(&m, &e)]);
	}
	for (int i = 0; good && i < SS_DEVICES; i++)
		raise_peaks(f, &m.device[i]);
	ss_trace_memory_finish(&m);
	return good;
}

/* Reads the files and gives the figures of the largest process. False: there is nothing to
 * print. */
static bool read_figures(char *const *path, size_t count_of, struct figures *most)
{
	uint64_t bytes = 0;
	bool any = false;
	char err[1024];

	if (count_of > FILES_MOST)
		return false;
	for (size_t i = 0; i < count_of; i++) {
		struct ss_trace_reader *r = ss_trace_reader_open(path[i], err, sizeof(err));
		struct figures f = {0};
		if (!r)
			continue;
		bytes += ss_trace_reader_bytes(r);
		bool good = bytes <= BYTES_MOST && play(r, &f);
		f.end = ss_trace_reader_process(r)->end;
		ss_trace_reader_close(r);
		if (!good)
			return false;
		if (!any || f.reserved_peak > most->reserved_peak)
			*most = f;
		any = true;
	}
	return any;
}

static void print_figures(const struct figures *f, bool several)
{
	char used[32], reserved[32], live[32];

	fprintf(stderr,
		"somashim: %s%" PRIu64 " %s and %" PRIu64 " %s in %.1f s; peak %s in use, %s "
		"reserved; ",
		several ? "the largest process: " : "", f->allocs,
		ss_plural(f->allocs, "allocation", "allocations"), f->frees,
		ss_plural(f->frees, "free", "frees"), (double)(f->end_ns - f->begin_ns) / 1e9,
		ss_report_bytes(used, f->used_peak), ss_report_bytes(reserved, f->reserved_peak));
	if (f->live_blocks) {
		fprintf(stderr, "%s %s: %" PRIu64 " %s",
			f->end == SS_TRACE_END_CLOSED ? "never freed" : "live at the end",
			ss_report_bytes(live, f->live), f->live_blocks,
			ss_plural(f->live_blocks, "block", "blocks"));
	} else {
		fprintf(stderr, "all was freed");
	}
	if (f->failures) {
		fprintf(stderr, "; %" PRIu64 " %s failed", f->failures,
			ss_plural(f->failures, "allocation", "allocations"));
	}
	fprintf(stderr, "\n");
}

/* A word for a shell. */
static void print_word(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_./+,:@%-";
	char *clean = strdup(word);

	if (clean)
		ss_utf8_clean(clean);
	word = clean ? clean : "FILE";
	if (word[strspn(word, plain)] == '\0' && *word && *word != '-') {
		fprintf(stderr, " %s", word);
	} else {
		fprintf(stderr, " %s'", *word == '-' ? "./" : "");
		for (; *word; word++)
			*word == '\'' ? fputs("'\\''", stderr) : fputc(*word, stderr);
		fputc('\'', stderr);
	}
	free(clean);
}

void ss_recorded_summary(char *const *path, size_t count_of)
{
	struct figures f;

	if (count_of == 1) {
		fprintf(stderr, "somashim: recorded in %s\n", path[0]);
	} else {
		fprintf(stderr, "somashim: recorded in %zu files, the first one is %s\n", count_of,
			path[0]);
	}
	if (read_figures(path, count_of, &f))
		print_figures(&f, count_of > 1);
	fprintf(stderr, "somashim: who held it: somashim report");
	for (size_t i = 0; i < count_of && i < NAMED; i++)
		print_word(path[i]);
	fprintf(stderr, "%s   (as a page: --output report.html)\n", count_of > NAMED ? " ..." : "");
}
