/* SPDX-License-Identifier: MIT */
/*
 * Other copies of this library in the process: one that an image preloads and one of the user's,
 * perhaps of another version. All copies follow these rules, also those of later versions:
 *
 *   somashim_report, an object, is exported by every version, and is how a copy is known.
 *   somashim_version, a string, is exported by every version that knows of copies.
 *
 * The loader's first copy serves the program, because calls by name reach it. Each other copy
 * stands aside: it passes every call to the next object in the loader's order. The first copy skips
 * the others when it looks for the real functions. The first copy that knows of copies tells the
 * user.
 */
#ifndef SS_ROCM_COPIES_H
#define SS_ROCM_COPIES_H

#include <stdbool.h>

/* Is another copy in front of this one? Any thread; takes the loader's lock at its first call. */
bool ss_copy_aside(void);
/* Calls `tell` for each copy that stands aside, if this copy has to tell the user: with the file
 * and version of the copy that serves, and of the other copy. */
void ss_copies_tell(void (*tell)(const char *serves, const char *version, const char *aside,
				 const char *aside_version));

#endif
