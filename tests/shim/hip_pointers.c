/* SPDX-License-Identifier: MIT */
/* A library that keeps functions of HIP in pointers of the same names, as hipew does. */
#define POINTER(name) __attribute__((visibility("default"))) void *name

POINTER(hipMalloc);
POINTER(hipFree);
POINTER(hipMallocAsync);
