/* SPDX-License-Identifier: MIT */
/*
 * Finds the dlsym() and dlvsym() after ours, and sends all calls to them except those for names of
 * ours.
 *
 * This file gets the calls of all objects: of malloc libraries and sanitizers before any
 * constructor has run, and of IFUNC resolvers before this library is relocated. So this file calls
 * no function of another file but ss_dlsym_answer(), reads nothing through the GOT but one weak
 * symbol, and is compiled without sanitizers.
 *
 * Locks: none. Threads that search at the same time find the same.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "driver/rocm/elf_tables.h"
#include "shim/route/dlsym.h"

/* Symbols of the linker: the first byte of this library, and its end. */
extern const char __ehdr_start[] SS_DLSYM_HIDDEN, _end[] SS_DLSYM_HIDDEN;
extern ElfW(Dyn) _DYNAMIC[] SS_DLSYM_HIDDEN;

/* Weak, so that its address may be NULL, which it is before this library is relocated. */
extern struct r_debug _r_debug __attribute__((weak));

static _Atomic uintptr_t real_dlsym, real_dlvsym;

/* ---- the list of loaded objects ------------------------------------------ */

static long call3(long number, long a, long b, long c)
{
#if defined(__x86_64__)
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
#else
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
			 x2 __asm__("x2") = c, x3 __asm__("x3") = 0;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
#endif
}

/* The base address of the dynamic loader, from the kernel; 0: unknown. If the loader was started as
 * a program, it is the program. */
static uintptr_t loader_base(void)
{
	uintptr_t base = 0, headers = 0;
	ElfW(auxv_t) v;
	long fd = call3(SYS_openat, AT_FDCWD, (long)"/proc/self/auxv", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	while (call3(SYS_read, fd, (long)&v, sizeof(v)) == sizeof(v) && v.a_type != AT_NULL)
		if (v.a_type == AT_BASE)
			base = v.a_un.a_val;
		else if (v.a_type == AT_PHDR)
			headers = v.a_un.a_val;
	(void)call3(SYS_close, fd, 0, 0);
	return base || !headers ? base : headers - sizeof(ElfW(Ehdr));
}

static const struct link_map *first_object(void)
{
	uintptr_t base, debug = 0;
	const ElfW(Phdr) * p;
	struct ss_elf elf;

	if (&_r_debug)
		return _r_debug.r_map;
	base = loader_base();
	if (!base)
		return NULL;
	p = (const ElfW(Phdr) *)(base + ((const ElfW(Ehdr) *)base)->e_phoff);
	for (int i = 0; i < ((const ElfW(Ehdr) *)base)->e_phnum; i++)
		if (p[i].p_type == PT_DYNAMIC &&
		    ss_elf_read(base, (const ElfW(Dyn) *)(base + p[i].p_vaddr), &elf))
			debug = ss_elf_address(&elf, "_r_debug", STT_OBJECT);
	return debug ? ((const struct r_debug *)debug)->r_map : NULL;
}

/* The first definition in the objects from `m` to `end`, without other copies of this library. */
static uintptr_t search(const struct link_map *m, const struct link_map *end, const char *name)
{
	struct ss_elf elf;
	uintptr_t at;

	for (; m && m != end; m = m->l_next)
		if (ss_elf_read(m->l_addr, m->l_ld, &elf) &&
		    (at = ss_elf_address(&elf, name, STT_FUNC)) && !ss_elf_is_copy(&elf))
			return at;
	return 0;
}

/* The definition after ours in the order of the loader, like RTLD_NEXT: another interposer's, or
 * the real one, in libc.so.6 or (before glibc 2.34) libdl.so.2. If all these are in front of us,
 * because we were loaded late, no caller finds our definition, and the first definition is right.
 * The walk of the list takes no lock of the loader. This is safe because the walk happens once,
 * before there are threads, and because these libraries are among the first of the list. */
static uintptr_t find(_Atomic uintptr_t *known, const char *name)
{
	const struct link_map *first, *us;
	uintptr_t at = atomic_load_explicit(known, memory_order_relaxed);

	if (at)
		return at;
	first = first_object();
	for (us = first; us && us->l_ld != _DYNAMIC; us = us->l_next)
		;
	at = search(us ? us->l_next : NULL, NULL, name);
	if (!at)
		at = search(first, us, name);
	atomic_store_explicit(known, at, memory_order_relaxed);
	return at;
}

/* ---- calls ---------------------------------------------------------------- */

static bool begins(const char *name, const char *prefix)
{
	for (; *prefix && *name == *prefix; name++, prefix++)
		;
	return !*prefix;
}

/* Our function of that name, or NULL. Names like dlsym, which we define as well, do not count. */
static void *ours(const char *name)
{
	struct ss_elf elf;

	if (!name || !(begins(name, "hip") || begins(name, "hsa_") || begins(name, "_Z24hip") ||
		       begins(name, "__hip")))
		return NULL;
	return ss_elf_read((uintptr_t)__ehdr_start, _DYNAMIC, &elf) ?
		       (void *)ss_elf_address(&elf, name, STT_FUNC) :
		       NULL;
}

static struct ss_dlsym_verdict decide(struct ss_dlsym *call, uintptr_t next)
{
	/* This library itself gets the next definition after its own. */
	bool self = call->caller >= (uintptr_t)__ehdr_start && call->caller < (uintptr_t)_end;

	call->ours = next && !self ? ours(call->name) : NULL;
	if (call->ours)
		return ss_dlsym_answer(call);
	return (struct ss_dlsym_verdict){(void *)next, !next};
}

struct ss_dlsym_verdict ss_dlsym_decide(void *handle, const char *name, void *caller)
{
	struct ss_dlsym call;
	uintptr_t next = find(&real_dlsym, "dlsym");

	call.real = (void *(*)(void *, const char *))next;
	call.real_version = NULL;
	call.handle = handle;
	call.name = name;
	call.version = NULL;
	call.caller = (uintptr_t)caller;
	return decide(&call, next);
}

struct ss_dlsym_verdict ss_dlvsym_decide(void *handle, const char *name, const char *version,
					 void *caller)
{
	struct ss_dlsym call;
	uintptr_t next = find(&real_dlvsym, "dlvsym");

	call.real = (void *(*)(void *, const char *))find(&real_dlsym, "dlsym");
	call.real_version = (void *(*)(void *, const char *, const char *))next;
	call.handle = handle;
	call.name = name;
	call.version = version;
	call.caller = (uintptr_t)caller;
	return decide(&call, next);
}
