/* SPDX-License-Identifier: MIT */
/* Checks that a fresh mapping keeps stored data (quirk C2). */
#ifndef SS_ROCM_MAPPING_CHECK_H
#define SS_ROCM_MAPPING_CHECK_H

#include "core/driver.h"

#define SS_MIN_CHUNK (256ull << 10) /* no runtime maps less; one stamp per such unit */

/* The `settle` operation of core/driver.h. Returns SS_OK at once if the quirk does not apply. */
enum ss_status ss_rocm_mapping_check(void *ctx, int dev, void *va, size_t size);
/* Have all checks of [va, va + size) ended, so that the range may be unmapped? Call it while a
 * scope of the device is open. */
bool ss_rocm_mapping_check_ended(int dev, void *va, size_t size);
/* The device was reset, and the streams of its checks are gone with it. */
void ss_rocm_mapping_check_reset(int dev);

#endif
