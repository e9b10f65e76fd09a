/* SPDX-License-Identifier: MIT */
/*
 * SOMASHIM_API_TABLE puts our functions into the one table through which every export of AMD's own
 * builds jumps. Such a runtime hands the table to rocprofiler-register in its first call, so that a
 * tool may replace entries. With our functions in the table no call can bypass the shim, neither by
 * dlsym() nor by hipGetProcAddress nor from an RTLD_LOCAL copy.
 *
 * We intercept rocprofiler_register_library_api_table and do not register as a tool
 * (rocprofiler_set_api_table), because tools are loaded only for a profiler, and the shim would
 * count as one. A profiler that comes after us wraps our functions and sees the program's calls.
 *
 * This runs inside the runtime's own start, so it must not call HIP.
 *
 * Locks: none; the runtime's start is serialized by the runtime.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/rocm/copies.h"
#include "driver/rocm/resolve.h"
#include "shim/handlers.h"
#include "shim/process/bypass.h"
#include "shim/process/log.h"
#include "shim/process/real.h"
#include "shim/process/report.h"
#include "shim/process/service.h"
#include "shim/route/api_table.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* rocprofiler-register.h: the result if there is no tool. */
#define NO_TOOLS 1

struct table {
	uint64_t size; /* bytes, this field included */
	void *entry[];
};

static const struct {
	const char *name;
	unsigned at;
	void *ours;
} slots[] = {
#define T(name, at) { #name, at, (void *)name },
	SS_TABLE(T)
#undef T
};

/* Every entry but the C++ names and an old one has a position in the table. If this does not
 * compile, api_table.h lacks a position; hip_api_trace.hpp has it. */
enum {
#define T(name, at) HAS_##name,
	SS_TABLE(T)
#undef T
		HAS_SS_EXT_MODULE_LAUNCH,
	HAS_SS_HCC_MODULE_LAUNCH,
	HAS_hipGetDeviceProperties,
	HAS_ALL
};
#define E(kind, extra, name, node, since, params, args) + (HAS_##name < HAS_ALL)
_Static_assert((0 SS_ENTRIES(E)) == HAS_ALL, "api_table.h lacks a position");
#undef E

#define SLOTS (sizeof(slots) / sizeof(slots[0]))

static struct ss_real_fn taken[SLOTS];

static bool wanted(void)
{
	struct ss_options *options = malloc(sizeof(*options)); /* too large for some stacks */
	bool is;

	if (!options)
		return false;
	ss_options_read(options, environ, NULL);
	is = options->api_table && !options->disable && !ss_copy_aside();
	free(options);
	return is;
}

/* The base of the loaded object that holds an address; NULL: none does. */
static void *object_of(const void *p)
{
	Dl_info info;

	return p && dladdr(p, &info) ? info.dli_fbase : NULL;
}

/* Replaces all entries or none: if an entry is not a function of the library that registers the
 * table, the table is not the one that we know. */
static bool patch(struct table *t, const void *home)
{
	size_t have = t->size / sizeof(void *);
	unsigned n = 0;

	for (size_t i = 0; i < SLOTS; i++) {
		/* The slot of a function that was removed from HIP stays NULL. */
		if (slots[i].at + 1 >= have || !t->entry[slots[i].at])
			continue;
		if (object_of(t->entry[slots[i].at]) != home)
			return false;
		taken[n++] = (struct ss_real_fn){slots[i].name, t->entry[slots[i].at]};
	}
	if (!n)
		return false;
	/* The real functions must be known before the first call reaches our functions. */
	ss_runtime_set(taken, n);
	for (size_t i = 0; i < SLOTS; i++)
		if (slots[i].at + 1 < have && t->entry[slots[i].at])
			t->entry[slots[i].at] = slots[i].ours;
	ss_bypass_table_taken();
	ss_report_add(&somashim_report.r.route[SS_ROUTE_TABLE]);
	return true;
}

SS_EXPORT int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void),
						     uint32_t version, void **tables,
						     uint64_t count, uint64_t *id);

int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void),
					   uint32_t version, void **tables, uint64_t count,
					   uint64_t *id)
{
	static atomic_bool done;
	__typeof__(rocprofiler_register_library_api_table) *next;

	/* "hip_compiler" is another table, without functions of ours. A second "hip" is a
	 * second runtime (process/bypass.c). */
	if (name && !strcmp(name, "hip") && tables && count && tables[0] && wanted() &&
	    !atomic_exchange(&done, true) && !patch(tables[0], object_of((void *)import))) {
		ss_shim_log("SOMASHIM_API_TABLE: the runtime's table is not as expected and is "
			    "left alone");
		atomic_store(&done, false);
	}
	next = (__typeof__(next))ss_register_symbol("rocprofiler_register_library_api_table");
	return next ? next(name, import, version, tables, count, id) : NO_TOOLS;
}
