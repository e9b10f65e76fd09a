/* SPDX-License-Identifier: MIT */
/* The members of HIP_MEMCPY3D. Sizes are size_t since 6.0, whatever the header says. */
#ifndef SIM_HIP_DRIVER_BOX_H
#define SIM_HIP_DRIVER_BOX_H

#include <stdbool.h>
#include <stddef.h>

#include <hip/hip_runtime_api.h>

#define BOX(number) { \
	number sx, sy, sz, slod; \
	int stype; \
	const char *shost, *sdev; \
	const hipArray *sarr; \
	number sp, sr, dx, dy, dz, dlod; \
	int dtype; \
	char *dhost, *ddev; \
	hipArray *darr; \
	number dp, dr, w, h, d; \
}
struct driver_box_5 BOX(unsigned int);
struct driver_box BOX(size_t);
#undef BOX
_Static_assert(sizeof(struct driver_box_5) == 128 && sizeof(struct driver_box) == 184,
	       "the layouts of HIP 5 and 6");

/* The parameters in the layout of 6.0, from that of 6.0 (`wide`) or an older one. */
static inline struct driver_box driver_box(const void *params, bool wide)
{
	const struct driver_box_5 *p = params;

	if (wide)
		return *(const struct driver_box *)params;
#define C(m) .m = p->m
	return (struct driver_box){C(sx),   C(sy),   C(sz), C(stype), C(shost), C(sdev),  C(sarr),
				   C(sp),   C(sr),   C(dx), C(dy),    C(dz),    C(dtype), C(dhost),
				   C(ddev), C(darr), C(dp), C(dr),    C(w),     C(h),     C(d)};
#undef C
}

#endif
