/* SPDX-License-Identifier: MIT */
/*
 * Lets libsomashim.so, built on a new glibc, run on glibc 2.17 and later (x86-64). The linker
 * redirects each function listed in meson.build to the wrapper here (--wrap), which uses an
 * older symbol version, a system call, or a symbol that is looked up when it is needed.
 *
 * Before glibc 2.34 the dl* functions were in libdl.so.2 and many pthread_* functions in
 * libpthread.so.0. The library does not depend on either, so that it can be preloaded into
 * programs that load neither. Every HIP runtime brings both. The references are therefore
 * weak: they are NULL if the program starts without these libraries, and then the loaded
 * objects are searched at each call. (dlsym is our own, shim/route/dlsym_entry.S.)
 *
 * Locks: none of its own.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/rocm/loaded_object.h"

/* ---- libdl and libpthread before glibc 2.34 ------------------------------ */

struct search {
	const char *name;
	void *found;
};

static int search_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *slash = strrchr(info->dlpi_name, '/');
	const char *file = slash ? slash + 1 : info->dlpi_name;
	struct search *s = arg;

	(void)size;
	if (strcmp(file, "libdl.so.2") && strcmp(file, "libpthread.so.0") &&
	    strcmp(file, "libc.so.6"))
		return 0;
	s->found = ss_elf_symbol(info, s->name);
	return s->found != NULL;
}

/* Returns NULL if no loaded library of glibc defines `name`. */
static void *search(const char *name)
{
	struct search s = {.name = name};

	dl_iterate_phdr(search_object, &s);
	return s.found;
}

/* Declares the wrapper of a function of libdl or libpthread. It returns `absent` while no
 * loaded library defines the function. */
#define LATE(type, name, version, absent, params, args)                                   \
	extern type old_##name params __attribute__((weak));                              \
	__asm__(".symver old_" #name ", " #name "@" version);                             \
	type __wrap_##name params;                                                        \
	type __wrap_##name params                                                         \
	{                                                                                 \
		type(*fn) params = old_##name;                                            \
                                                                                          \
		if (!fn)                                                                  \
			fn = (type(*) params)search(#name);                               \
		return fn ? fn args : (absent);                                           \
	}

LATE(void *, dlopen, "GLIBC_2.2.5", NULL, (const char *file, int mode), (file, mode))
LATE(int, dlclose, "GLIBC_2.2.5", -1, (void *handle), (handle))
LATE(char *, dlerror, "GLIBC_2.2.5", NULL, (void), ())
LATE(int, dladdr, "GLIBC_2.2.5", 0, (const void *addr, Dl_info *info), (addr, info))
LATE(int, dladdr1, "GLIBC_2.3.3", 0, (const void *addr, Dl_info *info, void **extra, int flags),
     (addr, info, extra, flags))
LATE(int, dlinfo, "GLIBC_2.3.3", -1, (void *handle, int request, void *arg), (handle, request, arg))
LATE(int, pthread_key_create, "GLIBC_2.2.5", ENOSYS, (pthread_key_t * key, void (*destroy)(void *)),
     (key, destroy))
LATE(int, pthread_setspecific, "GLIBC_2.2.5", ENOSYS, (pthread_key_t key, const void *value),
     (key, value))
LATE(int, pthread_create, "GLIBC_2.2.5", ENOSYS,
     (pthread_t * thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg),
     (thread, attr, run, arg))
LATE(int, pthread_detach, "GLIBC_2.2.5", ENOSYS, (pthread_t thread), (thread))
LATE(int, pthread_timedjoin_np, "GLIBC_2.3.3", ENOSYS,
     (pthread_t thread, void **result, const struct timespec *end), (thread, result, end))
LATE(int, pthread_attr_setstacksize, "GLIBC_2.2.5", ENOSYS, (pthread_attr_t * attr, size_t size),
     (attr, size))
LATE(int, pthread_mutex_trylock, "GLIBC_2.2.5", EBUSY, (pthread_mutex_t * mutex), (mutex))
LATE(int, pthread_mutex_timedlock, "GLIBC_2.2.5", ETIMEDOUT,
     (pthread_mutex_t * mutex, const struct timespec *end), (mutex, end))
LATE(int, pthread_condattr_setclock, "GLIBC_2.3.3", ENOSYS,
     (pthread_condattr_t * attr, clockid_t clock), (attr, clock))
LATE(int, pthread_getattr_np, "GLIBC_2.2.5", ENOSYS, (pthread_t thread, pthread_attr_t *attr),
     (thread, attr))
LATE(int, pthread_attr_getstack, "GLIBC_2.2.5", ENOSYS,
     (const pthread_attr_t *attr, void **low, size_t *size), (attr, low, size))

/* pthread_cleanup_push() expands to these. Without libpthread no thread is cancelled. */
LATE(void, __pthread_register_cancel, "GLIBC_2.3.3", (void)0, (__pthread_unwind_buf_t * buf), (buf))
LATE(void, __pthread_unregister_cancel, "GLIBC_2.3.3", (void)0, (__pthread_unwind_buf_t * buf),
     (buf))
LATE(void, __pthread_unwind_next, "GLIBC_2.3.3", (void)0, (__pthread_unwind_buf_t * buf), (buf))

/* Without libpthread there is one thread. The value 2 is what glibc stores when fn has run. */
static int once_alone(pthread_once_t *control, void (*fn)(void))
{
	if (*control != 2) {
		*control = 2;
		fn();
	}
	return 0;
}

LATE(int, pthread_once, "GLIBC_2.2.5", once_alone(control, fn_once),
     (pthread_once_t * control, void (*fn_once)(void)), (control, fn_once))

/* glibc 2.17 has no such function: then the end of a thread is noticed by the destructor of
 * a pthread key only (shim/state.c). */
int __wrap___cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *dso);
int __wrap___cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *dso)
{
	static int (*_Atomic known)(void (*)(void *), void *, void *);
	int (*real)(void (*)(void *), void *, void *) = known;

	if (!real)
		known = real = (int (*)(void (*)(void *), void *, void *))search(
			"__cxa_thread_atexit_impl");
	return real ? real(fn, arg, dso) : -1;
}

/* ---- libc ---------------------------------------------------------------- */

/* fcntl64 is fcntl where off_t has 64 bits. All commands that the library uses take an int
 * or nothing. */
extern int old_fcntl(int fd, int command, ...);
__asm__(".symver old_fcntl, fcntl@GLIBC_2.2.5");
int __wrap_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...)
{
	va_list args;
	long arg;

	va_start(args, command);
	arg = va_arg(args, long);
	va_end(args);
	return old_fcntl(fd, command, arg);
}

/* glibc 2.33 made fstat, stat and lstat functions. Its struct stat is the kernel's on x86-64. */
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

int __wrap_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

int __wrap_stat(const char *path, struct stat *st);
int __wrap_stat(const char *path, struct stat *st)
{
	return (int)syscall(SYS_stat, path, st);
}

int __wrap_stat64(const char *path, struct stat *st);
int __wrap_stat64(const char *path, struct stat *st)
{
	return (int)syscall(SYS_stat, path, st);
}

int __wrap_lstat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st)
{
	return (int)syscall(SYS_lstat, path, st);
}

int __wrap_lstat64(const char *path, struct stat *st);
int __wrap_lstat64(const char *path, struct stat *st)
{
	return (int)syscall(SYS_lstat, path, st);
}

int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags)
{
	return (int)syscall(SYS_memfd_create, name, flags);
}

/* The newer version differs for modes with "b" and for files without room, neither of which is
 * used. */
extern FILE *old_fmemopen(void *buffer, size_t size, const char *mode);
__asm__(".symver old_fmemopen, fmemopen@GLIBC_2.2.5");
FILE *__wrap_fmemopen(void *buffer, size_t size, const char *mode);
FILE *__wrap_fmemopen(void *buffer, size_t size, const char *mode)
{
	return old_fmemopen(buffer, size, mode);
}

/* Before glibc 2.32 this was in libpthread. sigprocmask sets the calling thread's mask too. */
extern int old_sigprocmask(int how, const sigset_t *set, sigset_t *old);
__asm__(".symver old_sigprocmask, sigprocmask@GLIBC_2.2.5");
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	int before = errno, error = old_sigprocmask(how, set, old) ? errno : 0;

	errno = before;
	return error;
}

/* Since glibc 2.38 the headers turn these into functions that read binary constants (0b1)
 * as well. Nothing here needs that. */
#define NUMBER(type, name)                                                                \
	extern type old_##name(const char *text, char **end, int base);                   \
	__asm__(".symver old_" #name ", " #name "@GLIBC_2.2.5");                          \
	type __wrap___isoc23_##name(const char *text, char **end, int base);              \
	type __wrap___isoc23_##name(const char *text, char **end, int base)               \
	{                                                                                 \
		return old_##name(text, end, base);                                       \
	}

NUMBER(long, strtol)
NUMBER(unsigned long, strtoul)
NUMBER(long long, strtoll)
NUMBER(unsigned long long, strtoull)

#define SCAN(name, from)                                                                  \
	extern int __isoc99_v##name(from, const char *format, va_list args);              \
	int __wrap___isoc23_##name(from, const char *format, ...);                        \
	int __wrap___isoc23_##name(from, const char *format, ...)                         \
	{                                                                                 \
		va_list args;                                                             \
		int n;                                                                    \
                                                                                          \
		va_start(args, format);                                                   \
		n = __isoc99_v##name(in, format, args);                                   \
		va_end(args);                                                             \
		return n;                                                                 \
	}

SCAN(sscanf, const char *in)
SCAN(fscanf, FILE *in)
