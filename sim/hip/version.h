/* SPDX-License-Identifier: MIT */
/* Which release of HIP is played (README.md). Behaviour that differs asks these. */
#ifndef SIM_HIP_VERSION_H
#define SIM_HIP_VERSION_H

#include "device/options.h"

#define V52 (sim_opt.hip == 502)
#define V57 (sim_opt.hip == 507)
#define V6 (sim_opt.hip >= 600)     /* 6.0 and later, 7.x included */
#define V7 (sim_opt.hip >= 700)
#define V7_14 (sim_opt.hip >= 714)  /* ROCm 7.14 and later */
#define V7_15 (sim_opt.hip >= 715)  /* ROCm 10.0 and later */

#endif
