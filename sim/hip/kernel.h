/* SPDX-License-Identifier: MIT */
/* Kernels and variables of code objects: shared by kernel.c and module.c. */
#ifndef KERNEL_SIM_H
#define KERNEL_SIM_H

#include "hip.h"

struct fn {
	const void *host;
	char *name;
	kernel_body body;
	const size_t *sizes;
	bool looked, warned;
	struct fn *next;
};

struct var {
	const void *host;
	char *name;
	size_t size;
	void *dev[SIM_MAX_DEVICES];
	void *managed;
	struct var *next;
};

extern pthread_mutex_t fn_lock;      /* guards both tables */
extern struct var *vars;
struct fn *fn_by(const void *host, const char *name, bool create);

#endif
