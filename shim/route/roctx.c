/* SPDX-License-Identifier: MIT */
/*
 * Ranges and marks of roctx, which name the phases of a program. These ranges become phases of the
 * recording, and are passed on to the real library, if the process has one, so a profiler sees the
 * same as without us.
 *
 * Locks: none of its own.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/compiler.h"
#include "driver/rocm/loaded_object.h"
#include "shim/handlers.h"
#include "trace/writer.h"

typedef uint64_t range_id;

SS_EXPORT void roctxMarkA(const char *message);
SS_EXPORT int roctxRangePushA(const char *message);
SS_EXPORT int roctxRangePop(void);
SS_EXPORT range_id roctxRangeStartA(const char *message);
SS_EXPORT void roctxRangeStop(range_id id);

/* The functions of the real library, which may lack some. The functions are stored before `known`;
 * threads that look at the same time store the same. */
static struct {
	void (*_Atomic mark)(const char *message);
	int (*_Atomic push)(const char *message);
	int (*_Atomic pop)(void);
	range_id (*_Atomic start)(const char *message);
	void (*_Atomic stop)(range_id id);
} real;
static atomic_bool known;
static _Atomic unsigned long long looked; /* how many objects had been loaded at the last look */

struct look {
	char path[PATH_MAX]; /* path of the first other object that has them; "": none */
	unsigned long long loaded;
	bool count_only;
};

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct look *l = arg;

	(void)size;
	l->loaded = info->dlpi_adds;
	if (l->count_only)
		return 1;
	if (!ss_elf_holds(info, (uintptr_t)roctxRangePushA) &&
	    ss_elf_exports(info, "roctxRangePushA") && info->dlpi_name)
		(void)snprintf(l->path, sizeof(l->path), "%s", info->dlpi_name);
	return l->path[0] != '\0';
}

typedef void any_function(void);

static any_function *symbol(void *library, const char *name)
{
	any_function *f;

	*(void **)&f = dlsym(library, name);
	return f;
}

static void take_from(void *library)
{
	atomic_store(&real.mark, (void (*)(const char *))symbol(library, "roctxMarkA"));
	atomic_store(&real.push, (int (*)(const char *))symbol(library, "roctxRangePushA"));
	atomic_store(&real.pop, (int (*)(void))symbol(library, "roctxRangePop"));
	atomic_store(&real.start, (range_id(*)(const char *))symbol(library, "roctxRangeStartA"));
	atomic_store(&real.stop, (void (*)(range_id))symbol(library, "roctxRangeStop"));
	atomic_store(&known, true);
}

/* The library may belong to a plug-in, so that RTLD_NEXT does not find it, and may be loaded after
 * the first call. The library stays loaded from now on. Several threads that look find the same. */
static bool find_real(void)
{
	struct look l;
	void *library;

	if (likely(atomic_load(&known)))
		return true;
	l.count_only = true;
	dl_iterate_phdr(look_at, &l);
	if (l.loaded == atomic_load(&looked))
		return false;
	l.count_only = false;
	l.path[0] = '\0';
	dl_iterate_phdr(look_at, &l);
	library = l.path[0] ? dlopen(l.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	if (library)
		take_from(library);
	atomic_store(&looked, l.loaded);
	return library != NULL;
}

void roctxMarkA(const char *message)
{
	ss_trace_phase(SS_TRACE_PHASE_MARK, 0, message);
	if (find_real() && real.mark)
		real.mark(message);
}

/* Returns the level of the range, from 0. Without a library levels are not counted. */
int roctxRangePushA(const char *message)
{
	ss_trace_phase(SS_TRACE_PHASE_PUSH, 0, message);
	return find_real() && real.push ? real.push(message) : 0;
}

int roctxRangePop(void)
{
	ss_trace_phase(SS_TRACE_PHASE_POP, 0, NULL);
	return find_real() && real.pop ? real.pop() : 0;
}

range_id roctxRangeStartA(const char *message)
{
	static _Atomic range_id next;
	range_id id = find_real() && real.start ? real.start(message) : atomic_fetch_add(&next, 1);

	ss_trace_phase(SS_TRACE_PHASE_START, id, message);
	return id;
}

void roctxRangeStop(range_id id)
{
	ss_trace_phase(SS_TRACE_PHASE_STOP, id, NULL);
	if (find_real() && real.stop)
		real.stop(id);
}
