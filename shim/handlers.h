/* SPDX-License-Identifier: MIT */
/*
 * The prototypes of shim/entries.h: the exported symbols, the handler do_<name> of each, and
 * after_exit_<name> of the entries of kind GUARD. Only files that define a handler or need the
 * address of an export include it.
 */
#ifndef SS_SHIM_HANDLERS_H
#define SS_SHIM_HANDLERS_H

#include <hip/hip_runtime_api.h>

#include "shim/entries.h"

#define SS_EXPORT __attribute__((visibility("default")))

#define SS_HANDLER_SERVE(name, params) hipError_t do_##name params;
#define SS_HANDLER_HOT(name, params) hipError_t do_##name params;
#define SS_HANDLER_GUARD(name, params) \
	hipError_t do_##name params; \
	hipError_t after_exit_##name params;
#define SS_HANDLER_ALWAYS(name, params) hipError_t do_##name params;
#define SS_HANDLER_SUBMIT(name, params) hipError_t do_##name params;
#define SS_HANDLER_WATCH(name, params) hipError_t do_##name params;
#define SS_HANDLER_ERROR(name, params) hipError_t do_##name params;
#define SS_HANDLER_OBSERVER(name, params)
#define SS_HANDLER_PINNED(name, params)
#define SS_HANDLER_MAP(name, params)
#define SS_HANDLER_PASS(name, params)
#define SS_HANDLER_QUEUE(name, params)
#define SS_HANDLER_QUEUE_ANY(name, params)
#define SS_HANDLER_QUEUE_WAIT(name, params)
#define SS_HANDLER_COPY(name, params)
#define SS_HANDLER_FILL(name, params)
#define SS_HANDLER_CHECK(name, params)
#define SS_HANDLER_COPY_CHECK(name, params)
#define SS_HANDLER_QUERY(name, params)
#define SS_HANDLER_RETRY(name, params)
#define SS_HANDLER_TAKE(name, params)
#define SS_HANDLER_GIVE(name, params)
#define SS_HANDLER_GRAPH(name, params)
#define SS_HANDLER_UPLOAD(name, params)
#define SS_HANDLER_NODE(name, params)
#define SS_HANDLER_INSTANTIATE(name, params)
#define SS_HANDLER(kind, name, params) SS_HANDLER_##kind(name, params)
#define E(kind, extra, name, node, since, params, args) SS_HANDLER(kind, name, params)
SS_ENTRIES(E)
#undef E

/* Does not compile if the table disagrees with the installed HIP header. */
#define E(kind, extra, name, node, since, params, args) SS_EXPORT hipError_t name params;
SS_ENTRIES(E)
#undef E

/* Follows the handler of a HOT entry: the export is an alias of the handler, which saves a jump on
 * the hot path. */
#define SS_HOT(name) \
	extern __typeof__(do_##name) name \
		__attribute__((alias("do_" #name), visibility("default")));

#endif
