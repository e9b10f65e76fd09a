/* SPDX-License-Identifier: MIT */
/* For a pool that divides memory of hipMalloc or hipMallocAsync by itself: tells `somashim check`
 * of each range. */
#include <hip/hip_runtime_api.h>
#ifdef __cplusplus
extern "C" {
#endif
/* The range may be used behind what is on the stream now; and: behind what is on it now it may be
 * handed out again. */
void somashim_handed_out(void *ptr, size_t bytes, hipStream_t stream) __attribute__((weak));
void somashim_returned(void *ptr, hipStream_t stream) __attribute__((weak));
#ifdef __cplusplus
}
#endif
/* NULL without somashim: if (somashim_handed_out) somashim_handed_out(ptr, bytes, stream); */
