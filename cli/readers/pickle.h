/* SPDX-License-Identifier: MIT */
/* Python pickles as plain data. Nothing in a pickle is ever executed. */
#ifndef SS_READERS_PICKLE_H
#define SS_READERS_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ss_pickle_type {
	SS_PICKLE_NONE,
	SS_PICKLE_BOOL,
	SS_PICKLE_INT,
	SS_PICKLE_FLOAT,
	SS_PICKLE_STRING,
	SS_PICKLE_LIST,
	SS_PICKLE_DICT,
};

/* A tuple or a set becomes a list, bytes become a string, and an integer that does not fit
 * into 64 bits becomes NONE. */
struct ss_pickle {
	enum ss_pickle_type type;
	union {
		int64_t i;
		double f;
		struct {
			const char *s;
			size_t len;
		};                             /* no 0 at the end */
		struct ss_pickle_items *items; /* a dict holds key, value, key, ... */
	};
};

struct ss_pickle_items {
	struct ss_pickle *v;
	size_t count, space;
	bool seen;                    /* of ss_pickle_first_time() */
	struct ss_pickle_items *next; /* the list of all, for ss_pickle_free() */
};

struct ss_pickle_doc;

/* `data` must stay valid as long as the document. NULL with a message in `err` if it is no
 * pickle, is cut off, or would make Python call anything (a class, a function, an extension). */
struct ss_pickle_doc *ss_pickle_load(const unsigned char *data, size_t size, char *err,
				     size_t err_size);
void ss_pickle_free(struct ss_pickle_doc *doc);
const struct ss_pickle *ss_pickle_root(const struct ss_pickle_doc *doc);

size_t ss_pickle_count(const struct ss_pickle *v); /* 0 if it is not a list */
const struct ss_pickle *ss_pickle_at(const struct ss_pickle *v, size_t i);
/* NULL if it is not a dict, or has no such key. */
const struct ss_pickle *ss_pickle_get(const struct ss_pickle *v, const char *key);
/* Is this list or dict asked about for the first time? A pickle can refer to one object as often as
 * it likes, so work that grows with the product of two lists may look at each object once only. */
bool ss_pickle_first_time(const struct ss_pickle *v);
/* Whether it is that string. */
bool ss_pickle_is(const struct ss_pickle *v, const char *text);

#endif
