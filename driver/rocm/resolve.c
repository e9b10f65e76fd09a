/* SPDX-License-Identifier: MIT */
/*
 * Finds the HIP and HSA runtimes that the process has loaded.
 *
 * RTLD_NEXT finds nothing if the runtime was loaded with an RTLD_LOCAL plugin, and the file
 * may be called libamdhip64.so.5, .6, .7 or (in torch wheels) just .so. So we search the list
 * of loaded objects for one that exports hipMalloc, and use the handle of that object.
 * Objects after us in the list are preferred: one before us is another preload, which calls
 * us, and calling it from here would never end.
 *
 * Locks: publish_lock, held only while results are stored. The loader is asked without it,
 * because a thread may be in a constructor under dlopen() and hold the loader's lock. Two
 * threads that search at the same time find the same objects.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/rocm/loaded_object.h"
#include "driver/rocm/guard.h"
#include "driver/rocm/resolve.h"

#define MAX_OBJECTS 8

__thread struct ss_tls ss_tls __attribute__((tls_model("initial-exec")));
_Atomic int ss_captures, ss_captures_blocking;

struct objects {
	_Atomic int ready; /* number of handles; 0 = nothing was found yet */
	void *handle[MAX_OBJECTS];
};

static pthread_mutex_t publish_lock = PTHREAD_MUTEX_INITIALIZER;
static struct objects hip, hsa, tools;
static const struct ss_real_fn *overrides;
static atomic_uint override_count;
static struct ss_runtime runtime;
static atomic_bool runtime_known;

/* ---- the list ----------------------------------------------------------- */

struct search {
	const char *symbol;
	bool passed_us;
	int before, count;
	char *name[MAX_OBJECTS * 2]; /* in the order of the loader */
};

static int collect(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;

	(void)size;
	if (ss_elf_holds(info, (uintptr_t)&ss_runtime_find)) {
		s->passed_us = true;
		s->before = s->count;
		return 0;
	}
	/* The program itself has an empty name, so dlopen() cannot find it. */
	if (s->count == MAX_OBJECTS * 2 || !info->dlpi_name[0] || !ss_elf_exports(info, s->symbol))
		return 0;
	s->name[s->count] = strdup(info->dlpi_name);
	if (s->name[s->count])
		s->count++;
	return 0;
}

/* dlopen() must not be called while the list is walked, so the walk collects names. `path`
 * gets the name of the first object; NULL: not wanted. */
static bool find(struct objects *o, const char *symbol, char *path, size_t path_size)
{
	struct search s = {.symbol = symbol};
	void *handle[MAX_OBJECTS];
	int n = 0, first;

	dl_iterate_phdr(collect, &s);
	first = s.passed_us && s.before < s.count ? s.before : 0;
	for (int i = first; i < s.count && n < MAX_OBJECTS; i++) {
		/* The handle also keeps the object from being unloaded. */
		void *h = dlopen(s.name[i], RTLD_NOLOAD | RTLD_LAZY);

		if (!h)
			continue;
		if (n == 0 && path)
			snprintf(path, path_size, "%s", s.name[i]);
		handle[n++] = h;
	}
	for (int i = 0; i < s.count; i++)
		free(s.name[i]);
	if (!n)
		return false;
	pthread_mutex_lock(&publish_lock);
	if (!atomic_load(&o->ready)) {
		memcpy(o->handle, handle, (size_t)n * sizeof(handle[0]));
		atomic_store_explicit(&o->ready, n, memory_order_release);
	}
	pthread_mutex_unlock(&publish_lock);
	return true;
}

static void *symbol_in(struct objects *o, const char *name)
{
	int n = atomic_load_explicit(&o->ready, memory_order_acquire);

	for (int i = 0; i < n; i++) {
		void *p = dlsym(o->handle[i], name);

		if (p)
			return p;
	}
	return NULL;
}

static int soname_major(const char *path)
{
	const char *so = strstr(path, ".so.");

	return so ? atoi(so + 4) : 0;
}

bool ss_runtime_find(void)
{
	struct ss_runtime found = {0};

	if (atomic_load_explicit(&runtime_known, memory_order_acquire))
		return true;
	if (!find(&hip, "hipMalloc", found.path, sizeof(found.path)))
		return false;
	found.major = soname_major(found.path);
	if (!found.major)
		found.major = 5;
	pthread_mutex_lock(&publish_lock);
	if (!atomic_load(&runtime_known)) {
		runtime = found;
		atomic_store_explicit(&runtime_known, true, memory_order_release);
	}
	pthread_mutex_unlock(&publish_lock);
	return true;
}

/* Some releases refuse to say so without a device; then the soname's number stays. */
void ss_runtime_ask_version(void)
{
	int (*get_version)(int *) = (int (*)(int *))symbol_in(&hip, "hipRuntimeGetVersion");
	int v = 0;

	ss_enter();
	if (get_version && get_version(&v) != 0)
		v = 0;
	ss_leave();
	pthread_mutex_lock(&publish_lock);
	if (v > 0 && !runtime.version) {
		/* major * 10^7 + minor * 10^5 + patch (hip_version.h) */
		runtime.version = v;
		runtime.minor = v / 100000 % 100;
		runtime.major = v / 10000000;
	}
	pthread_mutex_unlock(&publish_lock);
}

const struct ss_runtime *ss_runtime(void)
{
	return &runtime;
}

void ss_runtime_set(const struct ss_real_fn *list, unsigned count)
{
	overrides = list;
	atomic_store_explicit(&override_count, count, memory_order_release);
}

void *ss_runtime_symbol(const char *name)
{
	unsigned n = atomic_load_explicit(&override_count, memory_order_acquire);

	for (unsigned i = 0; i < n; i++)
		if (!strcmp(overrides[i].name, name))
			return overrides[i].fn;
	return symbol_in(&hip, name);
}

static bool versioned_in(struct objects *o, const char *name, const char *version)
{
	int n = atomic_load_explicit(&o->ready, memory_order_acquire);

	for (int i = 0; i < n; i++)
		if (dlvsym(o->handle[i], name, version))
			return true;
	return false;
}

bool ss_runtime_versioned(const char *name, const char *version)
{
	return (ss_runtime_find() && versioned_in(&hip, name, version)) ||
	       ((atomic_load(&hsa.ready) || find(&hsa, "hsa_init", NULL, 0)) &&
		versioned_in(&hsa, name, version));
}

void *ss_hsa_symbol(const char *name)
{
	void *p = NULL;

	/* The HSA runtime that HIP depends on comes first, because HIP knows its memory. */
	if (atomic_load_explicit(&hip.ready, memory_order_acquire))
		p = symbol_in(&hip, name);
	if (!p && (atomic_load(&hsa.ready) || find(&hsa, "hsa_init", NULL, 0)))
		p = symbol_in(&hsa, name);
	return p;
}

void *ss_register_symbol(const char *name)
{
	if (!atomic_load(&tools.ready) && !find(&tools, name, NULL, 0))
		return NULL;
	return symbol_in(&tools, name);
}
