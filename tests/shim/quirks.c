/* SPDX-License-Identifier: MIT */
/*
 * Pools of virtual memory on a runtime with a known defect (SOMASIM_QUIRKS, docs/known-
 * problems.md). Blocks hold what is written to them, pools grow, give back and grow again,
 * and every figure stays true.
 */
#include <unistd.h>

#include "borders.h"

#define MIB ((size_t)1 << 20)
#define BLOCKS 24
#define KEPT 100

static hipMemPool_t pool;

struct block {
	char *p;
	size_t size;
	int stamp;
};

static bool playing(const char *quirk)
{
	const char *q = getenv("SOMASIM_QUIRKS");

	return q && strstr(q, quirk);
}

static void take(struct block *b, size_t size, int value, hipStream_t s)
{
	b->size = size;
	b->stamp = value;
	OK(hipMallocAsync((void **)&b->p, size, s));
	CHECK(b->p);
	stamp_borders(b->p, size, value, s); /* at once: nothing has settled */
}

static void give(struct block *b, hipStream_t s)
{
	check_borders(b->p, b->size, b->stamp, s);
	OK(hipFreeAsync(b->p, s));
	b->p = NULL;
}

/* Grows by pieces, leaves gaps, gives them back, fills them with other sizes. */
static void churn(hipStream_t s, int rounds)
{
	struct block b[BLOCKS];

	memset(b, 0, sizeof(b));
	for (int r = 0; r < rounds; r++) {
		for (int i = 0; i < BLOCKS; i++)
			if (!b[i].p)
				take(&b[i], (1 + (size_t)(i * 7 + r * 5) % 11) * 700000, 1 + i + r,
				     s);
		for (int i = r % 3; i < BLOCKS; i += 3)
			give(&b[i], s);
		if (r & 1) {
			OK(hipMemPoolTrimTo(pool, 0));
			OK(hipDeviceSynchronize());
		}
	}
	for (int i = 0; i < BLOCKS; i++)
		if (b[i].p)
			give(&b[i], s);
}

/* Keeps some of what it asks for, among what comes and goes: many small steps of growth, in
 * chunks as small as the runtime takes them, and what stays apart from the rest. */
static void build_up(hipStream_t s)
{
	static struct block kept[KEPT];
	struct block b[3];

	for (int i = 0; i < KEPT; i++) {
		for (int j = 0; j < 3; j++)
			take(&b[j], 900000 + (size_t)j * 700000, 50 + j, s);
		take(&kept[i], i & 1 ? 1300000 : 3000000, 1 + i, s);
		for (int j = 0; j < 3; j++)
			give(&b[j], s);
	}
	for (int i = 0; i < KEPT; i++)
		give(&kept[i], s);
}

/* Larger than what one handle may be. */
static void large(hipStream_t s)
{
	struct block b;

	take(&b, 300 * MIB, 77, s);
	give(&b, s);
}

/* No address of a mapping leaves the process. */
static void share(hipStream_t s)
{
	hipIpcMemHandle_t handle;
	struct block b;

	take(&b, 8 * MIB, 5, s);
	OK(hipStreamSynchronize(s));
	(void)hipIpcGetMemHandle(&handle, b.p);
	give(&b, s);
}

static const char *grant_call(void)
{
	const char *b = getenv("SOMASHIM_BACKING");

	return b && !strcmp(b, "vmm") ? "hipMemSetAccess" : "hsa_amd_agents_allow_access";
}

/* A peer gets access before and after there is memory; nothing changes in it. */
static void peers(hipStream_t s)
{
	hipMemAccessDesc d = {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtReadWrite};
	struct block a, b;
	uint64_t grants = sim_count(grant_call()), later;
	int n = 0;

	OK(hipGetDeviceCount(&n));
	if (n < 2)
		return;
	take(&a, 9 * MIB, 3, s);
	OK(hipStreamSynchronize(s));
	OK(hipMemPoolSetAccess(pool, &d, 1));
	later = sim_count(grant_call());
	CHECK(later > grants); /* for what there is */
	take(&b, 30 * MIB, 4, s);
	CHECK(sim_count(grant_call()) > later); /* and for what comes */
	give(&b, s);
	give(&a, s);
}

/* After everything went back, is the device's memory to be had? */
static void returned(hipStream_t s, uint64_t before)
{
	OK(hipStreamSynchronize(s));
	OK(hipDeviceSynchronize());
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipDeviceSynchronize());
	/* What the runtime never gives back is not given to it, and still counted. */
	if (playing("release-leaks"))
		return;
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) == 0);
	CHECK(device_free(0) + 8 * MIB >= before);
}

int main(void)
{
	hipStream_t s;
	uint64_t before;

	CHECK(preloaded());
	alarm(300);
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipDeviceSynchronize());
	before = device_free(0);
	churn(s, 6);
	returned(s, before);
	build_up(s);
	large(s);
	share(s);
	returned(s, before);
	peers(s);
	OK(hipStreamDestroy(s));
	return 0;
}
