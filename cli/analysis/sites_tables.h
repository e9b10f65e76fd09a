/* SPDX-License-Identifier: MIT */
/* The tables of struct ss_sites. Only the files that fill it include this. */
#ifndef SS_ANALYSIS_SITES_TABLES_H
#define SS_ANALYSIS_SITES_TABLES_H

#define HASH_NONFATAL_OOM 1

#include "cli/analysis/sites.h"
#include "core/base/hash_or_end.h"
#include "trace/grow.h"

/* A frame, a site or a name by its contents. Elements are never removed before the end. */
struct ss_sites_entry {
	UT_hash_handle hh;
	uint32_t index;
	char key[] __attribute__((aligned(8)));
};

struct ss_sites_tables {
	struct ss_sites_entry *frames, *sites;
	const struct ss_trace_reader *reader; /* during ss_sites_read() */
	struct ss_symbolizer *names;          /* NULL: without names */
	uint32_t *ids;                        /* of the frames of one stack */
	size_t ids_room;
};

/* Frees the entries and sets the table to NULL. */
void ss_sites_free_entries(struct ss_sites_entry **table);
/* The entry with these contents. It is added with `index` if it is new. NULL: out of memory. */
struct ss_sites_entry *ss_sites_intern(struct ss_sites_entry **table, const void *key, size_t size,
				       size_t index);
/* Makes room for one more element. False: out of memory. */
bool ss_sites_grow(void **at, size_t count, size_t size);

#endif
