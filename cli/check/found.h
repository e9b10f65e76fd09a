/* SPDX-License-Identifier: MIT */
/* The findings of the checker in all processes of a run: the files of SOMASHIM_CHECK_FILE, with
 * names for the frames. The findings are JSON objects as shim/check/report.c writes them; frames
 * get "function", "source", "line" and, if the source is a relative path, "folder", where they are
 * known. Findings that are equal, of all processes, are one with the sum of their counts and, in
 * "ranks", the ranks of the job that have it. */
#ifndef SS_CLI_FOUND_H
#define SS_CLI_FOUND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct ss_check_report {
	json_t *findings;  /* an array */
	json_t *processes; /* an array of the summaries */
	/* The call stacks, arrays of frames, by a text of all that they have: no two are equal */
	json_t *stacks;
	/* The place of each finding in the array, by what makes it different */
	json_t *known;
	/* With repetitions, and without; a call stack that leaks is one error */
	uint64_t errors, different;
	uint64_t possible; /* findings that need not be errors, with repetitions */
	uint64_t leaked_bytes, leaked_blocks, suppressed;
	size_t not_read; /* damaged lines of files, and findings that are none */
};

/* Gives a site the array of frames that equal call stacks share. A site that has a number in place
 * of its frames gets those of the site that had both, and so does a stream; `told` is that of
 * one file, and has the site, if it has a number, from now on. */
void ss_site_keep(struct ss_check_report *f, json_t *site, json_t *told);
/* The site that had this number. NULL: there is none. */
json_t *ss_site_of(json_t *number, json_t *told);

/* Reads a line of printable ASCII without a backslash as the JSON library would. NULL: it is no
 * flat object in the form of shim/check/report.c, so the library has to read it. */
json_t *ss_flat_object(const char *line, size_t length);

struct ss_suppressions;

/* Reads a file of suppressions. NULL with a message in `err`. */
struct ss_suppressions *ss_suppressions_read(const char *path, char *err, size_t size);
void ss_suppressions_free(struct ss_suppressions *s);
/* NULL has none. */
bool ss_suppressed(struct ss_suppressions *s, const json_t *finding);
/* Prints which lines of the file have suppressed nothing. */
void ss_suppressions_say_unused(const struct ss_suppressions *s, const char *path);
/* Writes a line for each finding, which suppresses it. False: it could not be written. */
bool ss_suppressions_write(const struct ss_check_report *f, FILE *out);

/* Is it a regular file that begins as one of SOMASHIM_CHECK_FILE, or as a report of ss_found_json()
 * does? */
bool ss_is_found(const char *path);
/* Reads files of SOMASHIM_CHECK_FILE, or reports that ss_found_json() wrote, as one report. `paths`
 * ends with NULL; NULL has none; "-" is standard input. A damaged line is counted and left out.
 * False with a message in `err` if a file is no such file; `f` holds nothing then. */
bool ss_found_read(struct ss_check_report *f, char *const *paths, struct ss_suppressions *s,
		   char *err, size_t size);
void ss_found_finish(struct ss_check_report *f);
/* Of at most `limit` findings; 0: of all. */
void ss_found_text(const struct ss_check_report *f, size_t limit, FILE *out);
/* False: it could not be written, or there is no memory. */
bool ss_found_json(const struct ss_check_report *f, FILE *out);
bool ss_found_sarif(const struct ss_check_report *f, FILE *out);

struct ss_symbol_files;
/* Names the frames of a site. Functions that were inlined get frames of their own; those that call
 * main() are left out. */
void ss_frame_names_add(struct ss_symbol_files *files, json_t *site);
/* Names the kernel of a site that has one. */
void ss_kernel_name_add(struct ss_symbol_files *files, json_t *site);

#endif
