/* SPDX-License-Identifier: MIT */
/*
 * Samples of the device memory of this process, as the kernel counts it. The live page shows the
 * samples, and the recording contains them. The rest is the bytes that neither the pools nor
 * counted calls explain.
 */
#ifndef SS_SHIM_KERNEL_SAMPLE_H
#define SS_SHIM_KERNEL_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "live/page.h"

/* Fills in the bytes that devices hold outside of the pools. Asks the kernel if a sample is due;
 * `grew`: the pools took memory, so the sample is due earlier. One thread at a time. Makes no HIP
 * call. */
void ss_kernel_sample(struct ss_live_figures *f, bool grew);
/* The largest rest so far, in bytes over all devices. Any thread. */
uint64_t ss_kernel_rest_high(void);
/* Asks the kernel now, and writes the holders of the device's memory beside `reserved` bytes of the
 * pools, as lines of the report on an allocation that failed. Any thread. */
void ss_kernel_put(FILE *out, int dev, uint64_t reserved);

#endif
