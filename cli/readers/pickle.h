/* SPDX-License-Identifier: MIT */
/* Python pickles as plain data. Nothing in a pickle is ever executed. */
#ifndef SS_CLI_PICKLE_H
#define SS_CLI_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ss_pickle_type {
	SS_PICKLE_NONE, SS_PICKLE_BOOL, SS_PICKLE_INT, SS_PICKLE_FLOAT,
	SS_PICKLE_STRING, SS_PICKLE_LIST, SS_PICKLE_DICT,
};

/* A tuple or set is a list, bytes are a string, a long beyond 64 bits is NONE. */
struct ss_pickle {
	enum ss_pickle_type type;
	union {
		int64_t i;
		double f;
		struct { const char *s; size_t len; }; /* not terminated */
		struct ss_pickle_items *items; /* a dict holds key, value, key, ... */
	};
};

struct ss_pickle_items {
	struct ss_pickle *v;
	size_t count, space;
	struct ss_pickle_items *next; /* of all that were made */
};

struct ss_pickle_doc;

/* `data` must stay. NULL and a message in `err` if it is not a pickle, cut off,
 * or would make Python call anything (a class, a function, an extension). */
struct ss_pickle_doc *ss_pickle_load(const unsigned char *data, size_t size, char *err,
				     size_t err_size);
void ss_pickle_free(struct ss_pickle_doc *doc);
const struct ss_pickle *ss_pickle_root(const struct ss_pickle_doc *doc);

size_t ss_pickle_count(const struct ss_pickle *v); /* 0 unless a list */
const struct ss_pickle *ss_pickle_at(const struct ss_pickle *v, size_t i);
/* NULL unless a dict with that key. */
const struct ss_pickle *ss_pickle_get(const struct ss_pickle *v, const char *key);
bool ss_pickle_is(const struct ss_pickle *v, const char *text);

#endif
