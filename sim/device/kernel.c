/* SPDX-License-Identifier: MIT */
/*
 * The table of kernels, their bodies, and the copies of their arguments.
 *
 * Locks: kernels_lock guards the table. Nothing is taken inside it but the loader's locks.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "device/command.h"
#include "device/kernel.h"
#include "device/macros.h"

#define MAX_ARGS 16
#define GUESS 64                   /* bytes copied per argument of unknown size */

struct sim_kernel {
	const void *host; /* address of the host function, NULL: of a module */
	char *name;
	sim_kernel_body body;
	const size_t *sizes; /* of the arguments; 0 ends it; NULL: unknown */
	bool looked_up, warned;
	struct sim_kernel *next;
};

static pthread_mutex_t kernels_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_kernel *kernels;
static __thread const uint32_t *launch_dims;

/* A kernel of the program has the address of its stub, and one of a loaded module a name and its
 * handle. Caller holds kernels_lock. */
static struct sim_kernel *find(const void *host, const char *name)
{
	for (struct sim_kernel *k = kernels; k; k = k->next)
		if (host ? k->host == host || k == host :
			   !k->host && name && !strcmp(k->name, name))
			return k;
	return NULL;
}

/* Caller holds kernels_lock. */
static struct sim_kernel *find_or_add(const void *host, const char *name)
{
	struct sim_kernel *k = find(host, name);

	if (k)
		return k;
	k = calloc(1, sizeof *k);
	if (!k)
		abort();
	k->host = host;
	k->name = name ? strdup(name) : NULL;
	k->next = kernels;
	kernels = k;
	return k;
}

void sim_kernel_register(const void *host, const char *name)
{
	struct sim_kernel *k;

	pthread_mutex_lock(&kernels_lock);
	k = find_or_add(host, NULL);
	free(k->name);
	k->name = strdup(name);
	pthread_mutex_unlock(&kernels_lock);
}

struct sim_kernel *sim_kernel_at(const void *host)
{
	struct sim_kernel *k;

	if (!host)
		return NULL;
	pthread_mutex_lock(&kernels_lock);
	k = find(host, NULL);
	pthread_mutex_unlock(&kernels_lock);
	return k;
}

struct sim_kernel *sim_kernel_named(const char *name)
{
	struct sim_kernel *k;

	pthread_mutex_lock(&kernels_lock);
	k = find_or_add(NULL, name);
	pthread_mutex_unlock(&kernels_lock);
	return k;
}

const char *sim_kernel_name(const struct sim_kernel *k)
{
	return k->name;
}

/* Looks for the body among the symbols of the process. Caller holds kernels_lock. */
static void look_up(struct sim_kernel *k)
{
	char sym[300];

	if (k->looked_up || !k->name)
		return;
	k->looked_up = true;
	snprintf(sym, sizeof sym, "somasim_kernel_%s", k->name);
	*(void **)&k->body = dlsym(RTLD_DEFAULT, sym);
	snprintf(sym, sizeof sym, "somasim_kernel_%s_args", k->name);
	k->sizes = dlsym(RTLD_DEFAULT, sym);
}

/* ---- arguments ---- */

/* Copies what is readable of n bytes. The operating system does the reading, since it
 * refuses where this process would fault. */
static size_t try_read(void *to, const void *from, size_t n)
{
	struct iovec l = {to, n}, r = {(void *)(uintptr_t)from, n};
	ssize_t got = process_vm_readv(getpid(), &l, 1, &r, 1, 0);

	return got < 0 ? 0 : (size_t)got;
}

/* args[0] points to a copy of the buffer. */
static void copy_packed(struct sim_command *c, const void *packed, size_t size)
{
	void **v = sim_blob_new(2 * sizeof *v + size, NULL);

	memcpy(v + 2, packed, size);
	v[0] = v + 2;
	c->owned = c->kernel.args = v;
}

static void copy_known(struct sim_command *c, const size_t *sizes, void **args)
{
	size_t total = 0, n = 0;
	char *at;

	while (sizes[n])
		total += SIM_ALIGN(sizes[n++], 16);
	c->owned = c->kernel.args = sim_blob_new((n + 2) * sizeof(void *) + total + 16, NULL);
	at = (char *)SIM_ALIGN((uintptr_t)(c->kernel.args + n + 1), 16);
	for (size_t i = 0; i < n; i++) {
		memcpy(at, args[i], sizes[i]);
		c->kernel.args[i] = at;
		at += SIM_ALIGN(sizes[i], 16);
	}
}

/* Neither the number of arguments nor their sizes are known, so whatever is readable is
 * copied. */
static void copy_unknown(struct sim_command *c, void **args)
{
	void *ptrs[MAX_ARGS];
	size_t n = try_read(ptrs, args, sizeof ptrs) / sizeof *ptrs;
	char *at;

	c->owned = c->kernel.args = sim_blob_new((MAX_ARGS + 2) * sizeof(void *) + MAX_ARGS * GUESS,
						 NULL);
	at = (char *)SIM_ALIGN((uintptr_t)(c->kernel.args + MAX_ARGS + 1), 16);
	for (size_t i = 0; i < n; i++) {
		char buf[GUESS];
		size_t got = ptrs[i] ? try_read(buf, ptrs[i], GUESS) : 0;

		if (!got)
			break;
		memcpy(at, buf, got);
		c->kernel.args[i] = at;
		at += GUESS;
	}
}

/* ---- launches ---- */

static void run_kernel(struct sim_command *c)
{
	if (!c->kernel.body)
		return;
	launch_dims = c->kernel.dims;
	c->kernel.body(c->kernel.args);
	launch_dims = NULL;
}

struct sim_command *sim_kernel_command(struct sim_kernel *k, const uint32_t dims[6], void **args,
				       const void *packed, size_t size)
{
	struct sim_command *c = sim_command_new(SIM_CMD_KERNEL, run_kernel);

	pthread_mutex_lock(&kernels_lock);
	look_up(k);
	if (!k->body && !k->warned) {
		k->warned = true;
		fprintf(stderr, "somasim: kernel %s has no body here and does nothing\n",
			k->name ? k->name : "(unnamed)");
	}
	pthread_mutex_unlock(&kernels_lock);
	c->kernel.body = k->body;
	c->kernel.name = k->name;
	c->kernel.func = k->host ? k->host : (const void *)k;
	memcpy(c->kernel.dims, dims, sizeof c->kernel.dims);
	if (!k->body)
		return c;
	if (packed)
		copy_packed(c, packed, size);
	else if (args && k->sizes)
		copy_known(c, k->sizes, args);
	else if (args)
		copy_unknown(c, args);
	return c;
}

/* ---- test control, found by dlsym ---- */

void somasim_register_kernel(const void *host, sim_kernel_body body);
void somasim_register_kernel_args(const void *host, sim_kernel_body body, const size_t *sizes);
void somasim_launch_dims(uint32_t grid[3], uint32_t block[3]);

void somasim_register_kernel_args(const void *host, sim_kernel_body body, const size_t *sizes)
{
	struct sim_kernel *k;

	pthread_mutex_lock(&kernels_lock);
	k = find_or_add(host, NULL);
	k->body = body;
	k->sizes = sizes;
	k->looked_up = true;
	pthread_mutex_unlock(&kernels_lock);
}

void somasim_register_kernel(const void *host, sim_kernel_body body)
{
	somasim_register_kernel_args(host, body, NULL);
}

void somasim_launch_dims(uint32_t grid[3], uint32_t block[3])
{
	for (int i = 0; i < 3; i++) {
		grid[i] = launch_dims ? launch_dims[i] : 0;
		block[i] = launch_dims ? launch_dims[3 + i] : 0;
	}
}
