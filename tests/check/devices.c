/* SPDX-License-Identifier: MIT */
/* Memory of one device that is freed on the null stream of another, with the tool `poison`: what is
 * written into freed blocks is in the order of that stream. */
#include "tests/shim/device.h"

#include "corpus.h"

static hipMemPool_t pool; /* of device 1 */

static unsigned char *from_pool(void)
{
	void *p = NULL;

	OK(hipMallocFromPoolAsync(&p, BYTES, pool, NULL));
	return p;
}

int main(void)
{
	const hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				       .location = {hipMemLocationTypeDevice, 1}};
	const hipMemAccessDesc both = {{hipMemLocationTypeDevice, 0},
				       hipMemAccessFlagsProtReadWrite};
	unsigned char host[BYTES];
	unsigned char *before, *next, *p;

	OK(hipMemPoolCreate(&pool, &props));
	OK(hipMemPoolSetAccess(pool, &both, 1));
	before = from_pool();
	next = from_pool();
	OK(hipStreamSynchronize(NULL));
	/* The null stream of device 1 has nothing to do with any of this. */
	OK(hipSetDevice(1));
	OK(hipMemset(before, 1, BYTES));
	OK(hipDeviceSynchronize());
	stall(NULL);
	OK(hipSetDevice(0));
	/* The second one does not fit beside the first (SOMASHIM_CHECK_QUARANTINE), which goes
	 * back. */
	OK(hipFreeAsync(before, NULL));
	OK(hipFreeAsync(next, NULL));
	p = from_pool();
	if (p != before)
		fprintf(stderr, "the block did not come back\n");
	OK(hipMemsetAsync(p, 7, BYTES, NULL));
	OK(hipStreamSynchronize(NULL));
	OK(hipSetDevice(1));
	release(NULL);
	OK(hipDeviceSynchronize());
	OK(hipMemcpy(host, p, BYTES, hipMemcpyDeviceToHost));
	for (int i = 0; i < BYTES; i++) {
		if (host[i] != 7) {
			fprintf(stderr, "byte %d is %d, not 7\n", i, host[i]);
			return 1;
		}
	}
	OK(hipSetDevice(0));
	OK(hipFreeAsync(p, NULL));
	OK(hipMemPoolDestroy(pool));
	return p != before;
}
