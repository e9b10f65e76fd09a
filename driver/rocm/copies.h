/* SPDX-License-Identifier: MIT */
/*
 * Other copies of this library in the process: one that an image preloads and one of the user's,
 * perhaps of another version. All copies keep to this, also those of later versions:
 *
 *   somashim_report, an object, is exported by every version, and is how a copy is known.
 *   somashim_version, a string, is exported by every version that knows of copies.
 *
 * The copy that the loader has first serves the program, because calls by name reach it. Each
 * other stands aside: whatever it is asked goes to what is behind it. The first one passes over the
 * others when it looks for the real functions. The first one that knows of copies tells the user.
 */
#ifndef SS_ROCM_COPIES_H
#define SS_ROCM_COPIES_H

#include <stdbool.h>

/* Is another copy in front of this one? Any thread; takes the loader's lock at its first call. */
bool ss_copy_aside(void);
/* Calls `tell` for each copy that stands aside, if it is on us to say so: with the file and version
 * of the copy that serves, and with those of the other. */
void ss_copies_tell(void (*tell)(const char *serves, const char *version, const char *aside,
				 const char *aside_version));

#endif
