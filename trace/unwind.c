/* SPDX-License-Identifier: MIT */
/*
 * Walks a call stack. The unwinder of libgcc_s is used if it can be loaded, as most libraries are
 * compiled without frame pointers; the preload is not linked with it. Otherwise the chain of
 * frame pointers is followed as long as it stays within the thread's stack.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "trace/unwind.h"

/* The part of unwind.h that is used. The header belongs to the compiler, not to the library. */
struct _Unwind_Context;
typedef int (*trace_fn)(struct _Unwind_Context *, void *);

static int (*unwind_backtrace)(trace_fn, void *);
static uintptr_t (*unwind_get_ip)(struct _Unwind_Context *);
static uintptr_t (*unwind_get_cfa)(struct _Unwind_Context *);

void ss_unwind_init(void) {
	void *lib = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);

	if (lib) {
		*(void **)&unwind_get_ip = dlsym(lib, "_Unwind_GetIP");
		*(void **)&unwind_get_cfa = dlsym(lib, "_Unwind_GetCFA");
		if (unwind_get_ip && unwind_get_cfa) {
			*(void **)&unwind_backtrace = dlsym(lib, "_Unwind_Backtrace");
		}
	}
}

struct walk {
	const struct ss_frame *first;
	struct ss_frame *out;
	uint32_t count, max;
	bool found; /* `first` was reached; the frames before it are ours */
};

static int each_frame(struct _Unwind_Context *context, void *arg) {
	struct walk *w = arg;
	uintptr_t ip = unwind_get_ip(context);
	/* While the callback runs, this is the stack pointer of the frame, not its CFA. */
	uintptr_t sp = unwind_get_cfa(context);

	if (!w->found) {
		w->found = ip == w->first->ip && sp == w->first->sp;
		if (!w->found) {
			return 0;
		}
	}
	if (w->count == w->max || ip == 0) {
		return 5; /* _URC_END_OF_STACK; any value but 0 ends the walk */
	}
	w->out[w->count++] = (struct ss_frame){ .ip = ip, .sp = sp };
	return 0;
}

/* The end of the calling thread's stack. Reads a file and allocates, so it is asked once. */
static uintptr_t stack_end(void) {
	static _Thread_local uintptr_t end;
	pthread_attr_t attr;
	void *low;
	size_t size;

	if (!end && pthread_getattr_np(pthread_self(), &attr) == 0) {
		if (pthread_attr_getstack(&attr, &low, &size) == 0) {
			end = (uintptr_t)low + size;
		}
		pthread_attr_destroy(&attr);
	}
	return end;
}

__attribute__((no_sanitize_address))
static uint32_t follow_frame_pointers(const struct ss_frame *first, uintptr_t fp,
				      struct ss_frame *out, uint32_t max) {
	uintptr_t end = stack_end();
	uint32_t count = 0;

	out[count++] = *first;
	uintptr_t here = fp;
	while (count < max) {
		if (here < fp || here % sizeof(void *) != 0 || here + 2 * sizeof(void *) > end) {
			break;
		}
		const uintptr_t *frame = (const uintptr_t *)here;
		if (count > 1 || here != fp) {
			if (frame[1] == 0) {
				break;
			}
			out[count++] = (struct ss_frame){ .ip = frame[1] };
		}
		if (frame[0] <= here) {
			break;
		}
		here = frame[0];
	}
	return count;
}

uint32_t ss_unwind(const struct ss_frame *first, uintptr_t frame_pointer, struct ss_frame *out,
		   uint32_t max) {
	if (unwind_backtrace) {
		struct walk w = { .first = first, .out = out, .max = max };
		unwind_backtrace(each_frame, &w);
		if (w.count) {
			return w.count;
		}
	}
	return follow_frame_pointers(first, frame_pointer, out, max);
}
