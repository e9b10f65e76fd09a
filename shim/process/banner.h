/* SPDX-License-Identifier: MIT */
/* The banner that SOMASHIM_VERBOSE prints when the shim starts. */
#ifndef SS_SHIM_BANNER_H
#define SS_SHIM_BANNER_H

/* `devices` 0: no call is served. */
void ss_banner(int devices);

#endif
