/* SPDX-License-Identifier: MIT */
/*
 * Preloaded: one call that a library or program makes of libc fails, as it may on any machine. The
 * environment says which:
 *
 *   HOST_FAULTS_IN=FILE         the base name of the library or program
 *   HOST_FAULTS_AT=OFFSET#K     the K-th call there that returns to OFFSET (hex) in it
 *   HOST_FAULTS_LOG=FILE        a line "NAME OFFSET" for every call, before it is made
 */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <search.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static uintptr_t base, size; /* of the library; size 0: not known yet */
static uintptr_t offset;     /* of the call that fails */
static atomic_long left;     /* calls there until one fails; 0: none does */
static int log_fd = -1;

static int find(struct dl_phdr_info *info, size_t info_size, void *name)
{
	const char *path = info->dlpi_name[0] ? info->dlpi_name : program_invocation_name;
	const char *slash = path ? strrchr(path, '/') : NULL;

	(void)info_size;
	if (!path || strcmp(slash ? slash + 1 : path, name) != 0)
		return 0;
	base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			size = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	return 1;
}

static void start(void)
{
	const char *in = getenv("HOST_FAULTS_IN"), *at = getenv("HOST_FAULTS_AT");
	const char *log = getenv("HOST_FAULTS_LOG");
	const int how = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
	static atomic_bool started;
	char *end;

	if (!in || atomic_exchange(&started, true))
		return;
	dl_iterate_phdr(find, (void *)(uintptr_t)in);
	if (log && size)
		log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, how, 0600);
	if (log_fd >= 0) { /* programs may close all that is low */
		int high = fcntl(log_fd, F_DUPFD_CLOEXEC, 900);
		log_fd = high >= 0 ? high : log_fd;
	}
	if (at) {
		offset = strtoul(at, &end, 16);
		left = *end == '#' ? atol(end + 1) : 1;
	}
}

static bool fails(const void *caller, const char *name, int error)
{
	uintptr_t at = (uintptr_t)caller - base;
	int saved = errno;
	char line[64];

	if (!size) {
		start();
		at = (uintptr_t)caller - base;
	}
	if (at >= size)
		return false;
	if (log_fd >= 0) {
		int n = snprintf(line, sizeof(line), "%s %lx\n", name, (unsigned long)at);
		(void)!syscall(SYS_write, log_fd, line, n);
	}
	errno = saved;
	if (at != offset || !atomic_load(&left) || atomic_fetch_sub(&left, 1) != 1)
		return false;
	errno = error;
	return true;
}

/* ---- memory: libc's own names, since dlsym() itself may allocate ----------------------- */

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

#pragma GCC visibility push(default)
#define FAILS(error) fails(__builtin_return_address(0), __func__, error)

void *malloc(size_t n)
{
	return FAILS(ENOMEM) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t each)
{
	return FAILS(ENOMEM) ? NULL : __libc_calloc(n, each);
}

void *realloc(void *p, size_t n)
{
	return FAILS(ENOMEM) ? NULL : __libc_realloc(p, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
	void *got = FAILS(ENOMEM) ? NULL : __libc_memalign(align, n);

	if (got)
		*p = got;
	return got ? 0 : ENOMEM;
}

/* ---- the rest --------------------------------------------------------------------------- */

#define HOST(type, name, parameters, arguments, bad, error) \
	type name parameters \
	{ \
		static __typeof__(&name) next; \
		if (!next) \
			next = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
		return FAILS(error) ? (bad) : next arguments; \
	}

ssize_t __getdelim(char **, size_t *, int, FILE *);

HOST(char *, strdup, (const char *s), (s), NULL, ENOMEM)
HOST(char *, strndup, (const char *s, size_t n), (s, n), NULL, ENOMEM)
HOST(void *, tsearch, (const void *k, void **r, int (*c)(const void *, const void *)), (k, r, c),
     NULL, ENOMEM)
HOST(void *, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t at),
     (p, n, prot, flags, fd, at), MAP_FAILED, ENOMEM)
HOST(void *, mmap64, (void *p, size_t n, int prot, int flags, int fd, off64_t at),
     (p, n, prot, flags, fd, at), MAP_FAILED, ENOMEM)
HOST(int, madvise, (void *p, size_t n, int advice), (p, n, advice), -1, EINVAL)
HOST(int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*f)(void *), void *p),
     (t, a, f, p), EAGAIN, EAGAIN)
HOST(int, pthread_key_create, (pthread_key_t * k, void (*f)(void *)), (k, f), EAGAIN, EAGAIN)
HOST(int, pthread_getattr_np, (pthread_t t, pthread_attr_t *a), (t, a), ENOMEM, ENOMEM)
HOST(void *, dlopen, (const char *name, int how), (name, how), NULL, ENOMEM)
HOST(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n), -1, EIO)
HOST(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), -1, EIO)
HOST(ssize_t, pread64, (int fd, void *to, size_t n, off64_t at), (fd, to, n, at), -1, EIO)
HOST(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n), -1, ENOSPC)
HOST(ssize_t, pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at), -1, ENOSPC)
HOST(ssize_t, pwrite64, (int fd, const void *from, size_t n, off64_t at), (fd, from, n, at), -1,
     ENOSPC)
HOST(int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n), -1, ENOSPC)
HOST(int, fallocate64, (int fd, int mode, off64_t at, off64_t n), (fd, mode, at, n), -1, ENOSPC)
HOST(int, ftruncate, (int fd, off_t n), (fd, n), -1, ENOSPC)
HOST(int, ftruncate64, (int fd, off64_t n), (fd, n), -1, ENOSPC)
HOST(int, flock, (int fd, int how), (fd, how), -1, ENOLCK)
HOST(int, mkdir, (const char *path, mode_t mode), (path, mode), -1, ENOSPC)
HOST(int, rename, (const char *from, const char *to), (from, to), -1, EACCES)
HOST(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), -1, EACCES)
HOST(ssize_t, readlink, (const char *path, char *to, size_t n), (path, to, n), -1, EACCES)
HOST(char *, realpath, (const char *path, char *to), (path, to), NULL, ENOMEM)
HOST(DIR *, opendir, (const char *path), (path), NULL, EMFILE)
HOST(DIR *, fdopendir, (int fd), (fd), NULL, ENOMEM)
HOST(FILE *, fopen, (const char *path, const char *how), (path, how), NULL, EMFILE)
HOST(FILE *, fopen64, (const char *path, const char *how), (path, how), NULL, EMFILE)
HOST(FILE *, fdopen, (int fd, const char *how), (fd, how), NULL, ENOMEM)
HOST(FILE *, fmemopen, (void *p, size_t n, const char *how), (p, n, how), NULL, ENOMEM)
HOST(FILE *, open_memstream, (char **p, size_t *n), (p, n), NULL, ENOMEM)
HOST(FILE *, fopencookie, (void *c, const char *how, cookie_io_functions_t f), (c, how, f), NULL,
     ENOMEM)
HOST(int, fflush, (FILE * f), (f), EOF, ENOSPC)
HOST(ssize_t, __getdelim, (char **p, size_t *n, int c, FILE *f), (p, n, c, f), -1, ENOMEM)
HOST(ssize_t, getdelim, (char **p, size_t *n, int c, FILE *f), (p, n, c, f), -1, ENOMEM)
HOST(ssize_t, process_vm_readv,
     (pid_t pid, const struct iovec *a, unsigned long n, const struct iovec *b, unsigned long m,
      unsigned long flags),
     (pid, a, n, b, m, flags), -1, EPERM)
HOST(int, pipe, (int fd[2]), (fd), -1, EMFILE)
HOST(int, pipe2, (int fd[2], int flags), (fd, flags), -1, EMFILE)
HOST(char *, mkdtemp, (char *path), (path), NULL, ENOSPC)
HOST(int, mkostemp, (char *path, int flags), (path, flags), -1, ENOSPC)
HOST(int, mkostemp64, (char *path, int flags), (path, flags), -1, ENOSPC)
HOST(pid_t, fork, (void), (), -1, EAGAIN)
HOST(int, setenv, (const char *name, const char *value, int over), (name, value, over), -1, ENOMEM)

#define OPEN(name, before, given) \
	int name(before const char *path, int flags, ...) \
	{ \
		static __typeof__(&name) next; \
		va_list list; \
		mode_t mode; \
		va_start(list, flags); \
		mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; \
		va_end(list); \
		if (!next) \
			next = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
		return FAILS(EMFILE) ? -1 : next(given path, flags, mode); \
	}
#define FOLDER int folder,
#define GIVEN folder,
#define NONE

OPEN(open, NONE, NONE)
OPEN(open64, NONE, NONE)
OPEN(openat, FOLDER, GIVEN)
OPEN(openat64, FOLDER, GIVEN)
/* Of a build with _FORTIFY_SOURCE */
int __open_2(const char *, int);
int __open64_2(const char *, int);
int __vasprintf_chk(char **, int, const char *, va_list);
int __asprintf_chk(char **, int, const char *, ...);
HOST(int, __open_2, (const char *path, int flags), (path, flags), -1, EMFILE)
HOST(int, __open64_2, (const char *path, int flags), (path, flags), -1, EMFILE)
HOST(int, vasprintf, (char **to, const char *format, va_list list), (to, format, list), -1, ENOMEM)
HOST(int, __vasprintf_chk, (char **to, int flag, const char *format, va_list list),
     (to, flag, format, list), -1, ENOMEM)

int asprintf(char **to, const char *format, ...)
{
	va_list list;
	int n;

	if (FAILS(ENOMEM))
		return -1;
	va_start(list, format);
	n = vasprintf(to, format, list);
	va_end(list);
	return n;
}

int __asprintf_chk(char **to, int flag, const char *format, ...)
{
	va_list list;
	int n;

	(void)flag;
	if (FAILS(ENOMEM))
		return -1;
	va_start(list, format);
	n = vasprintf(to, format, list);
	va_end(list);
	return n;
}
#pragma GCC visibility pop
