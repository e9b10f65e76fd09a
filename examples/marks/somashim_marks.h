/* SPDX-License-Identifier: MIT */
/* For a pool that divides memory of hipMalloc or hipMallocAsync itself: these calls tell `somashim
 * check` of each range. */
#include <hip/hip_runtime_api.h>
#ifdef __cplusplus
extern "C" {
#endif
/* The first call: work that is enqueued on the stream from now on may use the range. The second
 * one: the range may be handed out again to work that comes after all work that is on the stream
 * now. */
void somashim_handed_out(void *ptr, size_t bytes, hipStream_t stream) __attribute__((weak));
void somashim_returned(void *ptr, hipStream_t stream) __attribute__((weak));
#ifdef __cplusplus
}
#endif
/* NULL without somashim: if (somashim_handed_out) somashim_handed_out(ptr, bytes, stream); */
