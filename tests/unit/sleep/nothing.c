/* SPDX-License-Identifier: MIT */
/* A library that is loaded for its name. */
extern int nothing;
int nothing __attribute__((visibility("default")));
