/* SPDX-License-Identifier: MIT */
/* Which release of HIP is played (README.md). Behaviour that differs asks these. */
#ifndef SIM_HIP_VERSION_H
#define SIM_HIP_VERSION_H

#include "device/options.h"

#define V52 (sim_opt.hip == 52)
#define V57 (sim_opt.hip == 57)
#define V6 (sim_opt.hip >= 60)     /* 6.0 and later, 7.x included */
#define V7 (sim_opt.hip >= 70)

#endif
