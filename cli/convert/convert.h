/* SPDX-License-Identifier: MIT */
/* Writes a trace in formats that other programs open; each has a file of its own. */
#ifndef SS_CONVERT_CONVERT_H
#define SS_CONVERT_CONVERT_H

#include <stdio.h>

#include "cli/analysis/analysis.h"

/* The figure that folded stacks count. */
enum ss_folded_value {
	SS_FOLDED_PEAK,  /* bytes held at the peak of used memory */
	SS_FOLDED_LEAKS, /* bytes that were never freed */
	SS_FOLDED_TOTAL, /* bytes of all allocations */
};

struct ss_convert_config {
	const char *path, *debug_path;
	int device; /* only this one; -1: all */
	struct ss_part part;
	enum ss_folded_value value;
	void (*progress)(void *arg, double part); /* may be NULL */
	void *arg;
};

/* A conversion that runs. */
struct ss_convert {
	const struct ss_convert_config *config;
	struct ss_trace_reader *reader;
	struct ss_symbol_files *files;
	struct ss_sites sites; /* only if the format wants names */
	struct ss_trace_memory memory;
	struct ss_window window;
	ss_trace_memory_watch *watch; /* of the format, while it walks */
	FILE *out;
	/* "out of memory" of ss_convert(); a format may say more */
	char *err;
	size_t err_size;
	void *state; /* of the format */
};

struct ss_format {
	const char *name, *help;
	bool names;      /* needs the names of functions */
	bool one_device; /* the format knows no devices: one file for each */
	/* Writes to c->out. False: c->err says why; errors of the output stay in the stream. */
	bool (*write)(struct ss_convert *c);
};

extern const struct ss_format ss_formats[]; /* ends with a name of NULL */
const struct ss_format *ss_format_find(const char *name);

/* Converts the file into the file `output`; NULL: standard output. False and a line in `err`. If it
 * is true, `err` is a line on damage in the recording, or "". */
bool ss_convert(const struct ss_format *format, const struct ss_convert_config *config,
		const char *output, char *err, size_t err_size);
/* The devices that the file uses, as a bit for each of the ordinals below 64. False and a line in
 * `err` if it cannot be read. */
bool ss_convert_devices(const char *path, uint64_t *devices, char *err, size_t err_size);

/* ---- for the formats ---------------------------------------------------- */

/* Goes through the events. `before` is called with each event, then `watch` with what it changes on
 * a device that is wanted. Both get the ss_convert as `arg`, and both may be NULL. False: out of
 * memory. */
bool ss_convert_walk(struct ss_convert *c, ss_trace_memory_watch *watch,
		     void (*before)(struct ss_convert *c, const struct ss_trace_item *e));
/* Is that device wanted? */
bool ss_convert_wants(const struct ss_convert *c, int device);
/* The handle of a stream that thread `tid` uses; 0 if it is the null stream or not known. */
uint64_t ss_convert_stream(const struct ss_convert *c, uint32_t stream, uint32_t tid);
/* Writes a string as JSON, with its quotes. */
void ss_convert_json_text(FILE *out, const char *text);

/* The writers of the formats. False: memory was out, or the recording is of no use to the format.
 * The caller finds failed writes (ferror). */
bool ss_convert_folded(struct ss_convert *c);
bool ss_convert_heaptrack(struct ss_convert *c);
bool ss_convert_memory_viz(struct ss_convert *c);
bool ss_convert_perfetto(struct ss_convert *c);
bool ss_convert_rmm(struct ss_convert *c);

#endif
