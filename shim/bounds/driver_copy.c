/* SPDX-License-Identifier: MIT */
/*
 * Copies that the driver API describes by a structure, checked against blocks. The structures are
 * read by offset, because with 6.0 the numbers of HIP_MEMCPY3D became size_t and the kinds of
 * memory changed. The loaded runtime decides the layout. No lock.
 */
#include <stdint.h>
#include <string.h>

#include "driver/rocm/resolve.h"
#include "shim/bounds/check.h"

#define NONE 255

/* Offsets of the members of one side. A member that a structure lacks is NONE and
 * counts as 0. */
struct side {
	unsigned char x, y, z, type, device, pitch, height;
};
struct layout {
	unsigned char word, width, height, depth;
	struct side src, dst;
};

static const struct layout flat = {
	/* hip_Memcpy2D */
	8, 112, 120, NONE, {0, 8, NONE, 16, 32, 48, NONE}, {56, 64, NONE, 72, 88, 104, NONE},
};
static const struct layout box_5 = {
	/* HIP_MEMCPY3D up to 5.x */
	4, 112, 116, 120, {0, 4, 8, 16, 32, 48, 52}, {56, 60, 64, 72, 88, 104, 108},
};
static const struct layout box_6 = {
	/* from 6.0 on */
	8, 160, 168, 176, {0, 8, 16, 32, 48, 64, 72}, {80, 88, 96, 112, 128, 144, 152},
};

_Static_assert(offsetof(hip_Memcpy2D, srcPitch) == 48 && offsetof(hip_Memcpy2D, dstDevice) == 88 &&
		       sizeof(hip_Memcpy2D) == 128,
	       "flat");

static size_t number(const struct layout *l, const void *p, unsigned at)
{
	uint64_t n = 0;

	if (at != NONE)
		memcpy(&n, (const char *)p + at, l->word);
	return n;
}

/* The offset of the member that holds the address; NONE for an array. Host memory has its own
 * address, before `device`. The runtime looks that address up as well, so the address may belong to
 * a block. */
static unsigned address_at(const struct side *s, const void *p)
{
	static const int host[] = {0, 1}, device[] = {1, 2}, managed[] = {4, 3},
			 unified[] = {3, 11};
	bool now = ss_runtime()->major >= 6;
	int type;

	memcpy(&type, (const char *)p + s->type, sizeof(type));
	if (type == host[now])
		return s->device - 8u;
	return type == device[now] || type == managed[now] || type == unified[now] ? s->device :
										     NONE;
}

/* NULL: an array. */
static void *pointer_of(const struct side *s, const void *p)
{
	unsigned address = address_at(s, p);
	void *ptr = NULL;

	if (address != NONE)
		memcpy(&ptr, (const char *)p + address, sizeof(ptr));
	return ptr;
}

static bool side_exceeds(const struct layout *l, const struct side *s, const void *p,
			 hipStream_t stream, enum ss_access access)
{
	hipPitchedPtr whole = {.pitch = number(l, p, s->pitch), .ysize = number(l, p, s->height)};
	struct hipPos at = {number(l, p, s->x), number(l, p, s->y), number(l, p, s->z)};
	hipExtent box = {number(l, p, l->width), number(l, p, l->height),
			 l->depth == NONE ? 1 : number(l, p, l->depth)};

	whole.ptr = pointer_of(s, p);
	return whole.ptr && ss_pitched_exceeds(stream, access, &whole, &at, &box);
}

static bool exceeds(const struct layout *l, const void *p, hipStream_t stream)
{
	ss_stream_used(stream);
	if (unlikely(ss_checking) && p)
		ss_check_source(pointer_of(&l->dst, p), pointer_of(&l->src, p), false);
	return p && (side_exceeds(l, &l->dst, p, stream, SS_WRITES) ||
		     side_exceeds(l, &l->src, p, stream, SS_READS));
}

bool ss_2d_exceeds(const hip_Memcpy2D *p, hipStream_t stream)
{
	return exceeds(&flat, p, stream);
}

bool ss_3d_exceeds(const HIP_MEMCPY3D *p, hipStream_t stream)
{
	return exceeds(ss_runtime()->major < 6 ? &box_5 : &box_6, p, stream);
}

/* HIP_MEMSET_NODE_PARAMS, which only 6.x takes here. */
struct fill_6 {
	void *dst;
	size_t pitch;
	unsigned int value, element;
	size_t width, height;
};

bool ss_drv_memset_exceeds(const void *p)
{
	const struct fill_6 *f = p;
	hipMemsetParams same;

	if (!p || ss_runtime()->major > 6)
		return ss_memset_exceeds(p);
	same = (hipMemsetParams){.dst = f->dst,
				 .elementSize = f->element,
				 .pitch = f->pitch,
				 .width = f->width,
				 .height = f->height};
	return ss_memset_exceeds(&same);
}
