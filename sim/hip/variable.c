/* SPDX-License-Identifier: MIT */
/*
 * Device variables of code objects, and copies to and from them.
 *
 * Locks: lock guards the list. Nothing is taken inside it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/macros.h"
#include "hip/allocation.h"
#include "hip/entry_points.h"
#include "hip/reentry.h"
#include "hip/thread_state.h"
#include "hip/variable.h"

struct variable {
	const void *host; /* address of its stand-in in the program */
	char *name;
	size_t size;
	void *memory[SIM_MAX_DEVICES];
	void *managed; /* host memory, or NULL */
	struct variable *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct variable *variables;

void variable_add(const void *host, const char *name, size_t size, void *managed)
{
	struct variable *v = calloc(1, sizeof *v);

	if (!v)
		abort();
	v->host = host;
	v->name = strdup(name ? name : "");
	v->size = size;
	v->managed = managed;
	pthread_mutex_lock(&lock);
	v->next = variables;
	variables = v;
	pthread_mutex_unlock(&lock);
}

static struct variable *find(const void *host)
{
	struct variable *v;

	pthread_mutex_lock(&lock);
	for (v = variables; v; v = v->next)
		if (v->host == host)
			break;
	pthread_mutex_unlock(&lock);
	return v;
}

void *variable_address(const void *host, size_t *size)
{
	struct variable *v = find(host);
	int d = current_device();

	if (!v)
		return NULL;
	*size = v->size;
	if (v->managed)
		return v->managed;
	if (!v->memory[d] && (v->memory[d] = hip_device_alloc(d, v->size, 0)))
		memset(v->memory[d], 0, v->size);
	return v->memory[d];
}

const void *variable_named(const char *name)
{
	const void *host = NULL;

	pthread_mutex_lock(&lock);
	for (struct variable *v = variables; v; v = v->next)
		if (!strcmp(v->name, name))
			host = v->host;
	pthread_mutex_unlock(&lock);
	return host;
}

/* ---- symbols ---- */

hipError_t i_hipGetSymbolAddress(void **out, const void *host)
{
	size_t n;

	if (!out)
		return hipErrorInvalidValue;
	*out = variable_address(host, &n);
	return *out ? hipSuccess : hipErrorInvalidSymbol;
}

hipError_t i_hipGetSymbolSize(size_t *size, const void *host)
{
	return size && variable_address(host, size) ? hipSuccess : hipErrorInvalidSymbol;
}

static hipError_t symbol_at(const void *host, size_t n, size_t off, char **p)
{
	size_t size;

	*p = variable_address(host, &size);
	if (!*p)
		return hipErrorInvalidSymbol;
	if (off > size || n > size - off)
		return hipErrorInvalidValue;
	*p += off;
	return hipSuccess;
}

hipError_t i_hipMemcpyToSymbol(const void *sym, const void *src, size_t n, size_t off,
			       hipMemcpyKind kind)
{
	char *p;
	hipError_t e = symbol_at(sym, n, off, &p);

	return e ? e : i_hipMemcpy(p, src, n, kind);
}

hipError_t i_hipMemcpyToSymbolAsync(const void *sym, const void *src, size_t n, size_t off,
				    hipMemcpyKind kind, hipStream_t h)
{
	char *p;
	hipError_t e = symbol_at(sym, n, off, &p);

	return e ? e : reentry.memcpy_async(p, src, n, kind, h);
}

hipError_t i_hipMemcpyFromSymbol(void *dst, const void *sym, size_t n, size_t off,
				 hipMemcpyKind kind)
{
	char *p;
	hipError_t e = symbol_at(sym, n, off, &p);

	return e ? e : i_hipMemcpy(dst, p, n, kind);
}

hipError_t i_hipMemcpyFromSymbolAsync(void *dst, const void *sym, size_t n, size_t off,
				      hipMemcpyKind kind, hipStream_t h)
{
	char *p;
	hipError_t e = symbol_at(sym, n, off, &p);

	return e ? e : reentry.memcpy_async(dst, p, n, kind, h);
}
