/* SPDX-License-Identifier: MIT */
/* From the calls of the application to core/check: which stream, which block, and what a call
 * proves. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/check/checker.h"
#include "shim/check/host_memory.h"
#include "shim/check/inside.h"
#include "shim/check/operand.h"
#include "shim/check/padding.h"
#include "shim/check/quarantine.h"
#include "shim/check/read_back.h"
#include "shim/check/skips.h"
#include "shim/check/unpack.h"
#include "shim/process/log.h"
#include "trace/unwind.h"

/* The call that a thread is in. */
struct call {
	const char *name;
	unsigned kind; /* ss_call_kind() */
	uint32_t stack;
	bool has_stack;
	struct ss_timeline *stream; /* of its last access, which is known */
	void *freed;                /* a block that it is freeing */
	void *gone;                 /* memory of the host that it is freeing */
	bool pageable;              /* it uses memory that is neither ours nor known to be pinned */
	bool told;                  /* the host may see that it has ended, or waits for it */
	bool to_host;               /* it copies to the host */
	struct ss_timeline *captured; /* it became a node of a graph on this stream */
	uint64_t since;
	struct ss_operands uses; /* what that node uses, or one that the call makes, or a kernel */
	struct ss_stack_bounds bounds; /* of the thread, not of the call */
};

static struct call spare; /* of threads for which there is no host memory */
static pthread_key_t calls;
static __thread __attribute__((tls_model("initial-exec"))) struct call *mine;

static void forget(void *gone)
{
	mine = NULL;
	ss_operands_drop(&((struct call *)gone)->uses);
	free(gone);
}

/* Only programs that are checked pay for it, since all libraries share the room of static TLS. */
static struct call *call_of_thread(void)
{
	if (!mine) {
		mine = calloc(1, sizeof(*mine));
		if (mine)
			pthread_setspecific(calls, mine);
	}
	return mine ? mine : &spare;
}

/* Do the pools hold it? */
static bool is_there(const void *ptr)
{
	struct ss_found found;

	return ss_find(ss_core, ptr, &found) != SS_ERR_FOREIGN;
}

bool ss_check_ours(const void *ptr)
{
	return is_there(ptr) || ss_unmapped(ss_core, ptr);
}

static bool ours(const void *ptr, void *unused)
{
	(void)unused;
	return ss_check_ours(ptr);
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
		.frees = tools & SS_CHECK_FREE,
		.possible = ss_options.check_possible,
		.ours = ours,
		.describe = describe,
		.report = ss_check_report_finding,
	};

	if (!tools || pthread_key_create(&calls, forget))
		return;
	ss_check_state = ss_check_create(&options);
	if (!ss_check_state)
		return;
	/* hipFree waits as the real call does, so that nothing is in flight where hipMalloc fills
	 * padding. */
	ss_options.free_sync = SS_FREE_SYNC_ALWAYS;
	ss_unwind_init();
	ss_unpack_open();
	ss_check_report_open();
	ss_checking = true;
	ss_fault_watch();
	ss_slow_reasons_add(1); /* each call has to come by here */
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

/* exit() is about to begin: the padding of what is still live is read. Other threads may go on, so
 * the blocks are listed before it is asked whether all work has ended: then all of this padding has
 * been filled. */
static void before_exit(void)
{
	struct list l = {0};

	if (!ss_checking || !(ss_options.check & (SS_CHECK_BOUNDS | SS_CHECK_POISON)))
		return;
	exit_looked = true;
	ss_check_padded(ss_check_state, list_add, &l);
	bool idle = ss_padding_all_idle();
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

/* ---- the call ---------------------------------------------------------------- */

void ss_check_call_begins(const char *name, unsigned kind)
{
	struct call *call = call_of_thread();

	memset(call, 0, offsetof(struct call, uses));
	call->uses.count = 0;
	call->uses.lost = false;
	call->name = name;
	call->kind = kind;
	call->since = ss_check_now(ss_check_state);
	if (ss_distrusted(ss_core))
		ss_check_blind(ss_check_state);
	if (kind & SS_CALL_POOLS)
		(void)ss_quarantine_empty(false);
}

void ss_check_called(hipError_t err)
{
	const struct call *call = call_of_thread();

	if (call->captured && err == hipSuccess)
		ss_check_captured(ss_timeline_native(call->captured), &call->uses);
	/* What a call that failed was about to use is not used. */
	if ((call->pageable || err != hipSuccess) && call->stream)
		ss_check_tell(ss_check_state, call->stream);
	/* Of the others nobody promises whether they wait. */
	if (call->stream && (call->kind & SS_CALL_COPIES)) {
		if (call->to_host && err == hipSuccess)
			ss_check_stream_synced(ss_check_state, call->stream, call->since);
		else
			ss_check_tell(ss_check_state, call->stream);
	}
	if (call->kind & SS_CALL_WAITS)
		ss_check_all_synced(ss_check_state, -1, call->since);
}

static const char *name_of_call(void)
{
	const struct call *call = call_of_thread();

	return call->name ? call->name : "a HIP call";
}

struct ss_operands *ss_operands_of_call(void)
{
	struct call *call = call_of_thread();

	return call == &spare ? NULL : &call->uses;
}

static uint32_t stack_of_call(void)
{
	struct call *call = call_of_thread();
	struct ss_stack_bounds none = {0};

	if (!call->has_stack)
		call->stack = ss_check_stack(call == &spare ? &none : &call->bounds);
	call->has_stack = true;
	return call->stack;
}

/* ---- streams ------------------------------------------------------------------ */

void ss_check_stream_created(struct ss_timeline *tl)
{
	ss_check_stream_add(ss_check_state, tl);
}

void ss_check_stream_destroyed(struct ss_timeline *tl)
{
	ss_quarantine_stream_ends(tl);
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

/* Some of what was read back may have arrived. */
static void look(void)
{
	if (ss_options.check & (SS_CHECK_BOUNDS | SS_CHECK_POISON))
		ss_read_look(false);
}

void ss_check_device_reached(int dev)
{
	look();
	ss_check_all_synced(ss_check_state, dev, call_of_thread()->since);
}

void ss_check_reached(struct ss_timeline *tl)
{
	if (!tl) {
		ss_check_device_reached(-1);
		return;
	}
	look();
	ss_check_stream_synced(ss_check_state, tl, call_of_thread()->since);
}

void ss_check_reset(void)
{
	uint64_t before = padded_blocks(), after;

	ss_check_reset_done(ss_check_state, is_there, ss_options.check & SS_CHECK_LEAK,
			    name_of_call(), stack_of_call());
	ss_read_forget();
	for (after = padded_blocks(); after < before; after++)
		ss_check_skip_bytes();
}

/* ---- memory -------------------------------------------------------------------- */

size_t ss_check_size(size_t size)
{
	size_t padding = ss_padding_bytes(), room;

	/* The end of a block, which kernels are often given, is never the start of another one. */
	return size && !__builtin_add_overflow(size, padding ? padding : 1, &room) ? room : size;
}

void ss_check_allocated(struct ss_timeline *tl, void *ptr, size_t size, size_t room)
{
	bool ask = (ss_options.check & SS_CHECK_GUARD) || ss_options.check_front;
	struct ss_block_info info = {0};
	size_t front = 0, behind;
	bool filled = false;

	if (ask && ss_lookup(ss_core, ptr, &info)) {
		room = info.guarded ? info.room : room;
		front = ss_padding_front(info.front);
	}
	behind = ss_padding_bytes() ? room - size : 0;
	if (front || behind)
		filled = ss_padding_fill(tl, ptr, size, front, behind);
	struct ss_mark mark = tl ? ss_timeline_mark(tl) : (struct ss_mark){0};

	ss_check_alloc(ss_check_state, ptr, size, front, room, tl, name_of_call(), stack_of_call());
	if (filled)
		ss_check_filled(ss_check_state, ptr, behind, mark.slot, mark.n);
}

size_t ss_check_asked(const void *ptr, size_t size)
{
	struct ss_finding about;

	(void)ss_check_block(ss_check_state, ptr, &about);
	return about.block ? about.size : size;
}

uint64_t ss_check_left(const void *ptr, uint64_t left)
{
	struct ss_finding about;
	uint64_t at;

	(void)ss_check_block(ss_check_state, ptr, &about);
	at = (uintptr_t)ptr - about.base;
	return !about.block ? left : at < about.size ? about.size - at : 0;
}

static void read_padding(struct ss_timeline *tl, void *ptr)
{
	struct ss_finding about;
	uint64_t padding = ss_check_block(ss_check_state, ptr, &about);

	if (!padding && !about.front)
		return;
	about.free = (struct ss_check_site){.what = name_of_call(), .stack = stack_of_call()};
	ss_padding_read(tl, &about, padding);
}

void ss_check_freeing(struct ss_timeline *tl, void *ptr)
{
	look();
	if (ss_options.check & SS_CHECK_BOUNDS)
		read_padding(tl, ptr);
	if (ss_check_free(ss_check_state, ptr, tl, name_of_call(), stack_of_call()))
		call_of_thread()->freed = ptr;
}

bool ss_check_not_freed(void *ptr)
{
	if (call_of_thread()->freed != ptr)
		return false;
	ss_check_free_failed(ss_check_state, ptr);
	return true;
}

void ss_check_freed(struct ss_timeline *tl, void *ptr, bool ok)
{
	struct ss_check_site first;

	if (!ok && ss_check_not_freed(ptr))
		return;
	if (!tl && ss_check_is_pinned(ptr)) /* hipFree, which some releases let do it */
		ss_check_wrong_free(ss_check_state, ptr, name_of_call(), stack_of_call());
	else if (!ok && ss_check_host_memory_was(ptr, &first))
		ss_check_freed_twice(ss_check_state, ptr, &first, name_of_call(), stack_of_call());
	else if (!ok)
		ss_check_bad_free(ss_check_state, ptr, tl, name_of_call(), stack_of_call());
	if (ok)
		ss_check_host_memory_gone(ptr);
}

void ss_check_host_memory_gone(void *ptr)
{
	struct ss_check_site site = {.what = name_of_call(), .stack = stack_of_call()};

	call_of_thread()->gone = ss_check_host_memory_end(ptr, &site) ? ptr : NULL;
}

void ss_check_host_memory_kept(void *ptr)
{
	if (call_of_thread()->gone == ptr)
		ss_check_host_memory_back(ptr);
}

void ss_check_host_free(void *ptr)
{
	struct ss_finding about;

	(void)ss_check_block(ss_check_state, ptr, &about);
	if (about.block)
		ss_check_wrong_free(ss_check_state, ptr, name_of_call(), stack_of_call());
}

void ss_check_pool_destroyed(hipMemPool_t handle)
{
	ss_check_pool_end(ss_check_state, handle, name_of_call(), stack_of_call());
}

void ss_check_pool_used(hipMemPool_t handle)
{
	ss_check_pool_use(ss_check_state, handle, name_of_call(), stack_of_call());
}

/* Is it memory of the pools that no block has? The pools give a block more than it asks for. */
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

bool ss_operand_use(struct ss_timeline *tl, const struct ss_operand *o)
{
	struct call *call = call_of_thread();
	const char *name = name_of_call();
	bool fits = true;

	call->stream = tl;
	if (o->ours) {
		const struct ss_check_operand use = {.ptr = o->ptr,
						     .bytes = o->size,
						     .guess = o->kind == SS_OPERAND_WORD,
						     .kernel = o->kernel,
						     .argument = o->argument,
						     .at = o->at};

		fits = ss_check_use(ss_check_state, tl, &use, name,
				    call->has_stack ? call->stack : stack_of_call());
		if (o->size && is_nobodys(o->ptr))
			ss_check_outside(ss_check_state, tl, &use, name, stack_of_call());
	} else if (!ss_check_is_device_memory(o->ptr)) {
		bool pageable = !ss_check_is_host_memory(o->ptr);

		/* The host may look at memory that the device writes, and so learn that the command
		 * has ended, and with it all before it. A copy with memory that is not pinned may
		 * make the host wait. From what the device only reads the host learns nothing. */
		call->pageable |= pageable;
		call->told |= pageable || o->access != SS_READS;
		call->to_host |= o->access == SS_WRITES;
	}
	/* Behind each operand, as another thread may look before the call returns. */
	if (call->told)
		ss_check_tell(ss_check_state, tl);
	return fits;
}

static bool touch(struct ss_timeline *tl, enum ss_access access, const void *ptr, size_t size)
{
	struct ss_operand o = {
		.ptr = ptr, .size = size, .kind = SS_OPERAND_RANGE, .access = access};
	struct call *call = call_of_thread();
	bool node = call->kind & SS_CALL_NODES;

	if (!tl || !ptr)
		return true;
	if (!node && !ss_timeline_capturing(tl)) {
		o.ours = ss_check_ours(ptr);
		return ss_operand_use(tl, &o);
	}
	if (call != &spare)
		ss_operand_add(&call->uses, o);
	if (call != &spare && !node)
		call->captured = tl;
	if (is_nobodys(ptr))
		ss_check_outside(ss_check_state, NULL,
				 &(struct ss_check_operand){.ptr = ptr, .bytes = size},
				 name_of_call(), stack_of_call());
	return ss_check_fits(ss_check_state, ptr, size, name_of_call(), stack_of_call());
}

/* What the node that the call made uses. */
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

bool ss_check_access(struct ss_timeline *tl, enum ss_access access, const void *ptr, size_t size)
{
	return !size || touch(tl, access, ptr, size);
}

void ss_check_value(struct ss_timeline *tl, const void *ptr, size_t size)
{
	if (tl && !ss_timeline_capturing(tl)) /* such a node is never read */
		(void)touch(tl, SS_MAY_WRITE, ptr, size);
}
