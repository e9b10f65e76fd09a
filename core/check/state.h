/* SPDX-License-Identifier: MIT */
/* What the files of core/check share. Only they include it; all of it is guarded by check->lock. */
#ifndef SS_CHECK_STATE_H
#define SS_CHECK_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/base/hash.h"
#include "core/check/check.h"

/* For each slot of a stream the position that is seen. `wild`: it may have seen anything. */
struct clock {
	uint32_t count;
	uint64_t *n;
	bool wild;
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
	bool overlaps;      /* several were at once, so it is not known which one is the last */
	bool unknown;       /* recorded by what is not seen */
	bool forever;
	UT_hash_handle hh;
};

/* The last use of a block on one stream; of those that need be none the last, too. */
struct use {
	uint32_t slot;
	bool guess;
	uint64_t n;
	struct ss_check_site site;
};

/* An access of which it is known whether it writes. */
struct access {
	uint32_t slot;
	bool writes, unsure;
	uint64_t n, origin;
	struct ss_check_rows at; /* from the base of the block on; of a kernel all of it */
	struct ss_check_site site;
};

/* A block from its allocation on. After its free it stays until its addresses are another
 * block's. */
struct block {
	uintptr_t start, base, end; /* with padding; start: in front of it */
	uint64_t size, number;
	struct ss_check_site alloc, free;
	uint32_t alloc_slot, free_slot;
	uint64_t alloc_n, free_n;
	bool classic, freed;
	bool marked; /* a range of another block that the program's own pool hands out */
	bool filled; /* its padding in front, and `behind` bytes of that behind it */
	uint64_t behind;
	bool blamed; /* an error of order is known of it */
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

/* A finding of which equal ones are counted. */
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
	struct clock host;   /* what the host may know to have ended */
	struct clock waited; /* what it has waited for; the rest it knows if it has looked */
	uint64_t *last;      /* the last position of each slot */
	uint32_t *spare;     /* slots of streams that have ended */
	uint32_t slots, spares, room;
	uint64_t stream_number, block_number;
	void *blocks; /* a tree of glibc (tsearch) by address; blocks do not overlap */
	void *marked; /* the same of ranges that the program's own pools hand out */
	/* Live and freed blocks; from MARKED on the same of those ranges */
	struct block_list {
		struct block *oldest, *newest;
		uint32_t count;
	} list[4];
	uint32_t wild_frees;  /* how many are free_wild */
	_Atomic uint64_t now; /* counts what synchronizations have to be compared with */
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
/* One that is not known yet becomes known. NULL: key is NULL, or host memory is out. */
struct stream *stream_get(struct ss_check *c, const void *key);
/* A command is about to be enqueued, so what the stream joins comes first. */
void stream_join(struct ss_check *c, struct stream *s);
/* It may wait for anything. */
void stream_wild(struct ss_check *c, struct stream *s);
void stream_enqueue(struct ss_check *c, struct stream *s);
/* Everything on the stream may have ended. */
void host_saw(struct ss_check *c, struct stream *s);
void host_saw_all(struct ss_check *c);
/* The host has waited for the stream, or (NULL) for all. */
void host_waited(struct ss_check *c, struct stream *s);
/* May position n of the slot come before the next command on s? */
bool may_be_ordered(const struct ss_check *c, const struct stream *s, uint32_t slot, uint64_t n);
/* Does it only if the host has looked at what it was told? */
bool if_host_looked(const struct ss_check *c, const struct stream *s, uint32_t slot, uint64_t n);
/* A call on s, or (NULL) on no stream. */
struct ss_check_site site_of(const struct stream *s, const char *what, uint32_t stack);

/* block.c */
struct block *block_find(struct ss_check *c, const void *ptr);
/* The same, also for bytes in front of it that are its padding. */
struct block *block_around(struct ss_check *c, const void *ptr);
/* Is a block behind this one nearer to the address, which lies in this one, than its start? */
bool block_behind_is_nearer(struct ss_check *c, const struct block *b, const void *ptr);
void block_forget(struct ss_check *c, struct block *b);
/* Puts it into the list of freed blocks, or of live ones. */
void block_move(struct ss_check *c, struct block *b, bool freed);
void blocks_drop(struct ss_check *c);
void block_describe(const struct block *b, struct ss_finding *f);

struct block *mark_around(struct ss_check *c, const void *ptr);
/* A live one, in place of those that were there. NULL: host memory is out. */
struct block *mark_new(struct ss_check *c, uintptr_t base, uint64_t size);
void marks_drop(struct ss_check *c, uintptr_t start, uintptr_t end);

/* judge.c */
/* A use of the block that was enqueued on s just now. False: it comes before the allocation. */
bool judge_use(struct ss_check *c, struct block *b, struct stream *s, struct ss_finding *f);
/* A free of the live block, which is enqueued on s now. */
void free_on(struct ss_check *c, struct block *b, struct stream *s, const char *what,
	     uint32_t stack);

/* finding.c */
void finding_add(struct ss_check *c, struct ss_finding *f);
void leak_add(struct ss_check *c, const struct block *b);
void findings_drop(struct ss_check *c);

/* race.c */
/* The operand, of a live block, is used by a command that was put on s just now; f tells of the
 * block and the use. */
void race_judge(struct ss_check *c, struct block *b, const struct stream *s,
		const struct ss_check_operand *o, struct ss_finding *f);

/* pool.c */
void pools_drop(struct ss_check *c);

#endif
