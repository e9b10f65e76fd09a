/* SPDX-License-Identifier: MIT */
/* Translates the calls of the application for core/check: the stream, the block, and the order that
 * a call proves. */
#include <stdlib.h>
#include <string.h>

#include "shim/check/call.h"
#include "shim/check/checker.h"
#include "shim/check/host_memory.h"
#include "shim/check/init.h"
#include "shim/check/inside.h"
#include "shim/check/operand.h"
#include "shim/check/padding.h"
#include "shim/check/quarantine.h"
#include "shim/check/read_back.h"
#include "shim/check/skips.h"
#include "shim/check/unbegun.h"
#include "shim/check/unpack.h"
#include "shim/process/log.h"
#include "trace/unwind.h"

/* Do the pools hold the address? */
static bool is_there(const void *ptr)
{
	struct ss_found found;

	return ss_find(ss_core, ptr, &found) != SS_ERR_FOREIGN;
}

static bool ours(const void *ptr, void *unused)
{
	(void)unused;
	return is_there(ptr) || ss_unmapped(ss_core, ptr);
}

/* A pointer to a freed block that the pools have released is still that block's, unless somebody
 * has got the addresses since. */
bool ss_check_ours(const void *ptr)
{
	struct ss_finding freed;

	return ours(ptr, NULL) ||
	       (ss_check_freed_block(ss_check_state, ptr, &freed) && ss_check_nobody_has(ptr));
}

static void describe(const void *tl, struct ss_check_stream *out, void *unused)
{
	enum ss_timeline_kind kind = ss_timeline_kind(tl);

	(void)unused;
	out->handle = ss_timeline_native(tl);
	out->dev = ss_timeline_device(tl);
	out->kind = kind == SS_TL_NULL        ? SS_CHECK_NULL :
		    kind == SS_TL_NONBLOCKING ? SS_CHECK_NONBLOCKING :
						SS_CHECK_BLOCKING;
}

static void start(void)
{
	unsigned tools = (unsigned)ss_options.check;
	const struct ss_check_options options = {
		.use_before_alloc = (tools & SS_CHECK_ORDER) &&
				    ss_options.check_races != SS_RACES_AFTER_FREE,
		.use_after_free = (tools & SS_CHECK_ORDER) &&
				  ss_options.check_races != SS_RACES_BEFORE_ALLOC,
		.races = tools & SS_CHECK_RACE,
		.frees = tools & SS_CHECK_FREE,
		.possible = ss_options.check_possible,
		.ours = ours,
		.describe = describe,
		.report = ss_check_report_finding,
	};

	if (!tools || !ss_call_init())
		return;
	ss_check_state = ss_check_create(&options);
	if (!ss_check_state)
		return;
	/* hipFree waits as the real call does, so that no work is pending on the bytes that
	 * hipMalloc fills with padding. */
	ss_options.free_sync = SS_FREE_SYNC_ALWAYS;
	ss_unwind_init();
	ss_unpack_open();
	ss_check_report_open();
	ss_checking = true;
	ss_fault_watch();
	ss_slow_reasons_add(1); /* each call has to take the slow path */
}

static void count(const struct ss_finding *about, uint64_t padding, void *arg)
{
	(void)about;
	(void)padding;
	++*(uint64_t *)arg;
}

static uint64_t padded_blocks(void)
{
	uint64_t n = 0;

	ss_check_padded(ss_check_state, count, &n);
	return n;
}

static bool exit_looked;

/* _exit() may be called in a signal handler, in a thread that is inside the checker. */
static void finish(void)
{
	if (!ss_checking || !ss_check_idle(ss_check_state))
		return;
	for (uint64_t n = exit_looked ? 0 : padded_blocks(); n; n--)
		ss_check_skip_bytes();
	ss_check_report_end(ss_options.check & SS_CHECK_LEAK);
}

struct list {
	struct {
		struct ss_finding about;
		uint64_t padding;
	} * at;
	size_t count, room;
};

static void list_add(const struct ss_finding *about, uint64_t padding, void *arg)
{
	struct list *l = arg;

	if (l->count == l->room) {
		size_t room = l->room ? l->room * 2 : 64;
		void *more = realloc(l->at, room * sizeof(l->at[0]));

		if (!more)
			return;
		l->at = more;
		l->room = room;
	}
	l->at[l->count].about = *about;
	l->at[l->count++].padding = padding;
}

/* exit() is about to begin: reads the padding of blocks that are still live. Other threads may go
 * on, so the blocks are listed before the check that all work has completed: then all of this
 * padding has been filled. */
static void before_exit(void)
{
	struct list l = {0};

	if (!ss_checking || !(ss_options.check & (SS_CHECK_BOUNDS | SS_CHECK_POISON |
						  SS_CHECK_INIT | SS_CHECK_UNUSED)))
		return;
	exit_looked = true;
	ss_check_padded(ss_check_state, list_add, &l);
	bool idle = ss_padding_all_idle();
	if (idle)
		ss_read_look(true); /* which fills have been lost? */
	for (size_t i = 0; i < l.count; i++)
		if (idle)
			ss_padding_read_live(&l.at[i].about, l.at[i].padding);
		else
			ss_check_skip_bytes();
	free(l.at);
	(void)ss_quarantine_empty(true);
	ss_read_look(true);
}

__attribute__((constructor)) static void init(void)
{
	ss_set_hook(SS_HOOK_EXIT, before_exit);
	ss_set_hook(SS_HOOK_START, start);
	ss_set_hook(SS_HOOK_END, finish);
}

/* ---- streams ------------------------------------------------------------------ */

void ss_check_stream_created(struct ss_timeline *tl)
{
	ss_check_stream_add(ss_check_state, tl);
}

void ss_check_stream_destroyed(struct ss_timeline *tl)
{
	ss_quarantine_stream_ends(tl);
	ss_unbegun_stream_ends(tl);
	ss_check_stream_end(ss_check_state, tl);
}

void ss_check_stream_opaque(struct ss_timeline *tl, bool hold, bool tell)
{
	if (!tl || ss_timeline_capturing(tl))
		return;
	if (tell)
		ss_check_tell(ss_check_state, tl);
	if (hold)
		ss_check_hold(ss_check_state, tl);
}

void ss_check_stream_held(struct ss_timeline *tl)
{
	if (tl && !ss_timeline_capturing(tl))
		ss_check_host_holds(ss_check_state, tl);
}

void ss_check_recording(hipEvent_t event)
{
	ss_check_record_begin(ss_check_state, event);
}

void ss_check_recorded(hipEvent_t event, struct ss_timeline *tl, bool ok)
{
	ss_check_record_end(ss_check_state, event, tl, ok);
}

void ss_check_event_tainted(hipEvent_t event, bool forever)
{
	ss_check_event_unknown(ss_check_state, event, forever);
}

void ss_check_event_gone(hipEvent_t event)
{
	ss_check_event_end(ss_check_state, event);
}

void ss_check_waits(struct ss_timeline *tl, hipEvent_t event)
{
	if (tl && !ss_timeline_capturing(tl))
		ss_check_wait(ss_check_state, tl, event);
}

void ss_check_event_reached(hipEvent_t event)
{
	ss_check_event_synced(ss_check_state, event);
}

void ss_check_device_reached(int dev)
{
	ss_read_arrived();
	ss_check_all_synced(ss_check_state, dev, ss_call_of_thread()->since);
}

void ss_check_reached(struct ss_timeline *tl)
{
	if (!tl) {
		ss_check_device_reached(-1);
		return;
	}
	ss_read_arrived();
	ss_check_stream_synced(ss_check_state, tl, ss_call_of_thread()->since);
}

void ss_check_reset(void)
{
	uint64_t before = padded_blocks(), after;

	ss_check_reset_done(ss_check_state, is_there, ss_options.check & SS_CHECK_LEAK,
			    ss_call_name(), ss_call_stack());
	ss_read_forget();
	for (after = padded_blocks(); after < before; after++)
		ss_check_skip_bytes();
}

/* ---- operands ------------------------------------------------------------------ */

/* Is this memory of the pools outside all blocks? The pools give a block more bytes than
 * requested. */
static bool is_nobodys(const void *ptr)
{
	struct ss_finding about;
	struct ss_found found;

	switch (ss_find(ss_core, ptr, &found)) {
	case SS_ERR_INVALID: return true;
	case SS_OK:
		(void)ss_check_block(ss_check_state, (void *)(uintptr_t)found.start, &about);
		return about.block && (uintptr_t)ptr - about.base > about.size;
	default: return false;
	}
}

/* Waits between this device and another one are not seen. */
static enum ss_check_access access_of(const struct ss_call *call, const struct ss_operand *o)
{
	return o->access == SS_MAY_WRITE || (call->kind & SS_CALL_PEERS) ? SS_CHECK_ANY :
	       o->access == SS_READS                                     ? SS_CHECK_READS :
									   SS_CHECK_WRITES;
}

bool ss_operand_use(struct ss_timeline *tl, const struct ss_operand *o)
{
	struct ss_call *call = ss_call_of_thread();
	const char *name = ss_call_name();
	bool fits = true;

	call->stream = tl;
	if (o->ours) {
		const struct ss_check_operand use = {.ptr = o->ptr,
						     .bytes = o->size,
						     .access = access_of(call, o),
						     .rows = o->in_rows ? &o->rows : NULL,
						     .origin = o->origin,
						     .sole = o->sole,
						     .guess = o->kind == SS_OPERAND_WORD,
						     .kernel = o->kernel,
						     .argument = o->argument,
						     .at = o->at};

		if (call->host_to && o->access == SS_READS && o->kind == SS_OPERAND_RANGE &&
		    !o->in_rows && !strncmp(name, "hipMemcpy", 9))
			ss_init_copied(tl, o->ptr, o->size, call->host_to);
		fits = ss_check_use(ss_check_state, tl, &use, name,
				    call->has_stack ? call->stack : ss_call_stack());
		if (o->size && is_nobodys(o->ptr))
			ss_check_outside(ss_check_state, tl, &use, name, ss_call_stack());
	} else if (!ss_check_is_device_memory(o->ptr)) {
		bool pageable = !ss_check_is_host_memory(o->ptr);

		/* The host may look at memory that the device writes, and so learn that the
		 * command, and all work before it, has completed. A copy with memory that is not
		 * pinned may make the host wait. Memory that the device only reads tells the host
		 * nothing. */
		call->pageable |= pageable;
		call->told |= pageable || o->access != SS_READS;
		call->to_host |= o->access == SS_WRITES;
		if (o->access == SS_WRITES)
			call->host_to = o->ptr;
		if (o->access == SS_WRITES && !pageable && !(call->kind & SS_CALL_COPIES) &&
		    (ss_options.check & SS_CHECK_ORDER))
			ss_unbegun_copy(tl);
	}
	/* Report after each operand, because another thread may look before the call returns. */
	if (call->told)
		ss_check_tell(ss_check_state, tl);
	return fits;
}

static bool touch(struct ss_timeline *tl, enum ss_access access, const void *ptr, size_t size,
		  const struct ss_check_rows *rows)
{
	struct ss_operand o = {
		.ptr = ptr, .size = size, .kind = SS_OPERAND_RANGE, .access = access};
	struct ss_call *call = ss_call_of_thread();
	bool node = call->kind & SS_CALL_NODES;

	if (rows) {
		o.in_rows = true;
		o.rows = *rows;
	}
	if (access == SS_WRITES)
		o.origin = call->origin;
	if (!tl || !ptr)
		return true;
	if (!node && !ss_timeline_capturing(tl)) {
		o.ours = ss_check_ours(ptr);
		return ss_operand_use(tl, &o);
	}
	if (!call->shared)
		ss_operand_add(&call->uses, o);
	if (!call->shared && !node)
		call->captured = tl;
	if (is_nobodys(ptr))
		ss_check_outside(ss_check_state, NULL,
				 &(struct ss_check_operand){.ptr = ptr, .bytes = size},
				 ss_call_name(), ss_call_stack());
	return ss_check_fits(ss_check_state, ptr, size, ss_call_name(), ss_call_stack());
}

/* The operands of the node that the call made. */
static const struct ss_operands *made(void)
{
	static const struct ss_operands unknown = {.lost = true};
	const struct ss_operands *uses = ss_operands_of_call();

	return uses ? uses : &unknown;
}

void ss_check_node(hipGraph_t graph, hipGraphNode_t node)
{
	ss_check_node_is(graph, node, made());
}

void ss_check_exec_node(hipGraphExec_t exec, hipGraphNode_t node)
{
	ss_check_exec_node_is(exec, node, made());
}

bool ss_check_access(struct ss_timeline *tl, enum ss_access access, const void *ptr, size_t size,
		     const struct ss_check_rows *rows)
{
	return !size || touch(tl, access, ptr, size, rows);
}

/* Bytes with the same distance to their source have the same source. */
void ss_check_source(const void *dst, const void *src, bool even)
{
	struct ss_call *call = ss_call_of_thread();
	struct ss_block_info from, to;

	if (call->shared)
		return;
	call->origin = even ? ((uintptr_t)src - (uintptr_t)dst) * 2 + 1 : 0;
	/* A copy that waits may run on the null stream of either device. */
	if ((call->kind & SS_CALL_COPIES) && ss_lookup(ss_core, src, &from) &&
	    ss_lookup(ss_core, dst, &to) && from.device != to.device)
		call->kind |= SS_CALL_PEERS;
}

/* The offset of the elements counts, because shifted elements have other bytes at the same
 * place. */
uint64_t ss_check_value_of(const void *dst, uint64_t value, unsigned element)
{
	if (element != 1 && element != 2 && element != 4)
		return 0;
	value &= ~0ull >> (64 - 8 * element);
	return (value << 8 | (uintptr_t)dst % element << 4 | element) * 2;
}

void ss_check_value_set(const void *dst, uint64_t value, unsigned element)
{
	struct ss_call *call = ss_call_of_thread();

	if (!call->shared)
		call->origin = ss_check_value_of(dst, value, element);
}

void ss_check_value(struct ss_timeline *tl, const void *ptr, size_t size)
{
	if (tl && !ss_timeline_capturing(tl)) /* such a node is never read */
		(void)touch(tl, SS_MAY_WRITE, ptr, size, NULL);
}

/* ---- the end of a call ---------------------------------------------------------------- */

void ss_check_called(hipError_t err)
{
	const struct ss_call *call = ss_call_of_thread();

	ss_check_failed(err);
	if (call->captured && err == hipSuccess)
		ss_check_captured(ss_timeline_native(call->captured), &call->uses);
	/* A call that failed has not used its operands. */
	if ((call->pageable || err != hipSuccess) && call->stream)
		ss_check_tell(ss_check_state, call->stream);
	/* For the other copies it is not documented whether they wait. */
	if (call->stream && (call->kind & SS_CALL_COPIES)) {
		if (call->to_host && err == hipSuccess)
			ss_check_stream_synced(ss_check_state, call->stream, call->since);
		else
			ss_check_tell(ss_check_state, call->stream);
	}
	if (call->kind & SS_CALL_WAITS)
		ss_check_all_synced(ss_check_state, -1, call->since);
}
