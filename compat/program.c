/* SPDX-License-Identifier: MIT */
/*
 * What a program (not a library) needs besides glibc.c to run on glibc 2.17 and later: the
 * entry point of libc, glob, and the functions of libm, in their older versions, and those of
 * libdl and libpthread that elfutils calls where it is linked in (static_command).
 */
#include <glob.h>
#include <pthread.h>

extern void (*const constructors_start[])(int, char **, char **) __asm__("__init_array_start")
	__attribute__((visibility("hidden")));
extern void (*const constructors_end[])(int, char **, char **) __asm__("__init_array_end")
	__attribute__((visibility("hidden")));

/* glibc before 2.34 expects the program to run its constructors in a function that the start
 * code passes as `init`. The start code of later releases passes none. */
static void run_constructors(int argc, char **argv, char **env)
{
	for (void (*const *fn)(int, char **, char **) = constructors_start; fn < constructors_end;
	     fn++)
		(*fn)(argc, argv, env);
}

extern int old_start(int (*main)(int, char **, char **), int argc, char **argv,
		     void (*init)(int, char **, char **), void (*fini)(void), void (*end)(void),
		     void *stack);
__asm__(".symver old_start, __libc_start_main@GLIBC_2.2.5");
int __wrap___libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
			     void (*init)(int, char **, char **), void (*fini)(void),
			     void (*end)(void), void *stack);
int __wrap___libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
			     void (*init)(int, char **, char **), void (*fini)(void),
			     void (*end)(void), void *stack)
{
	return old_start(main, argc, argv, init ? init : run_constructors, fini, end, stack);
}

/* The newer version also finds symbolic links that lead nowhere. */
extern int old_glob(const char *pattern, int flags, int (*failed)(const char *, int),
		    glob_t *found);
__asm__(".symver old_glob, glob64@GLIBC_2.2.5");

int __wrap_glob(const char *pattern, int flags, int (*failed)(const char *, int), glob_t *found);
int __wrap_glob(const char *pattern, int flags, int (*failed)(const char *, int), glob_t *found)
{
	return old_glob(pattern, flags, failed, found);
}

int __wrap_glob64(const char *pattern, int flags, int (*failed)(const char *, int), glob_t *found);
int __wrap_glob64(const char *pattern, int flags, int (*failed)(const char *, int), glob_t *found)
{
	return old_glob(pattern, flags, failed, found);
}

/* The newer versions differ in that they set errno without a call of matherr. */
extern double old_pow(double x, double y), old_log(double x), old_exp(double x);
__asm__(".symver old_pow, pow@GLIBC_2.2.5");
__asm__(".symver old_log, log@GLIBC_2.2.5");
__asm__(".symver old_exp, exp@GLIBC_2.2.5");

double __wrap_pow(double x, double y);
double __wrap_pow(double x, double y)
{
	return old_pow(x, y);
}

double __wrap_log(double x);
double __wrap_log(double x)
{
	return old_log(x);
}

double __wrap_exp(double x);
double __wrap_exp(double x)
{
	return old_exp(x);
}

/* elfutils calls these. A program has libdl and libpthread from the start on. */
#define OLDER(name, type, arg)                                                            \
	extern int old_##name(type arg);                                                  \
	__asm__(".symver old_" #name ", " #name "@GLIBC_2.2.5");                          \
	int __wrap_##name(type arg);                                                      \
	int __wrap_##name(type arg)                                                       \
	{                                                                                 \
		return old_##name(arg);                                                   \
	}

OLDER(pthread_rwlock_destroy, pthread_rwlock_t *, lock)
OLDER(pthread_rwlock_rdlock, pthread_rwlock_t *, lock)
OLDER(pthread_rwlock_tryrdlock, pthread_rwlock_t *, lock)
OLDER(pthread_rwlock_wrlock, pthread_rwlock_t *, lock)
OLDER(pthread_rwlock_unlock, pthread_rwlock_t *, lock)

extern void *old_dlsym(void *handle, const char *name);
__asm__(".symver old_dlsym, dlsym@GLIBC_2.2.5");

void *__wrap_dlsym(void *handle, const char *name);
void *__wrap_dlsym(void *handle, const char *name)
{
	return old_dlsym(handle, name);
}

extern int old_pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attributes);
__asm__(".symver old_pthread_rwlock_init, pthread_rwlock_init@GLIBC_2.2.5");

int __wrap_pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attributes);
int __wrap_pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attributes)
{
	return old_pthread_rwlock_init(lock, attributes);
}
