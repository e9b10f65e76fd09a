/* SPDX-License-Identifier: MIT */
/* Structures and functions that the files of core/check share. Only they include this file;
 * check->lock guards all of it. */
#ifndef SS_CHECK_STATE_H
#define SS_CHECK_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/base/hash.h"
#include "core/check/check.h"

/* The seen position for each slot of a stream. `wild`: the clock may have seen anything.
 * `unheard`: also work of which the host knows nothing. */
struct clock {
	uint32_t count;
	uint64_t *n;
	bool wild, unheard;
};

struct stream {
	const void *key;
	struct ss_check_stream is;
	uint32_t slot;
	uint64_t n; /* position of its last command */
	struct clock saw;
	uint64_t wild_since; /* check->now when `saw` became wild */
	UT_hash_handle hh;
};

struct event {
	const void *key;
	struct clock clock;
	unsigned recording; /* calls in progress */
	bool overlaps;      /* several calls overlapped, so the last one is unknown */
	bool unknown;       /* an unseen call or process may record it */
	bool forever;
	UT_hash_handle hh;
};

/* The last use of a block on one stream, and the last use that is only possible. */
struct use {
	uint32_t slot;
	bool guess;
	uint64_t n;
	struct ss_check_site site;
};

/* An access that is known to read or to write. */
struct access {
	uint32_t slot;
	bool writes, unsure;
	uint64_t n, origin;
	struct ss_check_rows at; /* offsets from the base of the block; all of it for a kernel */
	struct ss_check_site site;
};

/* A block from its allocation on. A freed block stays until another block takes its addresses. */
struct block {
	uintptr_t start, base, end; /* start and end include padding; start: before the block */
	uint64_t size, number;
	struct ss_check_site alloc, free;
	uint32_t alloc_slot, free_slot;
	uint64_t alloc_n, free_n;
	bool classic, freed;
	bool marked; /* a range of another block that the program's own pool hands out */
	/* filled: the padding before the block, and `behind` bytes of the padding after it */
	bool filled;
	uint64_t behind;
	bool blamed; /* an error of order is known for the block */
	uint32_t fill_slot;
	uint64_t fill_n;
	bool barrier;      /* the free made the host wait */
	bool free_wild;    /* the stream that freed it may have waited for anything */
	uint64_t freed_at; /* check->now */
	uint32_t use_count, use_room;
	struct use *uses;
	uint32_t access_count, access_room;
	struct access *accesses;
	struct block *prev, *next; /* in check->list */
};

/* A finding with the count of equal findings. */
struct counted {
	struct ss_finding f;
	uint64_t key;
	UT_hash_handle hh;
};

struct ss_check {
	struct ss_check_options opt;
	pthread_mutex_t lock;
	struct stream *streams;
	struct event *events;
	struct clock host; /* work that the host may know to have completed */
	/* Work that the host has waited for; the host knows the rest only if it has looked */
	struct clock waited;
	uint64_t *last;  /* the last position of each slot */
	uint32_t *spare; /* slots of streams that have ended */
	uint32_t slots, spares, room;
	uint64_t stream_number, block_number;
	void *blocks; /* a tree of glibc (tsearch) by address; blocks do not overlap */
	void *marked; /* the same of ranges that the program's own pools hand out */
	/* Live and freed blocks; from MARKED on the same of those ranges */
	struct block_list {
		struct block *oldest, *newest;
		uint32_t count;
	} list[4];
	uint32_t wild_frees;  /* number of blocks with free_wild */
	_Atomic uint64_t now; /* counts the moments with which synchronizations are compared */
	bool is_blind;
	struct counted *findings;
	struct gone_pool *gone_pools;
	struct ss_check_counts counts;
};

#define MARKED 2
#define FREED_MAX 65536u /* freed blocks that are remembered */

/* clock.c */
void clock_merge(struct ss_check *c, struct clock *to, const struct clock *from);
void clock_raise(struct ss_check *c, struct clock *to, uint32_t slot, uint64_t n);
void clock_drop(struct clock *k);
/* A stream that is not known yet becomes known. NULL: key is NULL, or host memory is out. */
struct stream *stream_get(struct ss_check *c, const void *key);
/* A command is about to be enqueued, so the stream first joins the streams that precede it. */
void stream_join(struct ss_check *c, struct stream *s);
/* The stream may wait for anything that the host knows of, or may do later; `unheard`: also for
 * what the host does not know of. */
void stream_wild(struct ss_check *c, struct stream *s, bool unheard);
void stream_enqueue(struct ss_check *c, struct stream *s);
/* All work on the stream may have completed. */
void host_saw(struct ss_check *c, struct stream *s);
void host_saw_all(struct ss_check *c);
/* The host has waited for the stream, or (NULL) for all. */
void host_waited(struct ss_check *c, struct stream *s);
/* May position n of the slot come before the next command on s? */
bool may_be_ordered(const struct ss_check *c, const struct stream *s, uint32_t slot, uint64_t n);
/* Does it come before only if the host has looked at the results that it could see? */
bool if_host_looked(const struct ss_check *c, const struct stream *s, uint32_t slot, uint64_t n);
/* Is it among the commands that had not begun when the present call did? Then it comes before the
 * next command on s only if s has seen it. */
bool is_unbegun(const struct ss_check *c, const struct stream *s,
		const struct ss_check_unbegun *unbegun, uint32_t slot, uint64_t n);
/* The site of a call on s, or (NULL) on no stream. */
struct ss_check_site site_of(const struct stream *s, const char *what, uint32_t stack);

/* block.c */
struct block *block_find(struct ss_check *c, const void *ptr);
/* The same, also for bytes before a block that are its padding. */
struct block *block_around(struct ss_check *c, const void *ptr);
/* Is the start of a block after b nearer to the address, which lies in b, than the start of b? */
bool block_behind_is_nearer(struct ss_check *c, const struct block *b, const void *ptr);
void block_forget(struct ss_check *c, struct block *b);
/* Puts it into the list of freed blocks, or of live ones. */
void block_move(struct ss_check *c, struct block *b, bool freed);
void blocks_drop(struct ss_check *c);
void block_describe(const struct block *b, struct ss_finding *f);

struct block *mark_around(struct ss_check *c, const void *ptr);
/* Makes a live range, in place of earlier ranges at its addresses. NULL: host memory is out. */
struct block *mark_new(struct ss_check *c, uintptr_t base, uint64_t size);
void marks_drop(struct ss_check *c, uintptr_t start, uintptr_t end);

/* judge.c */
/* A use of the block that was enqueued on s just now. False: it comes before the allocation. */
bool judge_use(struct ss_check *c, struct block *b, struct stream *s, struct ss_finding *f);
/* A free of the live block, which is enqueued on s now. `unbegun`: of ss_check_free(). */
void free_on(struct ss_check *c, struct block *b, struct stream *s,
	     const struct ss_check_unbegun *unbegun, const char *what, uint32_t stack);

/* finding.c */
void finding_add(struct ss_check *c, struct ss_finding *f);
void leak_add(struct ss_check *c, const struct block *b);
void findings_drop(struct ss_check *c);

/* race.c */
/* A command that was just put on s uses the operand of a live block; f describes the block and the
 * use. */
void race_judge(struct ss_check *c, struct block *b, const struct stream *s,
		const struct ss_check_operand *o, struct ss_finding *f);

/* pool.c */
void pools_drop(struct ss_check *c);

#endif
