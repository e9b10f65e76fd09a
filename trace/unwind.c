/* SPDX-License-Identifier: MIT */
/*
 * Walks a call stack. The unwinder of libgcc_s is used if it can be loaded, as most libraries are
 * compiled without frame pointers; the preload is not linked with libgcc_s. Otherwise the chain of
 * frame pointers is followed as long as it stays within the thread's stack.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "trace/unwind.h"

/* The part of unwind.h that is used. The header belongs to the compiler, not to the library. */
struct _Unwind_Context;
typedef int (*trace_fn)(struct _Unwind_Context *, void *);

struct unwinder {
	int (*backtrace)(trace_fn, void *);
	uintptr_t (*get_ip)(struct _Unwind_Context *);
	uintptr_t (*get_cfa)(struct _Unwind_Context *);
};

static struct unwinder found;
static atomic_bool is_found; /* `found` is complete */

void ss_unwind_init(void)
{
	struct unwinder u;
	void *lib = atomic_load(&is_found) ? NULL : dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		return;
	*(void **)&u.backtrace = dlsym(lib, "_Unwind_Backtrace");
	*(void **)&u.get_ip = dlsym(lib, "_Unwind_GetIP");
	*(void **)&u.get_cfa = dlsym(lib, "_Unwind_GetCFA");
	if (u.backtrace && u.get_ip && u.get_cfa) {
		static atomic_flag writing = ATOMIC_FLAG_INIT;
		/* Only one of several threads stores the result */
		if (!atomic_flag_test_and_set(&writing)) {
			found = u;
			atomic_store(&is_found, true);
		}
	}
}

struct walk {
	const struct ss_frame *first;
	bool (*each)(struct ss_frame frame, void *arg);
	void *arg;
	bool reached; /* `first` was reached; the frames before it are ours */
};

static int each_frame(struct _Unwind_Context *context, void *arg)
{
	struct walk *w = arg;
	/* While the callback runs, the CFA is the stack pointer of the frame. */
	struct ss_frame frame = {.ip = found.get_ip(context), .sp = found.get_cfa(context)};

	w->reached = w->reached || (frame.ip == w->first->ip && frame.sp == w->first->sp);
	if (!w->reached || (frame.ip != 0 && w->each(frame, w->arg)))
		return 0;
	return 5; /* _URC_END_OF_STACK; any value but 0 ends the walk */
}

/* The end of the calling thread's stack. Reads a file and allocates, so the result is kept. */
static uintptr_t stack_end(void)
{
	static _Thread_local uintptr_t end __attribute__((tls_model("initial-exec")));
	pthread_attr_t attr;
	void *low;
	size_t size;

	if (!end && pthread_getattr_np(pthread_self(), &attr) == 0) {
		if (pthread_attr_getstack(&attr, &low, &size) == 0)
			end = (uintptr_t)low + size;
		pthread_attr_destroy(&attr);
	}
	return end;
}

__attribute__((no_sanitize_address)) static void follow_frame_pointers(struct walk *w, uintptr_t fp)
{
	uintptr_t end = stack_end();
	struct ss_frame frame = *w->first;

	/* Each frame starts with the caller's frame pointer; the return address is above it. */
	while (w->each(frame, w->arg)) {
		uintptr_t next = fp + 2 * sizeof(void *) <= end ? *(const uintptr_t *)fp : 0;
		if (next <= fp || next % sizeof(void *) != 0 || next + 2 * sizeof(void *) > end)
			return;
		fp = next;
		frame = (struct ss_frame){.ip = ((const uintptr_t *)fp)[1]};
		if (frame.ip == 0)
			return;
	}
}

void ss_unwind(const struct ss_frame *first, uintptr_t frame_pointer,
	       bool (*each)(struct ss_frame frame, void *arg), void *arg)
{
	struct walk w = {.first = first, .each = each, .arg = arg};

	if (atomic_load_explicit(&is_found, memory_order_acquire))
		found.backtrace(each_frame, &w);
	if (!w.reached)
		follow_frame_pointers(&w, frame_pointer);
}
