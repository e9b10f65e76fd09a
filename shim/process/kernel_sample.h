/* SPDX-License-Identifier: MIT */
/*
 * What the kernel says that this process has of each device, now and then: the live page shows it,
 * the recording has it, and what neither the pools nor counted calls explain is the rest.
 */
#ifndef SS_SHIM_KERNEL_SAMPLE_H
#define SS_SHIM_KERNEL_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "live/page.h"

/* Fills in what devices hold outside of the pools. Asks the kernel if that is due; `grew`: the
 * pools took memory, so it is due earlier. One thread at a time. Makes no HIP call. */
void ss_kernel_sample(struct ss_live_figures *f, bool grew);
/* The most that was unexplained so far, in bytes over all devices. Any thread. */
uint64_t ss_kernel_rest_high(void);
/* Asks now, and writes what holds memory of the device beside `reserved` bytes of the pools, as
 * lines of the report on an allocation that failed. Any thread. */
void ss_kernel_put(FILE *out, int dev, uint64_t reserved);

#endif
