/* SPDX-License-Identifier: MIT */
/*
 * The oracle runs random programs on the core and judges them by a model of the device that shares
 * no code with core/order.
 *
 * The truth. A stream is a sequence of commands. Each command is ordered after the one before it on
 * its stream. A kernel, a record and a fence also join the null stream at the moment they are
 * enqueued: on the null stream they come after everything that the live blocking streams of the
 * device hold then, and on a blocking stream after everything that the null stream holds then. A
 * wait is ordered after the record that its event held at the real call; no join by a wait is
 * relied on. Allocations and frees are positions on a stream, not commands, so they join nothing.
 * `clk` is the vector clock of this relation.
 *
 * What the host knows (`H`) is what a successful synchronization, a query that answered yes, or a
 * reached fence has shown, and everything ordered before it. A command that ran without anybody
 * having looked does not count as finished. Synchronizing the null stream covers the blocking
 * streams; a query does not. Synchronizing a device covers destroyed streams as well; waiting for
 * one stream after the other does not. The commands of a destroyed stream go on, but the null
 * stream does not join it any more.
 *
 * Programs are legal. A kernel touches every live block that it may touch. It may touch a block
 * whose allocation (a position on stream X) is ordered before the kernel, or with which the host
 * has synchronized before the kernel was enqueued. Every stream of the device may touch a block of
 * hipMalloc at once. A free on S is legal if it is ordered after the allocation. It says that every
 * access is ordered before a command that would be enqueued on S now. So the accesses that an owner
 * *may* have made are, for each stream, the last kernel that could legally touch the block and is
 * ordered before the free. For hipFree, and for blocks of hipMalloc, it is the last kernel anywhere
 * on the device.
 *
 * The check. When bytes are handed out on X, every access that an earlier owner may have made must
 * be known to have finished, or be ordered before a command enqueued on X now. For hipMalloc it
 * must be known to have finished. When a kernel then touches the block, on whatever stream, every
 * access of an earlier owner must be known to have finished or be ordered before that very kernel.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/core.h"

#define NS 32         /* streams of one program, dead ones included */
#define MAXPOS 1536   /* positions on one stream */
#define MAXNODES 6144 /* commands of one program */
#define SLOTS 12      /* stream slots: 0,1 null of device 0,1; 2,3 per-thread */
#define FIRST_USER 4
#define EVENTS 8
#define BLOCKS 40
#define POOLS 4
#define PAIRS 3
#define DEVS 2
#define THREADS 4     /* model threads; 0 runs on the main thread */
#define MAXOPS 512
#define SEGMENTS 4096
#define HAZARDS 1024
#define FENCES 4096

struct clk {
	uint16_t n[NS];
};

static inline void clk_join(struct clk *a, const struct clk *b)
{
	for (int i = 0; i < NS; i++)
		a->n[i] = a->n[i] > b->n[i] ? a->n[i] : b->n[i];
}

/* ---- programs: program.c ------------------------------------------------ */

/* clang-format off */
enum op_kind {
	OP_STREAM_CREATE, OP_STREAM_DESTROY, OP_KERNEL, OP_STALL, OP_RELEASE, OP_ADVANCE,
	OP_EVENT_CREATE, OP_EVENT_DESTROY, OP_RECORD, OP_WAIT, OP_EVENT_SYNC,
	OP_EVENT_QUERY, OP_TAINT, OP_UNSEEN_RECORD, OP_STREAM_SYNC, OP_STREAM_QUERY,
	OP_DEVICE_SYNC, OP_BEGIN, OP_REAL, OP_END, OP_ALLOC, OP_FREE, OP_SWAP,
	OP_ALLOC_CLASSIC, OP_FREE_CLASSIC, OP_FREE_BAD, OP_POOL_CREATE, OP_POOL_DESTROY,
	OP_POOL_ATTR, OP_TRIM, OP_POOL_CURRENT, OP_POOL_ACCESS, OP_PEERS, OP_HOUSEKEEP,
	OP_TICK, OP_FAIL, OP_CAPTURE, OP_RESET, OP_DISTRUST, OP_UNSEEN_STREAM,
	OP_THREAD_EXIT, OP_HOOK, OP_COUNT,
};
/* clang-format on */

/* Every operation is total: if its slots are empty, or it would be illegal, it does nothing. So the
 * shrinker can delete operations one by one. */
struct op {
	uint8_t kind, thread;
	uint8_t a, b, c, d;
	uint16_t flags;
	uint64_t n;
};

#define OPF_FAILS 1   /* the real call fails */
#define OPF_WAITED 2  /* hipFree waits stream by stream */
#define OPF_INNER 4   /* interior pointer */
#define OPF_NOWAIT 8  /* the synchronization is no release point */
/* The kernel is a wait for a value; while streams advance a host function begins, or ends. */
#define OPF_HOST 16

struct config {
	uint64_t seed;
	int devices, threads;
	uint64_t vram, chunk; /* bytes; chunk: the smallest that is mapped */
	bool vmm, access_prefix, lazy_query, query_spoils;
	bool restless;  /* streams make progress while the core looks at them */
	bool functions; /* of the host run now and then */
	bool release_waits[SS_BACKING_COUNT];
	struct ss_options opt;
};

struct program {
	struct config cfg;
	int count;
	struct op op[MAXOPS];
};

void program_generate(struct program *p, uint64_t seed, int ops);
/* Writes a few related operations (idioms.c). Returns how many. */
int idiom_strew(struct op *out, int room, uint64_t *state, int streams, int events, int blocks,
		uint64_t size);
void program_print(const struct program *p, FILE *out);
void op_print(const struct op *op, FILE *out);
uint64_t rnd(uint64_t *state);

/* ---- the world: what is true -------------------------------------------- */

struct stream {
	bool used, alive, unseen, capturing, leaving;
	int dev, thread;
	enum ss_timeline_kind kind;
	void *native;
	struct ss_timeline *tl;
	int pairs, busy;       /* watched calls, and other calls, in progress on it */
	int fencing;           /* calls in progress that record a fence on it */
	struct clk vc;         /* of a command enqueued now, without implicit joins */
	uint16_t stuck;        /* position of a persistent kernel, 0 = none */
	uint16_t host;         /* the same of the last command that may need the host */
	uint16_t kern[MAXPOS]; /* last kernel at or before a position */
	uint16_t node[MAXPOS]; /* node of the command at a position, 0 = none */
};

struct node {
	struct clk vc;
	uint32_t time;
};

struct event {
	bool used, sticky, recorded, captured;
	void *native;
	int pairs;
	struct clk vc;
};

struct block {
	bool used, classic;
	uint64_t addr, size;
	int dev, stream;          /* stream < 0: hipMalloc */
	int pool;                 /* POOLS + dev: default, POOLS + DEVS + dev: classic */
	uint16_t pos;             /* its allocation's position on `stream` */
	uint32_t time, host_time; /* when it was handed out; when the program knew of that */
	uint64_t id;
	struct clk hz; /* accesses of earlier owners that may not have finished */
	bool hazardous;
};

struct hazard {
	uint64_t lo, hi;
	struct clk vc; /* accesses that may not have finished */
	struct clk at; /* everything ordered before the free */
	int stream;    /* of the free; < 0: hipFree, or taken over by another stream */
	uint16_t pos;
};

struct segment {
	bool used, reservation, chunk;
	int dev, owner;
	enum ss_backing backing;
	uint64_t addr, size; /* chunk: addr 0 while unmapped */
};

struct fence {
	bool used, reached, gone;
	bool raced; /* recorded while other threads ran, so its place is not known exactly */
	int dev, stream;
	struct clk vc;
};

struct pool {
	bool used;
	int dev;
	struct ss_pool *p;
	uint64_t handle, used_bytes, used_high, reserved, reserved_high, threshold;
	uint64_t allocations, frees; /* since it was made */
	uint64_t peers;
	bool follow, opportunistic, internal;
	bool threshold_set;
	bool trimmed; /* a trim may wait for the next synchronization */
	/* Was the policy ever allowed during an allocation? */
	bool ever_follow, ever_opportunistic, ever_internal;
	bool dying; /* destroyed, with live blocks */
	int blocks;
};

struct pair {
	bool used, real, ok, early;
	int kind, thread, stream, event, dev;
	uint16_t flags;
	struct ss_token token;
	struct clk vc;        /* what the real call waited for */
	struct clk sure;      /* what it would have waited for when the pair began */
	struct clk all[DEVS]; /* what each device held when the pair began */
};

#define ALLP (POOLS + 2 * DEVS)

struct world {
	struct config cfg;
	struct ss_core *core;
	const struct program *prog;
	int pc;
	bool verbose;
	uint64_t rng;
	char failed[512];
	int fail_class;

	uint32_t time;
	int nstreams, nodes;
	struct stream *s;  /* [NS] */
	struct node *node; /* [MAXNODES] */
	struct clk H, done;
	struct clk app; /* the part of H that the application itself knows */
	bool full;      /* the model has no room left: end the program without an error */

	int slot[SLOTS]; /* stream in a slot, -1 */
	int null[DEVS], pt[THREADS][DEVS];
	struct event ev[EVENTS];
	struct block blk[BLOCKS];
	struct pool pool[ALLP];
	struct pair pair[PAIRS];
	struct hazard hz[HAZARDS];
	int nhz;
	uint64_t peers[DEVS];
	bool distrusted, ghosts[DEVS];
	/* 1 + device: it is being reset. HIP forbids that other threads use it then. If they do, an
	 * allocation may fail, and what it gives is memory of the device that nobody else has; but
	 * that may go at once, as all goes with the reset. */
	int resetting;
	bool nested; /* operations ran inside another since the last check */
	bool thread_used[THREADS];
	uint64_t last_id;
	uint64_t stale[16]; /* addresses that were freed */
	int nstale;

	/* device.c */
	struct segment seg[SEGMENTS];
	int nseg;
	struct fence *fence; /* [FENCES] */
	int nfence, live_fences;
	int fencing;  /* calls in progress that record or query a fence, */
	int querying; /* and those that query one */
	uint64_t given[DEVS], given_high[DEVS];
	uint64_t now_ms;
	uint64_t moments;     /* how often the core paused */
	bool in_function;     /* a host function runs */
	bool sleeping;        /* sleep.c */
	uint64_t refused_end; /* end of the range to which access was last refused */
	uint64_t next_addr, next_handle;
	uint64_t spare_addr[64], spare_size[64], spare_handle[32];
	int nspare, nspare_handle;
	struct {
		uint8_t nth;
		uint8_t status;
		bool on, always;
	} inject[16];
	uint64_t calls[16];
	int hook, hook_at, hook_pc; /* operations to run inside the next driver call */
	const struct op *at_nap;    /* and one inside the next nap; NULL: none */
	struct clk unhooked[DEVS];  /* what each device held when that operation began */
	int depth, cur;             /* nesting; the operation in progress */
	struct call {
		int joining;        /* 1 + device: the call joins its null stream */
		int natively_waits; /* 1 + device: the call waits for it */
		int own;            /* 1 + stream: the call uses it, whoever waits for it */
		struct clk fenced;  /* what the fences recorded in the call cover */
		/* By device: what was enqueued before the call; NULL: all that is now */
		const struct clk *since;
		bool in_alloc, in_classic, injected, hooked;
		int pool;                             /* of the allocation, */
		uint64_t size;                        /* and its bytes */
		uint64_t slept, napped;               /* ms, us */
		int gates, gate[16], gate_stream[16]; /* fences that streams wait for */
	} call;
};

extern __thread int cur_thread;

/* Remembers the first violation; `class` tells kinds apart when shrinking. */
void fail(struct world *w, int class, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

enum fail_class {
	F_ORDER = 1,
	F_OVERLAP,
	F_ACCESS,
	F_LEAK,
	F_STATS,
	F_ALIGN,
	F_CHECK,
	F_ATOMIC,
	F_NULL_FENCE,
	F_ASKS,
	F_BLOCKS,
	F_LATE,
	F_STATUS,
	F_DRIVER,
	F_MISS,
	F_RELEASE,
	F_CRASH,
	F_POLICY,
};

/* ---- model.c ------------------------------------------------------------ */

int stream_new(struct world *w, int dev, enum ss_timeline_kind kind, void *native);
/* What a command enqueued on s now would be ordered after. */
void stream_next(const struct world *w, int s, struct clk *out);
/* Everything on the live streams of dev (`dead`: and the destroyed ones). */
void device_clock(const struct world *w, int dev, bool dead, struct clk *out);
enum cmd { CMD_KERNEL, CMD_MARKER, CMD_WAIT, CMD_VIRTUAL };
/* Enqueues; `after` (may be NULL) comes before it. Returns the position. */
int enqueue(struct world *w, int s, enum cmd cmd, const struct clk *after);
bool clk_done(const struct world *w, const struct clk *c);
/* False if a persistent kernel is in the way. */
bool can_finish(const struct world *w, const struct clk *c);
void finish(struct world *w, const struct clk *c);
/* The host has seen that everything in c finished; `app`: the application has. */
void know(struct world *w, const struct clk *c, bool app);
/* Streams make progress as the device likes. */
void progress(struct world *w, int s, int k);
void kernel_touches(struct world *w, int s);
/* Reduces c to its kernels that are not known to have finished; false: there are none. */
bool kernels_only(const struct world *w, struct clk *c);

/* ---- memory.c ----------------------------------------------------------- */

/* Checks a new owner and enters it. */
void hand_out(struct world *w, int slot, int pool, int dev, int stream, uint64_t size, void *ptr);
bool free_is_legal(const struct world *w, const struct block *b, int stream);
/* The owner frees the block; stream < 0: by hipFree, which orders all that the device holds. */
void let_go(struct world *w, int slot, int stream);
void check_given_back(struct world *w, int dev, uint64_t addr, uint64_t size, bool device_waits);
void forget_range(struct world *w, uint64_t addr, uint64_t size);
void check_stats(struct world *w);
int pool_of(const struct world *w, const struct ss_pool *p);

/* ---- device.c, device_fence.c --------------------------------------------- */

struct ss_driver device_driver(struct world *w);
extern const char *const device_ops[];
enum {
	D_SEGMENT_ALLOC,
	D_RESERVE,
	D_CHUNK,
	D_MAP,
	D_SET_ACCESS,
	D_SEGMENT_ACCESS,
	D_RECORD,
	D_WAIT,
	D_QUERY,
	D_MEM_INFO,
	D_SEGMENT_FREE,
	D_UNRESERVE,
	D_RELEASE,
	D_UNMAP,
	DEVICE_OPS,
};
enum ss_status device_enter(struct world *w, int op);
enum ss_status device_leave(struct world *w, enum ss_status st);
void device_fences(struct ss_driver *drv);
void device_check_leaks(struct world *w);
void *device_handle(struct world *w);
void device_handle_back(struct world *w, void *h);
void device_forget(struct world *w, int dev);

/* ---- run.c, sync.c, alloc.c ---------------------------------------------- */

struct world *world_create(const struct program *p, bool verbose);
/* Creates the core and the model's fixed streams. */
bool world_start(struct world *w);
void world_finish(struct world *w); /* gives back, checks leaks, destroys */
void world_destroy(struct world *w);
void run_op(struct world *w, const struct op *op);
/* Runs operations from w->hook_pc on inside the current one. */
void run_hook(struct world *w);
/* A host function begins to run, or the one that runs ends. */
void host_function(struct world *w, bool runs);
/* Runs w->at_nap inside the current one. */
void run_at_nap(struct world *w);
int stream_at(struct world *w, int slot);
void stream_dies(struct world *w, int s);
bool op_sync(struct world *w, const struct op *op);
bool op_memory(struct world *w, const struct op *op);
/* pool.c */
#define POOL_DEFAULT(d) (POOLS + (d))
#define POOL_CLASSIC(d) (POOLS + DEVS + (d))
bool op_pool(struct world *w, const struct op *op);
/* The pool that a number stands for on a device; the default pool if there is no such pool. */
int pool_pick(const struct world *w, int n, int dev);
uint64_t pool_value(const struct world *w, int pool, enum ss_attr a);
void pool_trim(struct world *w, int i, uint64_t keep);
/* Asks the core for the fixed pools of a device (-1: of all). */
void pools_fetch(struct world *w, int dev);
/* Frees everything, synchronizes, trims: nothing may stay reserved. */
void memory_finish(struct world *w);
void pair_finish(struct world *w, int slot);
/* Runs fn on the pthread of a model thread and waits for it. */
void on_thread(int thread, void (*fn)(void *), void *arg);

struct result {
	int class;
	char text[512];
};
void run_program(const struct program *p, bool verbose, struct result *out);
/* The same in a child process, so that a crash is a result, too. */
void run_isolated(const struct program *p, struct result *out);
void shrink(struct program *p, int class);

/* Bytes of [lo, hi) that are memory of dev. */
uint64_t memory_of(const struct world *w, int dev, uint64_t lo, uint64_t hi);

/* ---- sleep.c ------------------------------------------------------------ */

extern bool oracle_sleeps; /* --sleep */
/* Between two operations: puts the pools to sleep and wakes them, now and then. */
void sleep_and_wake(struct world *w);

#endif
