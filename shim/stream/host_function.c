/* SPDX-License-Identifier: MIT */
/*
 * Host functions on streams. A function of ours calls each host function and reports when it runs.
 * No allocation waits while a host function runs (core/pool/growth_wait.c), because the host
 * function may need a lock that the allocating thread holds. A pending host function that has not
 * begun holds and needs no lock yet, so it does not count.
 *
 * A captured host function becomes a node that may run many times, and the node calls the program's
 * function directly. Then each launch of the graph counts until the launch has completed, as a wait
 * for a value does.
 *
 * Locks: none.
 */
#include <stdlib.h>

#include "shim/alloc/last_error.h"
#include "shim/handlers.h"
#include "shim/process/real.h"
#include "shim/stream/timeline.h"

struct function {
	hipHostFn_t fn; /* one of the two */
	hipStreamCallback_t callback;
	void *data;
};

static void run(void *arg)
{
	struct function f = *(struct function *)arg;

	free(arg);
	ss_host_function_begin();
	f.fn(f.data);
	ss_host_function_end();
}

static void run_callback(hipStream_t stream, hipError_t status, void *arg)
{
	struct function f = *(struct function *)arg;

	free(arg);
	ss_host_function_begin();
	f.callback(stream, status, f.data);
	ss_host_function_end();
}

/* A call that enqueues a function on a stream. */
struct put {
	struct ss_timeline *tl;
	struct function *f; /* NULL: the runtime gets the program's own function */
	struct ss_host_command host;
};

static struct put put_begin(hipStream_t stream, const struct function *f)
{
	struct put p = {.tl = ss_stream_or_null(stream)};

	ss_observer_add(-1, SS_OBSERVER_HOSTFUNC);
	if (unlikely(ss_checking)) {
		ss_check_stream_opaque(p.tl, false, true);
		ss_check_stream_held(p.tl);
	}
	/* After a bypass the stream may be captured unknown to us. */
	if (p.tl && (f->fn || f->callback) && ss_options.growth_wait_ms && !ss_distrusted(ss_core))
		p.f = malloc(sizeof(*p.f));
	if (p.f && !ss_capture_hold(ss_core, p.tl)) {
		free(p.f);
		p.f = NULL;
	}
	if (p.f)
		*p.f = *f;
	else
		p.host = ss_host_command_begin(stream);
	return p;
}

static hipError_t put_end(const struct put *p, hipError_t err)
{
	if (p->f)
		ss_capture_release(p->tl);
	ss_host_command_end(&p->host, err == hipSuccess);
	if (err != hipSuccess)
		free(p->f);
	return ss_result(err);
}

#define RETURN_PUT(handle, of_fn, of_callback, ours, name, stream, fn, data, ...) do { \
	const struct function f_ = {of_fn, of_callback, data}; \
	const struct put p_ = put_begin(handle, &f_); \
	return put_end(&p_, p_.f ? REAL(name, stream, ours, p_.f, ##__VA_ARGS__) : \
				   REAL(name, stream, fn, data, ##__VA_ARGS__)); \
} while (0)

hipError_t do_hipLaunchHostFunc(hipStream_t stream, hipHostFn_t fn, void *data)
{
	RETURN_PUT(stream, fn, NULL, run, hipLaunchHostFunc, stream, fn, data);
}

hipError_t do_hipLaunchHostFunc_spt(hipStream_t stream, hipHostFn_t fn, void *data)
{
	RETURN_PUT(ss_spt_stream(stream), fn, NULL, run, hipLaunchHostFunc_spt, stream, fn, data);
}

hipError_t do_hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t fn, void *data,
				   unsigned int flags)
{
	RETURN_PUT(stream, NULL, fn, run_callback, hipStreamAddCallback, stream, fn, data, flags);
}

hipError_t do_hipStreamAddCallback_spt(hipStream_t stream, hipStreamCallback_t fn, void *data,
				       unsigned int flags)
{
	RETURN_PUT(ss_spt_stream(stream), NULL, fn, run_callback, hipStreamAddCallback_spt, stream,
		   fn, data, flags);
}
