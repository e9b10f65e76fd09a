/* SPDX-License-Identifier: MIT */
/*
 * dlsym() and dlvsym(), as the program calls them. dlsym_entry.S has the exported entry points,
 * dlsym_early.c sends every name that is not ours on to the real function, and dlsym.c answers for
 * our names.
 */
#ifndef SS_SHIM_DLSYM_H
#define SS_SHIM_DLSYM_H

#include <stdint.h>

#define SS_DLSYM_HIDDEN __attribute__((visibility("hidden")))

/* The verdict on a call, which the entry point carries out. Two registers on each machine. */
struct ss_dlsym_verdict {
	void *address;   /* the answer, or the function that it must jump to */
	uintptr_t final; /* 1: return the address, 0: jump there, with the arguments as they came */
};

/* One call. */
struct ss_dlsym {
	void *(*real)(void *handle, const char *name);
	void *(*real_version)(void *handle, const char *name, const char *version);
	void *handle;
	const char *name;
	const char *version; /* NULL: the call is dlsym() */
	uintptr_t caller;    /* its return address */
	void *ours;          /* our function of that name */
};

/* Called by the entry points. */
struct ss_dlsym_verdict ss_dlsym_decide(void *handle, const char *name,
					void *caller) SS_DLSYM_HIDDEN;
struct ss_dlsym_verdict ss_dlvsym_decide(void *handle, const char *name, const char *version,
					 void *caller) SS_DLSYM_HIDDEN;
/* Answers a call for a name that we have. Any thread; takes the loader's lock, no other. */
struct ss_dlsym_verdict ss_dlsym_answer(const struct ss_dlsym *call) SS_DLSYM_HIDDEN;

#endif
