/* SPDX-License-Identifier: MIT */
/*
 * The checker's knowledge: the possible order of commands, the places where each block of memory
 * was allocated, used and freed, and the certain errors among them.
 *
 * core/order answers "is this certainly ordered?", and counts an unseen order as no order. The
 * checker needs the opposite, "may this be ordered?", and counts an unseen order as an order. So
 * the checker has clocks of its own. These files know no HIP: the shim reports the events, in the
 * order in which they happen, and gets findings.
 *
 * Any thread may call any function; one lock guards all of it, and `report`, `ours` and `describe`
 * are called under it. A key is any address that stands for a stream or an event. If host memory is
 * out, the checker forgets facts, and makes no finding about them.
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
	/* The use is enqueued after the free, and nothing orders the two */
	SS_FAULT_USE_FREE_RACE,
	/* Nothing orders the free after a use that was enqueued before */
	SS_FAULT_FREE_USE_RACE,
	SS_FAULT_RACE, /* nothing orders two uses of the same bytes, one of which writes */
	SS_FAULT_DOUBLE_FREE,
	SS_FAULT_INTERIOR_FREE,    /* free of an address inside a block */
	SS_FAULT_FOREIGN_FREE,     /* free of an address that no allocation returned */
	SS_FAULT_WRONG_FREE,       /* hipHostFree of device memory, hipFree of host memory */
	SS_FAULT_DESTROYED_POOL,   /* a call with the handle of a pool that was destroyed */
	SS_FAULT_OUT_OF_BOUNDS,    /* a copy or a memset leaves its block */
	SS_FAULT_OVERWRITTEN,      /* the padding of a block has changed */
	SS_FAULT_WRITE_AFTER_FREE, /* the bytes of a freed block have changed */
	SS_FAULT_MEMORY_FAULT,     /* the device has faulted at an address */
	SS_FAULT_UNINITIALIZED,    /* a copy to the host of bytes that were never written */
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

/* A stream as the user knows it. `number` counts streams from 1; 0: there is none. */
struct ss_check_stream {
	uint64_t number;
	void *handle;
	int dev;
	enum ss_check_stream_kind kind;
};

/* The site of an event: the call, its call stack and its stream. */
struct ss_check_site {
	const char *what; /* the call; static; NULL: there is none */
	uint32_t stack;   /* the caller's number of the call stack */
	struct ss_check_stream stream;
	/* The kernel that the call launches, as the linker knows it; static; NULL: none */
	const char *kernel;
	/* Number of the argument with the address, from 1; offset of the address in it */
	uint32_t argument, at;
};

/* The access of a command to an operand. An operand of unknown access makes no finding of a
 * race. */
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
	/* Equal numbers mean that the same bytes are written to this place; 0: unknown */
	uint64_t origin;
	/* The kernel has no other argument with this access, so the kernel surely uses this one */
	bool sole;
	/* Eight bytes that are passed by value, which need not be a pointer, or may be an unused
	 * one */
	bool guess;
	const char *kernel; /* as in a site */
	uint32_t argument, at;
};

struct ss_finding {
	enum ss_fault fault;
	uint64_t number;            /* counts distinct findings, from 1 */
	uint64_t block, base, size; /* number of the block, counted from 1; 0: there is none */
	/* Of the use; for OVERWRITTEN the first bad byte and the number of bad bytes */
	uint64_t address, bytes;
	bool classic;  /* hipMalloc memory */
	bool possible; /* it is an error only if the program uses the value that it passes */
	/* The stream slot and position of the fill of the padding, in the caller's terms */
	uint32_t fill_slot;
	uint64_t fill_n;
	uint64_t front; /* bytes before the block that were filled */
	struct ss_check_site alloc, free, use;
	struct ss_check_site other; /* for RACE: the access that was enqueued before */
	bool use_writes, other_writes;
	/* For API_ERROR, from the runtime: the error's name and text; both static */
	const char *error, *error_text;
	int error_number;
	/* Number of occurrences; for LEAK number of blocks, and `size` is the sum of their sizes */
	uint64_t count;
};

struct ss_check_options {
	bool use_before_alloc, use_after_free; /* the errors of order to look for */
	bool races;
	bool frees;
	bool possible; /* possible errors are reported, too */
	/* Describes a stream that the checker does not know yet. `number` is not needed. */
	void (*describe)(const void *key, struct ss_check_stream *out, void *arg);
	/* Does this address still lie in memory that the pools hold? NULL: every address does. */
	bool (*ours)(const void *ptr, void *arg);
	/* Called the first time that a finding is made. */
	void (*report)(const struct ss_finding *f, void *arg);
	void *arg;
};

/* Counts of checked and unchecked commands, by reason. */
struct ss_check_counts {
	uint64_t checked;   /* uses and frees of known blocks */
	uint64_t unknown;   /* the order cannot be known */
	uint64_t blind;     /* after a call that bypassed the shim */
	uint64_t forgotten; /* host memory was out */
	uint64_t findings;  /* findings, with repetitions */
	uint64_t possible;  /* possible errors that were not reported */
};

/* NULL: host memory is out. */
struct ss_check *ss_check_create(const struct ss_check_options *options);
void ss_check_destroy(struct ss_check *c);

/* ---- streams, events, host ------------------------------------------------ */

/* Adds a new stream; an earlier stream of this key has ended. A stream that is not added is known
 * from the first call that names it. */
void ss_check_stream_add(struct ss_check *c, const void *key);
/* The stream is destroyed. From then on the host may have waited for its work. */
void ss_check_stream_end(struct ss_check *c, const void *key);

/* The stream may wait for anything, also for commands that are enqueued later: a wait for a value,
 * an event of another process. */
void ss_check_hold(struct ss_check *c, const void *stream);
/* The stream may wait for the host: a host function, or a kernel with memory that the host sees,
 * too. So it waits for nothing of which the host does not know. */
void ss_check_host_holds(struct ss_check *c, const void *stream);
/* The host may learn when the work that is on the stream now has completed, and may learn it at
 * once. */
void ss_check_tell(struct ss_check *c, const void *stream);

/* The position of the last command that was put on the stream. A fence that was recorded on the
 * stream before tells of the commands behind this position: as long as the device has not reached
 * it, they have not begun. */
uint64_t ss_check_position(struct ss_check *c, const void *stream);
/* The commands behind position n of a stream had not begun after the present call did, so the host
 * learned nothing from them before it. `stream` NULL ends a list. */
struct ss_check_unbegun {
	const void *stream;
	uint64_t n;
};

/* hipEventRecord: begin before the real call, end after it. A wait in between may mean either
 * record. */
void ss_check_record_begin(struct ss_check *c, const void *event);
void ss_check_record_end(struct ss_check *c, const void *event, const void *stream, bool ok);
/* An unseen call or process may record the event, from now on until the next record (`forever`: for
 * the event's whole life). */
void ss_check_event_unknown(struct ss_check *c, const void *event, bool forever);
void ss_check_event_end(struct ss_check *c, const void *event);
/* hipStreamWaitEvent: call it before the real call, and again after it. */
void ss_check_wait(struct ss_check *c, const void *stream, const void *event);
/* The host has waited for an event, or was told that the event has completed. */
void ss_check_event_synced(struct ss_check *c, const void *event);
/* The same for a stream, and for all streams of a device (-1: of all). `since` is ss_check_now()
 * before the real call. */
uint64_t ss_check_now(struct ss_check *c);
void ss_check_stream_synced(struct ss_check *c, const void *stream, uint64_t since);
void ss_check_all_synced(struct ss_check *c, int dev, uint64_t since);
/* Calls bypass the shim: nothing is certain any more. */
void ss_check_blind(struct ss_check *c);

/* ---- blocks --------------------------------------------------------------- */

/* After an allocation. `stream` NULL: hipMalloc memory, which any stream may use at once. `room` is
 * the number of bytes that the block takes, padding included. The `front` bytes before the block
 * belong to no block. */
void ss_check_alloc(struct ss_check *c, void *base, uint64_t size, uint64_t front, uint64_t room,
		    const void *stream, const char *what, uint32_t stack);
/* The padding of a block was filled, with `behind` bytes after the block; ss_check_block() returns
 * fill_slot and fill_n. */
void ss_check_filled(struct ss_check *c, const void *base, uint64_t behind, uint32_t fill_slot,
		     uint64_t fill_n);
/* Before the free. `stream` NULL: a free for which the host waits for the device. `unbegun`: of
 * ss_check_position(), or NULL. False: ptr is in no live block, and nothing changed. */
bool ss_check_free(struct ss_check *c, void *ptr, const void *stream,
		   const struct ss_check_unbegun *unbegun, const char *what, uint32_t stack);
/* The free of ptr failed: the block is live. */
void ss_check_free_failed(struct ss_check *c, void *ptr);
/* A free was refused. */
void ss_check_bad_free(struct ss_check *c, void *ptr, const void *stream, const char *what,
		       uint32_t stack);
/* A free of memory outside the pools that another call has freed. */
void ss_check_freed_twice(struct ss_check *c, void *ptr, const struct ss_check_site *first,
			  const char *what, uint32_t stack);
/* The addresses are memory of the runtime from now on, so they no longer name a freed block. */
void ss_check_taken(struct ss_check *c, const void *base, uint64_t size);
/* A call frees memory that another call has to free: a live block, or host memory. */
void ss_check_wrong_free(struct ss_check *c, void *ptr, const char *what, uint32_t stack);
/* A call has failed. The texts are static. */
void ss_check_api_error(struct ss_check *c, const char *error, const char *error_text, int number,
			const char *what, uint32_t stack);
/* The program's own pool hands out a range of a live block, for first use on a stream, or takes
 * back the range that begins at ptr, in the order of a stream. */
void ss_check_handed_out(struct ss_check *c, void *ptr, uint64_t size, const void *stream,
			 const char *what, uint32_t stack);
void ss_check_returned(struct ss_check *c, void *ptr, const void *stream,
		       const struct ss_check_unbegun *unbegun, const char *what, uint32_t stack);
/* The first: a pool was destroyed. The second: a call got a handle that is no live pool's. */
void ss_check_pool_end(struct ss_check *c, const void *handle, const char *what, uint32_t stack);
void ss_check_pool_use(struct ss_check *c, const void *handle, const char *what, uint32_t stack);
/* A command on the stream is about to be enqueued. Nobody but the pools, and the blocks that they
 * have released, has the address. False: the command leaves the block. */
bool ss_check_use(struct ss_check *c, const void *stream, const struct ss_check_operand *o,
		  const char *what, uint32_t stack);
/* The same for a command that begins in memory of the pools outside all live blocks, and so is
 * refused. `stream` NULL: the command would be captured, or is a node of a graph. */
void ss_check_outside(struct ss_check *c, const void *stream, const struct ss_check_operand *o,
		      const char *what, uint32_t stack);
/* The same for a command that becomes a node of a graph and is not enqueued yet. */
bool ss_check_fits(struct ss_check *c, const void *ptr, uint64_t bytes, const char *what,
		   uint32_t stack);
/* Reports the finding `about` a block whose bytes have changed: the padding after the block, or
 * before it (`offset` is negative, as two's complement), or the bytes of a freed block. If an error
 * of order is known for a freed block, that error is the reason, and no more is reported. */
void ss_check_changed(struct ss_check *c, const struct ss_finding *about, uint64_t offset,
		      uint64_t bytes);
/* The device has faulted at an address, or somewhere in its page. Finds the block there, or the
 * block that ends before the address. */
void ss_check_memory_fault(struct ss_check *c, uint64_t address);
/* The live block that contains ptr: its base, its size without padding, and the facts of a finding
 * about it. Returns the number of bytes of padding after the block that have been filled.
 * `out->block` 0: there is none. */
uint64_t ss_check_block(struct ss_check *c, const void *ptr, struct ss_finding *out);
/* The same for a freed block. False: there is none. */
bool ss_check_freed_block(struct ss_check *c, const void *ptr, struct ss_finding *out);
/* Is `key` still this stream? */
bool ss_check_same_stream(struct ss_check *c, const void *key,
			  const struct ss_check_stream *stream);
/* The live blocks whose padding has been filled. `fn` may call nothing here. */
void ss_check_padded(struct ss_check *c,
		     void (*fn)(const struct ss_finding *about, uint64_t padding, void *arg),
		     void *arg);

/* A call has released the memory of a device and ended its work: blocks that are no longer `there`
 * count as freed by this call. With `leaks` they are leaked. `there` is called as `ours` is. */
void ss_check_reset_done(struct ss_check *c, bool (*there)(const void *ptr), bool leaks,
			 const char *what, uint32_t stack);
/* Calls `fn` for each distinct finding. With `leaks` live blocks are added first, by call stack. */
void ss_check_findings(struct ss_check *c, bool leaks,
		       void (*fn)(const struct ss_finding *, void *), void *arg);
/* False: a thread has been in one of these functions for a second. The caller may be that thread,
 * in a signal handler. */
bool ss_check_idle(struct ss_check *c);
void ss_check_count(struct ss_check *c, struct ss_check_counts *out);

/* ---- words ----------------------------------------------------------------- */

/* A short name for files and suppressions: "use-after-free". */
const char *ss_fault_name(enum ss_fault fault);
/* A name of a kernel is cut to this in sentences. */
#define SS_KERNEL_NAME 1024
/* "Argument 2 of kernel k", if the site launches a kernel. False: the site launches none. */
bool ss_site_argument(const struct ss_check_site *site, char *out, size_t size);
/* The error in one sentence without a period at the end. */
void ss_fault_text(const struct ss_finding *f, char *out, size_t size);
/* The action of the call of `use`: "Used", "Freed again", "Freed". */
const char *ss_fault_did(enum ss_fault fault);
/* The way to mend the error, one sentence; "" if the stream of the free is unknown. */
void ss_fault_mend(const struct ss_finding *f, char *out, size_t size);
/* "stream 2 (0x5581, non-blocking, device 0)". */
void ss_stream_text(const struct ss_check_stream *s, char *out, size_t size);

#endif
