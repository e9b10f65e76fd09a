/* SPDX-License-Identifier: MIT */
/*
 * Answers dlsym() and dlvsym() for names of ours. The real function resolves them first. Its
 * answer, or its error, is kept, unless the answer is a function of a HIP or HSA runtime: then our
 * function of that name replaces it.
 *
 * Two kinds of callers get the real function. A runtime looks for functions of its own. Another
 * interposer that is after us in the loader's order and defines the name as well looks for the next
 * definition: if that were ours, a call would never end.
 *
 * For a caller after us, RTLD_DEFAULT and RTLD_NEXT do not lead to us, or lead to us although the
 * runtime has no such function or there is no runtime. So the answer depends on whether a runtime
 * has the name. If that runtime was loaded with RTLD_LOCAL, the program finds nothing, as without
 * us. For a library that was loaded later we cannot know what it would find, so it gets our
 * function.
 *
 * Locks: none of its own.
 */
#include <dlfcn.h>
#include <elf.h>
#include <stddef.h>

#include "driver/rocm/copies.h"
#include "driver/rocm/loaded_object.h"
#include "driver/rocm/resolve.h"
#include "shim/process/report.h"
#include "shim/route/dlsym.h"

/* One walk over all loaded objects. */
struct look {
	const struct ss_dlsym *call;
	uintptr_t found; /* an address that the real function gave; 0: none */
	unsigned index;  /* index of the object that is looked at */
	bool passed_us;
	/* The caller is the program, or was loaded with it: its RTLD_DEFAULT is the global scope
	 * and nothing else */
	bool caller_started;
	bool caller_behind;   /* the caller is after us in the loader's order */
	bool caller_defines;  /* ... defines the name itself, as a function */
	bool caller_runtime;  /* ... is a runtime */
	bool found_runtime;   /* `found` lies in a runtime, or in a copy of us that stands aside */
	bool runtime_defines; /* a runtime has the name */
	bool other_defines;   /* another object, which is not ours, has the name */
};

/* (AddressSanitizer of AMD defines functions of HSA that allocate, but not this one.) */
static bool is_runtime(const struct ss_elf *elf)
{
	return ss_elf_is_hip(elf) || ss_elf_find(elf, "hsa_iterate_agents");
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct look *l = arg;
	const ElfW(Sym) * own;
	struct ss_elf elf;
	bool runtime, caller, found, copy;

	bool started = !l->index || l->index < ss_objects_started();

	(void)size;
	l->index++;
	if (ss_elf_holds(info, (uintptr_t)l->call->ours)) {
		l->passed_us = true;
		return 0;
	}
	caller = ss_elf_holds(info, l->call->caller);
	found = l->found && ss_elf_holds(info, l->found);
	if (!ss_elf_dynamic(info, &elf))
		return 0;
	own = ss_elf_find(&elf, l->call->name);
	runtime = (own || caller || found) && is_runtime(&elf);
	copy = (own || found) && ss_elf_is_copy(&elf);
	l->runtime_defines |= own && runtime;
	l->other_defines |= own && !runtime && !copy;
	l->found_runtime |= found && (runtime || copy);
	if (caller) {
		l->caller_started = started;
		l->caller_behind = l->passed_us;
		l->caller_defines = own && ELF64_ST_TYPE(own->st_info) == STT_FUNC;
		l->caller_runtime = runtime;
	}
	return 0;
}

static void *resolve(const struct ss_dlsym *c, void *handle)
{
	return c->version ? c->real_version(handle, c->name, c->version) : c->real(handle, c->name);
}

static struct ss_dlsym_verdict final(void *address)
{
	return (struct ss_dlsym_verdict){address, 1};
}

static struct ss_dlsym_verdict final_ours(const struct ss_dlsym *c)
{
	ss_report_add(&somashim_report.r.route[SS_ROUTE_DLSYM]);
	return final(c->ours);
}

/* No object but ours has the name. The loader would find our function, so a query of libc, which
 * has no such function either, makes the error. */
static struct ss_dlsym_verdict nowhere(const struct ss_dlsym *c)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	return final(libc ? c->real(libc, c->name) : NULL);
}

/* The runtime was loaded with RTLD_LOCAL, so that without us the global scope has no such name. A
 * program that tests for HIP must then find none, and use its alternative. */
static bool hidden(const struct ss_dlsym *c, const struct look *l)
{
	bool is = !l->other_defines && c->real(RTLD_DEFAULT, c->name) == c->ours &&
		  !ss_runtime_global(c->name);

	(void)dlerror();
	return is;
}

static bool is_program(void *handle)
{
	void *program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
	bool is = handle == program;

	if (program)
		dlclose(program);
	return is;
}

/* Answers for a name of the runtime without a particular handle, and for a caller that should get
 * our function. */
static struct ss_dlsym_verdict anywhere(const struct ss_dlsym *c, struct look *l)
{
	void *first = resolve(c, RTLD_DEFAULT);

	if (first && first != c->ours) {
		l->found = (uintptr_t)first;
		dl_iterate_phdr(look_at, l);
		/* An object in front of us has the name, and all calls by name reach that object
		 * first. */
		if (!l->found_runtime)
			return final(first);
	}
	/* The runtime is asked for the version, as our own functions have none. */
	if (!first && c->version && !ss_runtime_versioned(c->name, c->version))
		return final(resolve(c, RTLD_DEFAULT));
	return final_ours(c);
}

struct ss_dlsym_verdict ss_dlsym_answer(const struct ss_dlsym *c)
{
	struct ss_dlsym_verdict on = {c->version ? (void *)c->real_version : (void *)c->real, 0};
	bool pseudo = c->handle == RTLD_DEFAULT || c->handle == RTLD_NEXT;
	struct look l = {.call = c};

	if (ss_copy_aside())
		return on;
	if (!pseudo) {
		void *found = resolve(c, c->handle);

		if (!found || (found == c->ours && !is_program(c->handle)))
			return final(found);
		l.found = (uintptr_t)found;
		dl_iterate_phdr(look_at, &l);
		if (found == c->ours)
			return hidden(c, &l) ? nowhere(c) : final(found);
		if (!l.found_runtime || l.caller_runtime || (l.caller_behind && l.caller_defines))
			return final(found);
		return final_ours(c);
	}
	dl_iterate_phdr(look_at, &l);
	if (l.caller_runtime || (c->handle == RTLD_NEXT && l.caller_behind && l.caller_defines))
		return on;
	if (!l.runtime_defines)
		return l.other_defines ? on : nowhere(c);
	if (l.caller_started && hidden(c, &l))
		return nowhere(c);
	/* In front of us RTLD_NEXT leads to us, or to an interposer between. dlvsym() passes us. */
	if (c->handle == RTLD_NEXT && !l.caller_behind && !c->version)
		return on;
	return anywhere(c, &l);
}
