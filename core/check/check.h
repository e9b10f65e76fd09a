/* SPDX-License-Identifier: MIT */
/*
 * The checker's knowledge: which command may come after which, where each block of memory was
 * allocated, used and freed, and what of that is certainly wrong.
 *
 * core/order answers "is this certainly ordered?", and what it cannot see counts as not ordered.
 * The checker needs the opposite, "may this be ordered?", and here what cannot be seen counts as
 * ordered. So it has clocks of its own. They know no HIP: the shim says what happens, in the order
 * in which it happens, and gets findings.
 *
 * Any thread may call any function; one lock guards all of it, and `report`, `ours` and `describe`
 * are called under it. A key is any address that stands for a stream, an event. If host memory is
 * out, something is forgotten, and then nothing is said about it.
 */
#ifndef SS_CHECK_CHECK_H
#define SS_CHECK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_check;

enum ss_fault {
	SS_FAULT_USE_BEFORE_ALLOC,  /* nothing orders the use after the allocation */
	SS_FAULT_FREE_BEFORE_ALLOC, /* the same for the free */
	SS_FAULT_USE_AFTER_FREE,    /* the use is ordered after the free */
	SS_FAULT_USE_FREE_RACE,     /* enqueued after the free, and nothing orders the two */
	/* Nothing orders the free after a use that was enqueued before */
	SS_FAULT_FREE_USE_RACE,
	SS_FAULT_RACE, /* nothing orders two uses of the same bytes, one of which writes */
	SS_FAULT_DOUBLE_FREE,
	SS_FAULT_INTERIOR_FREE,    /* of an address inside a block */
	SS_FAULT_FOREIGN_FREE,     /* of an address that no allocation returned */
	SS_FAULT_WRONG_FREE,       /* hipHostFree of device memory, hipFree of host memory */
	SS_FAULT_DESTROYED_POOL,   /* a call with the handle of a pool that was destroyed */
	SS_FAULT_OUT_OF_BOUNDS,    /* a copy or a memset leaves its block */
	SS_FAULT_OVERWRITTEN,      /* the padding of a block has changed */
	SS_FAULT_WRITE_AFTER_FREE, /* the bytes of a freed block have changed */
	SS_FAULT_MEMORY_FAULT,     /* the device has faulted at an address */
	SS_FAULT_UNINITIALIZED,    /* a copy to the host of what was never written */
	SS_FAULT_UNUSED,           /* a block was freed that was never written */
	SS_FAULT_API_ERROR,        /* a call has failed */
	SS_FAULT_LEAK,
	SS_FAULTS
};

enum ss_check_stream_kind {
	SS_CHECK_NULL, /* joins all blocking streams of its device */
	SS_CHECK_BLOCKING,
	SS_CHECK_NONBLOCKING,
};

/* A stream as its user knows it. `number` counts streams from 1; 0: there is none. */
struct ss_check_stream {
	uint64_t number;
	void *handle;
	int dev;
	enum ss_check_stream_kind kind;
};

/* What happened where. */
struct ss_check_site {
	const char *what; /* the call; static; NULL: there is none */
	uint32_t stack;   /* whatever number the caller gives its call stacks */
	struct ss_check_stream stream;
	const char *kernel;    /* that it launches, as the linker knows it; static; NULL: none */
	uint32_t argument, at; /* which one is the address, from 1, and where in it */
};

/* How a command uses an operand. Nothing is said of a race with one of which it is not known. */
enum ss_check_access { SS_CHECK_ANY, SS_CHECK_READS, SS_CHECK_WRITES };

/* The bytes of an operand, if they are not all from its first to its last: `slices` times, `slice`
 * bytes from one to the next, `rows` rows of `width` bytes, `pitch` bytes from one to the next. The
 * first one is at `offset`. */
struct ss_check_rows {
	uint64_t offset, width, pitch, rows, slice, slices;
};

/* The operands of a command. */
struct ss_check_operand {
	const void *ptr;
	uint64_t bytes; /* 0: it is not known how many */
	enum ss_check_access access;
	const struct ss_check_rows *rows; /* NULL: all bytes */
	/* The same number stands for the same bytes written to this place; 0: it is not known */
	uint64_t origin;
	/* The kernel has no other argument with this access, so this is what it is for */
	bool sole;
	/* Eight bytes that are passed by value, which need be no pointer, or one that nobody
	 * uses */
	bool guess;
	const char *kernel; /* as in a site */
	uint32_t argument, at;
};

struct ss_finding {
	enum ss_fault fault;
	uint64_t number;            /* counts distinct findings, from 1 */
	uint64_t block, base, size; /* number of the block, counted from 1; 0: there is none */
	/* Of the use; of OVERWRITTEN the first bad byte and how many are bad */
	uint64_t address, bytes;
	bool classic;  /* hipMalloc memory */
	bool possible; /* it is an error only if the program uses what it passes by value */
	/* Where on which stream the padding was filled, in the caller's terms */
	uint32_t fill_slot;
	uint64_t fill_n;
	uint64_t front; /* bytes in front of the block that were filled */
	struct ss_check_site alloc, free, use;
	struct ss_check_site other; /* of RACE: what was enqueued before */
	bool use_writes, other_writes;
	/* Of API_ERROR, as the runtime has them: its name, its words; both static */
	const char *error, *error_text;
	int error_number;
	/* How often it was seen; of LEAK blocks, and `size` is their sum */
	uint64_t count;
};

struct ss_check_options {
	bool use_before_alloc, use_after_free; /* which errors of order are looked for */
	bool races;
	bool frees;
	bool possible; /* errors that need not be any are told, too */
	/* What is this stream, of which nothing is known yet? `number` is not asked. */
	void (*describe)(const void *key, struct ss_check_stream *out, void *arg);
	/* Does this address still lie in memory that the pools hold? NULL: all does. */
	bool (*ours)(const void *ptr, void *arg);
	/* Called the first time that a finding is made. */
	void (*report)(const struct ss_finding *f, void *arg);
	void *arg;
};

/* What was not checked, and why. */
struct ss_check_counts {
	uint64_t checked;   /* uses and frees of known blocks */
	uint64_t unknown;   /* the order cannot be known */
	uint64_t blind;     /* after a call that went past the shim */
	uint64_t forgotten; /* host memory was out */
	uint64_t findings;  /* with repetitions */
	uint64_t possible;  /* those that were not told */
};

/* NULL: host memory is out. */
struct ss_check *ss_check_create(const struct ss_check_options *options);
void ss_check_destroy(struct ss_check *c);

/* ---- streams, events, host ------------------------------------------------ */

/* A new stream; an earlier one of this key has ended. One that is not added is known from the first
 * call on that names it. */
void ss_check_stream_add(struct ss_check *c, const void *key);
/* The stream is destroyed. From then on its work may have been waited for. */
void ss_check_stream_end(struct ss_check *c, const void *key);

/* The stream may wait for anything, also for what is enqueued later: a wait for a value, an event
 * of another process, a host function. */
void ss_check_hold(struct ss_check *c, const void *stream);
/* The host may learn when the work that is on the stream now has ended, and may learn it at
 * once. */
void ss_check_tell(struct ss_check *c, const void *stream);

/* hipEventRecord: begin before the real call, end after it. A wait in between may mean either
 * record. */
void ss_check_record_begin(struct ss_check *c, const void *event);
void ss_check_record_end(struct ss_check *c, const void *event, const void *stream, bool ok);
/* The event may be recorded by what is not seen, from now on until the next record (`forever`: for
 * its whole life). */
void ss_check_event_unknown(struct ss_check *c, const void *event, bool forever);
void ss_check_event_end(struct ss_check *c, const void *event);
/* hipStreamWaitEvent: call it before the real call, and again after it. */
void ss_check_wait(struct ss_check *c, const void *stream, const void *event);
/* The host has waited for an event, or was told that it has been reached. */
void ss_check_event_synced(struct ss_check *c, const void *event);
/* The same for a stream, and for all streams of a device (-1: of all). `since` is ss_check_now()
 * before the real call. */
uint64_t ss_check_now(struct ss_check *c);
void ss_check_stream_synced(struct ss_check *c, const void *stream, uint64_t since);
void ss_check_all_synced(struct ss_check *c, int dev, uint64_t since);
/* Calls go past the shim: nothing is certain any more. */
void ss_check_blind(struct ss_check *c);

/* ---- blocks --------------------------------------------------------------- */

/* After an allocation. `stream` NULL: hipMalloc memory, which anyone may use at once. `room` is how
 * many bytes it takes, padding included; of `front` bytes before it nobody has any. */
void ss_check_alloc(struct ss_check *c, void *base, uint64_t size, uint64_t front, uint64_t room,
		    const void *stream, const char *what, uint32_t stack);
/* The padding of a block was filled, `behind` bytes of it behind the block; fill_slot and fill_n
 * are what ss_check_block() says of it. */
void ss_check_filled(struct ss_check *c, const void *base, uint64_t behind, uint32_t fill_slot,
		     uint64_t fill_n);
/* Before the free. `stream` NULL: a free for which the host waits for the device. False: ptr is in
 * no live block, and nothing changed. */
bool ss_check_free(struct ss_check *c, void *ptr, const void *stream, const char *what,
		   uint32_t stack);
/* That free failed: the block is live. */
void ss_check_free_failed(struct ss_check *c, void *ptr);
/* A free was refused. */
void ss_check_bad_free(struct ss_check *c, void *ptr, const void *stream, const char *what,
		       uint32_t stack);
/* A free of memory that is not of the pools and that another call has freed. */
void ss_check_freed_twice(struct ss_check *c, void *ptr, const struct ss_check_site *first,
			  const char *what, uint32_t stack);
/* The addresses are memory of the runtime from now on, so no freed block is meant by them. */
void ss_check_taken(struct ss_check *c, const void *base, uint64_t size);
/* A call frees memory that another call has to free: a live block, or host memory. */
void ss_check_wrong_free(struct ss_check *c, void *ptr, const char *what, uint32_t stack);
/* A call has failed. The texts are static. */
void ss_check_api_error(struct ss_check *c, const char *error, const char *error_text, int number,
			const char *what, uint32_t stack);
/* The program's own pool hands out a range of a live block, to be used on a stream first, or gets
 * back the one that begins there, in the order of a stream. */
void ss_check_handed_out(struct ss_check *c, void *ptr, uint64_t size, const void *stream,
			 const char *what, uint32_t stack);
void ss_check_returned(struct ss_check *c, void *ptr, const void *stream, const char *what,
		       uint32_t stack);
/* A pool was destroyed; and: a call got a handle that is no live pool's. */
void ss_check_pool_end(struct ss_check *c, const void *handle, const char *what, uint32_t stack);
void ss_check_pool_use(struct ss_check *c, const void *handle, const char *what, uint32_t stack);
/* A command on the stream is about to be enqueued. False: it leaves the block. */
bool ss_check_use(struct ss_check *c, const void *stream, const struct ss_check_operand *o,
		  const char *what, uint32_t stack);
/* One that begins in memory of the pools that no block has. `stream` NULL: it is not enqueued
 * yet. */
void ss_check_outside(struct ss_check *c, const void *stream, const struct ss_check_operand *o,
		      const char *what, uint32_t stack);
/* The same of one that is not enqueued yet, but made a node of a graph. */
bool ss_check_fits(struct ss_check *c, const void *ptr, uint64_t bytes, const char *what,
		   uint32_t stack);
/* What is `about` a block that bytes of it have shown: the padding behind a block, or in front of
 * it (`offset` is negative, as two's complement), or the bytes of a freed one, have changed. Of a
 * freed block of which an error of order is known, that is the reason, and nothing more is said. */
void ss_check_changed(struct ss_check *c, const struct ss_finding *about, uint64_t offset,
		      uint64_t bytes);
/* The device has faulted at an address, or somewhere in its page: which block is there, or ends
 * before it? */
void ss_check_memory_fault(struct ss_check *c, uint64_t address);
/* A live block that contains ptr: its base, its size without padding, and what a finding says of
 * it. Returns how many bytes of padding behind it have been filled. `out->block` 0: there is
 * none. */
uint64_t ss_check_block(struct ss_check *c, const void *ptr, struct ss_finding *out);
/* The same of a freed block. False: there is none. */
bool ss_check_freed_block(struct ss_check *c, const void *ptr, struct ss_finding *out);
/* Is `key` still this stream? */
bool ss_check_same_stream(struct ss_check *c, const void *key,
			  const struct ss_check_stream *stream);
/* The live blocks whose padding has been filled. `fn` may call nothing here. */
void ss_check_padded(struct ss_check *c,
		     void (*fn)(const struct ss_finding *about, uint64_t padding, void *arg),
		     void *arg);

/* A call has taken the memory of a device along, and its work: blocks that are not `there` any more
 * count as freed by it. With `leaks` they are leaked. `there` is called as `ours` is. */
void ss_check_reset_done(struct ss_check *c, bool (*there)(const void *ptr), bool leaks,
			 const char *what, uint32_t stack);
/* Calls `fn` for each distinct finding. With `leaks` live blocks are added first, by call stack. */
void ss_check_findings(struct ss_check *c, bool leaks,
		       void (*fn)(const struct ss_finding *, void *), void *arg);
/* False: a thread has been in one of these functions for a second, so this one may be the thread
 * itself, in a signal handler. */
bool ss_check_idle(struct ss_check *c);
void ss_check_count(struct ss_check *c, struct ss_check_counts *out);

/* ---- words ----------------------------------------------------------------- */

/* A short name for files and suppressions: "use-after-free". */
const char *ss_fault_name(enum ss_fault fault);
/* A name of a kernel is cut to this in sentences. */
#define SS_KERNEL_NAME 1024
/* "Argument 2 of kernel k", if the site launches one. False: it does not. */
bool ss_site_argument(const struct ss_check_site *site, char *out, size_t size);
/* What is wrong, one sentence without a period at the end. */
void ss_fault_text(const struct ss_finding *f, char *out, size_t size);
/* What the call of `use` did: "Used", "Freed again", "Freed". */
const char *ss_fault_did(enum ss_fault fault);
/* How to mend it, one sentence; "" if the stream of the free is not known. */
void ss_fault_mend(const struct ss_finding *f, char *out, size_t size);
/* "stream 2 (0x5581, non-blocking, device 0)". */
void ss_stream_text(const struct ss_check_stream *s, char *out, size_t size);

#endif
