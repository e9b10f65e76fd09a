/* SPDX-License-Identifier: MIT */
/*
 * Finds the HIP and HSA runtimes that the process has loaded, and the real function of each name.
 *
 * RTLD_NEXT finds nothing if the runtime was loaded with an RTLD_LOCAL plugin, and may find another
 * copy of this library (copies.h). So we search the list of loaded objects for those that export
 * hipMalloc; the file may be called libamdhip64.so.5, .6, .7 or (in torch wheels) just .so. Objects
 * after us in the list are preferred: an object before us is another preload, which calls us, and a
 * call of that preload from here would never end.
 *
 * Another preload after us may define some of the names only. If the runtime is in the global
 * scope, a call by name would reach that preload first. So each name comes from the first object
 * that has it, among the objects that started with the program and the runtimes.
 *
 * Locks: publish_lock, held only while results are stored. The loader is asked without this lock,
 * because a thread may be in a constructor under dlopen() and hold the loader's lock. Two threads
 * that search at the same time find the same objects.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/rocm/copies.h"
#include "driver/rocm/guard.h"
#include "driver/rocm/loaded_object.h"
#include "driver/rocm/resolve.h"

__thread struct ss_tls ss_tls __attribute__((tls_model("initial-exec")));
_Atomic int ss_captures, ss_captures_blocking;

struct object {
	struct ss_elf elf;
	const char *name;       /* the loader's */
	_Atomic(void *) handle; /* of dlopen(); NULL: not asked for yet */
	bool runtime;           /* it has the symbol of the search */
	bool hip;               /* ... and registers code objects */
};

struct objects {
	_Atomic int ready;   /* number in the list; 0 = no runtime was found yet */
	struct object *list; /* in the order of the loader */
};

static pthread_mutex_t publish_lock = PTHREAD_MUTEX_INITIALIZER;
static struct objects hip, hsa, tools;
static const struct ss_real_fn *overrides;
static atomic_uint override_count;
static struct ss_runtime runtime;
static atomic_bool runtime_known, search_failed;

/* ---- the list ----------------------------------------------------------- */

struct search {
	const char *symbol;
	bool passed_us;
	unsigned index;
	int count, allocated;
	bool no_memory;     /* host memory was out, so an object may be missing */
	int before, behind; /* runtimes before us and after us in the list */
	struct object *list;
};

static int collect(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	struct object o = {.name = info->dlpi_name};
	bool started = s->index++ < ss_objects_started();

	(void)size;
	if (ss_elf_holds(info, (uintptr_t)&ss_runtime_find)) {
		s->passed_us = true;
		return 0;
	}
	/* The program itself has an empty name, so dlopen() cannot find it. */
	if (!info->dlpi_name[0] || !ss_elf_dynamic(info, &o.elf) || ss_elf_is_copy(&o.elf))
		return 0;
	o.runtime = ss_elf_function(&o.elf, s->symbol);
	o.hip = o.runtime && ss_elf_is_hip(&o.elf);
	if (!o.runtime && !(started && s->passed_us))
		return 0;
	if (s->count == s->allocated) {
		int more = s->allocated ? s->allocated * 2 : 64;
		struct object *list = realloc(s->list, (size_t)more * sizeof(*list));

		if (!list) {
			s->no_memory = true;
			return 0;
		}
		s->list = list;
		s->allocated = more;
	}
	s->list[s->count++] = o;
	if (o.runtime)
		++*(s->passed_us ? &s->behind : &s->before);
	return 0;
}

/* A handle also keeps the object from being unloaded. */
static void *handle_of(struct object *o)
{
	void *h = atomic_load_explicit(&o->handle, memory_order_relaxed);

	if (!h) {
		h = dlopen(o->name, RTLD_NOLOAD | RTLD_LAZY);
		atomic_store_explicit(&o->handle, h, memory_order_relaxed);
	}
	return h;
}

/* Keeps the runtimes to use, and the objects whose names take precedence over theirs. Runtimes
 * before us count only if none is after us. `global`: a runtime is in the global scope. */
static void keep(struct search *s, bool global)
{
	int n = 0, end = 0;
	bool refused = false;

	for (int i = 0; i < s->count; i++) {
		struct object *o = &s->list[i];

		if (o->runtime ? s->behind && i < s->before : !global)
			continue;
		if (o->runtime && !handle_of(o)) {
			refused = true;
			continue;
		}
		s->list[n++] = *o;
		if (o->runtime)
			end = n;
	}
	s->count = end;
	s->no_memory = refused && !end; /* it was loaded a moment ago */
}

/* Asks for a function that only a runtime has: no sanitizer, no interposer, and not this
 * library. */
bool ss_runtime_global(const char *name)
{
	return dlsym(RTLD_DEFAULT,
		     strncmp(name, "hsa_", 4) ? "__hipRegisterFatBinary" : "hsa_iterate_agents");
}

/* dlopen() must not be called while the list is walked, so the walk collects objects. */
static bool find(struct objects *o, const char *symbol)
{
	struct search s = {.symbol = symbol};

	dl_iterate_phdr(collect, &s);
	/* Without host memory the first object of the list may be missing. */
	if (!s.no_memory)
		keep(&s, s.behind && ss_runtime_global(symbol));
	atomic_store(&search_failed, s.no_memory);
	if (s.no_memory) {
		free(s.list);
		return false;
	}
	pthread_mutex_lock(&publish_lock);
	if (s.count && !atomic_load(&o->ready)) {
		o->list = s.list;
		s.list = NULL;
		atomic_store_explicit(&o->ready, s.count, memory_order_release);
	}
	pthread_mutex_unlock(&publish_lock);
	free(s.list);
	return s.count;
}

static bool find_hsa(void)
{
	return atomic_load(&hsa.ready) || find(&hsa, "hsa_init");
}

static void *symbol_in(struct objects *o, const char *name)
{
	int n = atomic_load_explicit(&o->ready, memory_order_acquire);
	void *h, *p;

	for (int i = 0; i < n; i++)
		if (ss_elf_function(&o->list[i].elf, name) && (h = handle_of(&o->list[i])) &&
		    (p = dlsym(h, name)))
			return p;
	/* Libraries that a runtime is linked with. */
	for (int i = 0; i < n; i++)
		if (o->list[i].runtime && (p = dlsym(handle_of(&o->list[i]), name)))
			return p;
	return NULL;
}

/* The runtime itself rather than an interposer with functions of its names. */
static const char *path_of(const struct objects *o)
{
	int n = atomic_load_explicit(&o->ready, memory_order_acquire), first = n;

	for (int i = n - 1; i >= 0; i--)
		if (o->list[i].runtime && (o->list[i].hip || first == n || !o->list[first].hip))
			first = i;
	return o->list[first].name;
}

static int soname_major(const char *path)
{
	const char *so = strstr(path, ".so.");

	return so ? atoi(so + 4) : 0;
}

bool ss_runtime_no_memory(void)
{
	return atomic_load(&search_failed);
}

bool ss_runtime_find(void)
{
	struct ss_runtime found = {0};

	if (atomic_load_explicit(&runtime_known, memory_order_acquire))
		return true;
	if (!find(&hip, "hipMalloc"))
		return false;
	snprintf(found.path, sizeof(found.path), "%s", path_of(&hip));
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

/* Some releases report no version without a device; then the soname's number stays. */
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
		if (o->list[i].runtime && dlvsym(handle_of(&o->list[i]), name, version))
			return true;
	return false;
}

bool ss_runtime_versioned(const char *name, const char *version)
{
	return (ss_runtime_find() && versioned_in(&hip, name, version)) ||
	       (find_hsa() && versioned_in(&hsa, name, version));
}

void *ss_hsa_symbol(const char *name)
{
	void *p = NULL;

	/* The HSA runtime that HIP depends on comes first, because HIP knows its memory. */
	if (atomic_load_explicit(&hip.ready, memory_order_acquire))
		p = symbol_in(&hip, name);
	if (!p && find_hsa())
		p = symbol_in(&hsa, name);
	return p;
}

void *ss_register_symbol(const char *name)
{
	if (!atomic_load(&tools.ready) && !find(&tools, name))
		return NULL;
	return symbol_in(&tools, name);
}
