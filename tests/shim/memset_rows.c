/* SPDX-License-Identifier: MIT */
/*
 * Memsets in rows have the same effect at any place in a block, wherever the block lies in
 * its segment and whichever backing that has, and they are refused beyond the block.
 */
#include "test.h"

enum { SIZE = 4096, PITCH = 64, WIDTH = 20, ROWS = 4 };

static unsigned char got[SIZE];

/* The runtime may set more in each row than it was asked for (7.2, elements of several bytes). */
static bool rounds;

/* `n` rows of `width` bytes from p on are `want`, and what is between them is still 1. */
static void check(const char *p, int want, size_t width, int n)
{
	OK(hipDeviceSynchronize());
	OK(hipMemcpy(got, p, PITCH * (ROWS + 1), hipMemcpyDeviceToHost));
	for (int i = 0; i < PITCH * (ROWS + 1); i++) {
		bool in = i / PITCH < n && (size_t)(i % PITCH) < width;

		CHECK(got[i] == (in ? want : 1) || (rounds && i / PITCH < n && got[i] == want));
	}
	OK(hipMemset((void *)p, 1, PITCH * (ROWS + 1)));
	OK(hipDeviceSynchronize());
}

typedef hipError_t d2d8(hipDeviceptr_t, size_t, unsigned char, size_t, size_t, hipStream_t);
typedef hipError_t d2d16(hipDeviceptr_t, size_t, unsigned short, size_t, size_t);
typedef hipError_t d2d32(hipDeviceptr_t, size_t, unsigned int, size_t, size_t, hipStream_t);

int main(void)
{
	char *p[3];
	hipError_t bad = hipErrorInvalidValue;
	d2d8 *set8 = (d2d8 *)dlsym(RTLD_DEFAULT, "hipMemsetD2D8Async");
	d2d16 *set16 = (d2d16 *)dlsym(RTLD_DEFAULT, "hipMemsetD2D16");
	d2d32 *set32 = (d2d32 *)dlsym(RTLD_DEFAULT, "hipMemsetD2D32Async");
	hipStream_t s;
	int version;

	OK(hipRuntimeGetVersion(&version));
	if (version < 70000000)
		set8 = NULL;
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	for (int i = 0; i < 3; i++) {
		OK(hipMalloc((void **)&p[i], SIZE));
		OK(hipMemset(p[i], 1, SIZE));
	}
	OK(hipDeviceSynchronize());
	for (int i = 0; i < 6; i++) {
		char *at = p[i / 2] + i % 2 * 512;
		hipPitchedPtr cube = {at, PITCH, PITCH, 2};
		hipExtent box = {WIDTH, 2, 2};
		size_t rows = SIZE / PITCH - (size_t)(i % 2) * 8;

		OK(hipMemset2D(at, PITCH, 2, WIDTH, ROWS));
		check(at, 2, WIDTH, ROWS);
		OK(hipMemset2DAsync(at, PITCH, 3, WIDTH, ROWS, s));
		check(at, 3, WIDTH, ROWS);
		OK(hipMemset2D(at, PITCH, 4, PITCH, ROWS));
		check(at, 4, PITCH, ROWS);
		OK(hipMemset2D(at, PITCH, 5, WIDTH, 1));
		check(at, 5, WIDTH, 1);
		OK(hipMemset3D(cube, 6, box));
		check(at, 6, WIDTH, 4);
		OK(hipMemset3DAsync(cube, 7, box, s));
		check(at, 7, WIDTH, 4);
		OK(hipMemset2D(at, PITCH, 8, 0, ROWS));
		check(at, 8, 0, 0);
		GIVES(bad, hipMemset2D(at, PITCH, 9, WIDTH, rows + 1));
		GIVES(bad, hipMemset2DAsync(at, PITCH, 9, WIDTH, rows + 1, s));
		if (!set8)
			continue;
		OK(set8((hipDeviceptr_t)at, PITCH, 10, WIDTH, ROWS, s));
		check(at, 10, WIDTH, ROWS);
		/* The runtime takes the width for bytes, whatever the elements are. */
		OK(set32((hipDeviceptr_t)at, PITCH, 0x0b0b0b0b, WIDTH, ROWS, s));
		rounds = version >= 70200000;
		check(at, 11, WIDTH, ROWS);
		rounds = false;
		OK(set16((hipDeviceptr_t)at, PITCH, 0x0c0c, PITCH, rows));
		check(at, 12, PITCH, ROWS + 1);
		OK(hipMemset(at, 1, rows * PITCH));
		OK(hipDeviceSynchronize());
		GIVES(bad, set8((hipDeviceptr_t)at, PITCH, 9, WIDTH, rows + 1, s));
		GIVES(bad, set32((hipDeviceptr_t)at, PITCH, 9, WIDTH, rows + 1, s));
		/* Sets 4 bytes */
		GIVES(bad, set32((hipDeviceptr_t)(at + SIZE - i % 2 * 512 - 2), PITCH, 9, 2, 1, s));
	}
	/* What the runtime sets beyond the last row would be the next block's. */
	for (int i = 0; i < 2; i++) {
		char *end = p[i] + SIZE, next[64];

		if (p[i + 1] != end)
			continue;
		OK(hipMemset2D(end - 44, 24, 13, 20, 2));
		OK(hipDeviceSynchronize());
		OK(hipMemset2DAsync(end - 20, 24, 14, 20, 1, s));
		if (set8)
			OK(set32((hipDeviceptr_t)(end - 20), 24, 15, 20, 1, s));
		OK(hipDeviceSynchronize());
		OK(hipMemcpy(next, end, sizeof(next), hipMemcpyDeviceToHost));
		for (size_t n = 0; n < sizeof(next); n++)
			CHECK(next[n] == 1);
	}
	for (int i = 0; i < 3; i++)
		OK(hipFree(p[i]));
	OK(hipStreamDestroy(s));
	return 0;
}
