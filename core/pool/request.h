/* SPDX-License-Identifier: MIT */
/*
 * An allocation that was no hit, and the steps that the ladder (ladder.c) tries for it. A step is
 * called with no lock held.
 */
#ifndef SS_POOL_REQUEST_H
#define SS_POOL_REQUEST_H

#include "core/pool/reclaim.h"

struct ss_request {
	struct ss_pool *pool;
	struct ss_shelf *shelf; /* NULL: hipMalloc, which takes only completed memory */
	struct ss_timeline *tl; /* of the shelf */
	uint64_t size, align;
	uint64_t front;         /* bytes of `size` before the block, for its front */
	struct ss_block *block; /* found, in state QUEUED */
	uint64_t id;            /* the id that the block gets */
	uint64_t *rule;         /* the pool's counter that was raised for it; NULL: none */
	enum ss_status status;  /* why the ladder gave up */
	bool missed;            /* no shelf served it: the ladder did, or a segment of its own */
	uint64_t tried;         /* a bit for each row of the ladder that was tried */
	unsigned grown;         /* how often the pool grew for it */
	/* Bytes of an idle segment that was not cut, since growing may fit better; 0: none. */
	uint64_t left_uncut;
	bool cut;              /* the idle segment may be cut all the same */
	bool refused;          /* the driver failed, but did not report a lack of memory */
	struct {               /* growth_wait.c */
		uint64_t us;   /* us waited so far */
		uint32_t turn; /* slot of the stream that is asked next */
		bool over;     /* no more waits */
	} wait;
	struct {                        /* oom.c */
		uint64_t end;           /* end of waiting, ms; 0: not begun */
		bool released;          /* idle memory of all pools has been released */
		uint64_t settled, gave; /* of the device, at the last release */
		bool over;              /* the wait has ended */
	} oom;
};

enum ss_next {
	SS_NEXT,    /* nothing found: the next step */
	SS_FOUND,   /* r->block is set */
	SS_AGAIN,   /* there may be memory now: start again at the first step */
	SS_GIVE_UP, /* r->status is set */
};

typedef enum ss_next ss_step(struct ss_request *r);

/* reuse.c */
ss_step ss_step_own, ss_step_event_order, ss_step_ask;
/* growth_wait.c */
ss_step ss_step_wait;
/* growth.c */
ss_step ss_step_cut, ss_step_grow;
/* oom.c */
ss_step ss_step_possible, ss_step_fences, ss_step_release, ss_step_device_wait, ss_step_host_wait;

/* The view of the pool for placement. Pool lock held. */
void ss_view(struct ss_request *r, struct ss_view *v);
/* Best fit among the stream's own and the completed ranges. Pool lock held. True: r->block is
 * set, and *rule (NULL: the counter of the block's source) is counted. */
bool ss_take_free(struct ss_request *r, uint64_t *rule);
/* Gives b, QUEUED, to r (NULL: nothing), and counts *rule (NULL: none). Pool lock held. True: b. */
bool ss_request_serve(struct ss_request *r, struct ss_block *b, uint64_t *rule);
/* Polls the fences of a few streams; more streams take turns. True: one was reached. No lock
 * held. */
bool ss_pool_poll_some(struct ss_pool *pool);

/* A block that is a segment of its own, QUEUED (whole_block.c); NULL: there is no memory for it.
 * No lock held. */
struct ss_block *ss_whole_block_alloc(struct ss_request *r, uint64_t size);
/* r->block at the end of a guarded segment, QUEUED (front.c); sets r->front. No lock held. */
enum ss_status ss_guarded_block(struct ss_request *r);
/* The part of r->block after r->front, which is about to be handed out; r->block itself if host
 * memory is out. No lock held. */
struct ss_block *ss_front_split(struct ss_request *r);
/* The segment that the pool would add for r (growth.c); fills the view. Pool lock held. */
uint64_t ss_growth_segment(struct ss_request *r, struct ss_view *v);

/* Waiting for pending frees: growth_wait.c. */
/* Does no pending work need the host, as far as can be told now? No lock held. */
bool ss_wait_safe(struct ss_core *core);
/* The next three functions count waits of streams (`stream`), or of hipMalloc. Any thread. */
/* Notes a failed wait, in which nothing completed for the last `us`; `failed`: ss_waits_failed()
 * when it began. */
void ss_wait_failed(struct ss_core *core, bool stream, unsigned failed, uint64_t us);
/* The count of failed waits, less the waits that helped. */
unsigned ss_waits_failed(struct ss_core *core, bool stream);
/* The time that failed waits may still take in all, in us. */
uint64_t ss_wait_budget_us(struct ss_core *core, bool stream);

/* Finds memory by all steps of the ladder (ladder.c). No lock held. */
enum ss_status ss_ladder(struct ss_request *r);
/* Reports that memory is out (oom_report.c). No lock held. */
void ss_oom_report(const struct ss_request *r);

#endif
