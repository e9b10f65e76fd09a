/* SPDX-License-Identifier: MIT */
/*
 * libz and libzstd by their functions: somashim is linked to neither. Any bytes may follow the
 * packed stream, so both libraries are called in ways that look for its end. No lock.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>

#include "shim/check/unpack.h"

/* z_stream of zlib.h, which is the same in all versions of libz.so.1. */
struct zlib_stream {
	const uint8_t *next_in;
	unsigned avail_in;
	unsigned long total_in;
	uint8_t *next_out;
	unsigned avail_out;
	unsigned long total_out;
	const char *msg;
	void *state, *alloc, *release, *opaque;
	int data_type;
	unsigned long adler, reserved;
};

#define ZLIB_STREAM_END 1 /* Z_STREAM_END */

static int (*inflate_init)(struct zlib_stream *, const char *version, int size);
static int (*inflate)(struct zlib_stream *, int flush);
static int (*inflate_end)(struct zlib_stream *);
static size_t (*zstd_length)(const void *data, size_t size); /* of the first frame */
static size_t (*zstd_unpack)(void *out, size_t room, const void *data, size_t size);
static unsigned (*zstd_failed)(size_t result);

void ss_unpack_open(void)
{
	void *zlib = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
	void *zstd = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);

	if (zlib) {
		*(void **)&inflate_init = dlsym(zlib, "inflateInit_");
		*(void **)&inflate = dlsym(zlib, "inflate");
		*(void **)&inflate_end = dlsym(zlib, "inflateEnd");
	}
	if (zstd) {
		*(void **)&zstd_length = dlsym(zstd, "ZSTD_findFrameCompressedSize");
		*(void **)&zstd_unpack = dlsym(zstd, "ZSTD_decompress");
		*(void **)&zstd_failed = dlsym(zstd, "ZSTD_isError");
	}
}

static unsigned at_most(size_t n)
{
	return n > UINT_MAX / 2 ? UINT_MAX / 2 : (unsigned)n;
}

static bool unpack_zlib(const uint8_t *data, size_t size, uint8_t *out, size_t room)
{
	struct zlib_stream z = {0};
	size_t in = 0, filled = 0;
	int result = 0;

	if (!inflate_init || !inflate || !inflate_end || inflate_init(&z, "1.2.0", sizeof(z)) != 0)
		return false;
	while (result == 0 && in < size) {
		unsigned give = at_most(size - in), take = at_most(room - filled);

		z.next_in = data + in;
		z.avail_in = give;
		z.next_out = out + filled;
		z.avail_out = take;
		result = inflate(&z, 0);
		in += give - z.avail_in;
		filled += take - z.avail_out;
		if (result == 0 && give == z.avail_in && take == z.avail_out)
			break; /* no progress */
	}
	inflate_end(&z);
	return result == ZLIB_STREAM_END && filled == room;
}

static bool unpack_zstd(const void *data, size_t size, void *out, size_t room)
{
	size_t length, got;

	if (!zstd_length || !zstd_unpack || !zstd_failed)
		return false;
	length = zstd_length(data, size);
	if (zstd_failed(length))
		return false;
	got = zstd_unpack(out, room, data, length);
	return !zstd_failed(got) && got == room;
}

bool ss_unpack(enum ss_packing how, const void *data, size_t size, void *out, size_t room)
{
	return how == SS_PACKED_ZLIB ? unpack_zlib(data, size, out, room) :
				       unpack_zstd(data, size, out, room);
}
