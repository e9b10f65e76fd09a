/* SPDX-License-Identifier: MIT */
/* Takes a block from a pool and gives it back, for remember.sh. */
#include "test.h"

int main(void)
{
	void *p;

	OK(hipMallocAsync(&p, 8 << 20, NULL));
	OK(hipFreeAsync(p, NULL));
	return 0;
}
