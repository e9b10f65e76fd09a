/* SPDX-License-Identifier: MIT */
/*
 * To be preloaded before somashim, as tracers of input and output are: it wraps functions of libc,
 * and is not ready before its constructor, which runs after that of somashim.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int (*real_close)(int);
static int (*real_fcntl)(int, int, ...);
static int (*real_open)(const char *, int, ...);
static ssize_t (*real_write)(int, const void *, size_t);

static void find(void *fn, const char *name)
{
	void *real = dlsym(RTLD_NEXT, name);

	memcpy(fn, &real, sizeof(real));
}

__attribute__((constructor)) static void init(void)
{
	find(&real_close, "close");
	find(&real_fcntl, "fcntl");
	find(&real_open, "open");
	find(&real_write, "write");
}

EXPORT int close(int fd)
{
	if (!real_close)
		abort();
	return real_close(fd);
}

static int control(int fd, int command, long arg)
{
	if (!real_fcntl)
		abort();
	return real_fcntl(fd, command, arg);
}

#define WRAP_FCNTL(name) \
	EXPORT int name(int fd, int command, ...); \
	int name(int fd, int command, ...) \
	{ \
		va_list args; \
		long arg; \
		va_start(args, command); \
		arg = va_arg(args, long); \
		va_end(args); \
		return control(fd, command, arg); \
	}
WRAP_FCNTL(fcntl)
WRAP_FCNTL(fcntl64)

static int open_file(const char *path, int flags, int mode)
{
	if (!real_open)
		abort();
	return real_open(path, flags, mode);
}

#define WRAP_OPEN(name) \
	EXPORT int name(const char *path, int flags, ...); \
	int name(const char *path, int flags, ...) \
	{ \
		va_list args; \
		int mode; \
		va_start(args, flags); \
		mode = va_arg(args, int); \
		va_end(args); \
		return open_file(path, flags, mode); \
	}
WRAP_OPEN(open)
WRAP_OPEN(open64)

EXPORT ssize_t write(int fd, const void *data, size_t size)
{
	if (!real_write)
		abort();
	return real_write(fd, data, size);
}
