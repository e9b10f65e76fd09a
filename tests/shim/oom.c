/* SPDX-License-Identifier: MIT */
/*
 * Bounded memory. A request that fits once idle memory is given back succeeds; one that
 * cannot fit changes nothing and is reported once; memory in flight is waited for; and a
 * limit of the process applies to every call that reports memory. The device has 1 GiB.
 *
 *   oom CASE      each in the environment that it needs
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#define MIB ((uint64_t)1 << 20)

static hipMemPool_t pool;
static hipStream_t s, t;

static void keep_all(hipMemPool_t of)
{
	uint64_t all = UINT64_MAX;

	OK(hipMemPoolSetAttribute(of, hipMemPoolAttrReleaseThreshold, &all));
}

/* Everything that was said since the last question. */
static const char *said(void)
{
	static char text[1 << 16];
	static long at;
	FILE *f = fopen(getenv("SOMASHIM_LOG"), "r");
	size_t n;

	CHECK(f && !fseek(f, at, SEEK_SET));
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	at += (long)n;
	fclose(f);
	return text;
}

static int count(const char *text, const char *word)
{
	int n = 0;

	while ((text = strstr(text, word))) {
		n++;
		text += strlen(word);
	}
	return n;
}

/* Idle memory of another pool, and of hipMalloc, is to be had. */
static void others_idle(void)
{
	hipMemPool_t other = make_pool(0, hipMemHandleTypeNone);
	void *p, *q;

	keep_all(other);
	keep_all(pool);
	OK(hipMallocFromPoolAsync(&p, 600 * MIB, other, s));
	OK(hipFreeAsync(p, s));
	OK(hipStreamSynchronize(s));
	CHECK(figure(other, hipMemPoolAttrReservedMemCurrent) >= 600 * MIB);
	OK(hipMallocAsync(&p, 800 * MIB, t));
	CHECK(figure(other, hipMemPoolAttrReservedMemCurrent) <= 200 * MIB);
	OK(hipFreeAsync(p, t));
	OK(hipStreamSynchronize(t));
	OK(hipMalloc(&q, 800 * MIB));
	OK(hipFree(q));
	OK(hipMallocAsync(&p, 800 * MIB, s));
	OK(hipFreeAsync(p, s));
	OK(hipMemPoolDestroy(other));
}

/* A program that tries sizes until one fits: 44 failures, which are not 44 reports. */
static void probes(void)
{
	const char *text;
	void *p;

	(void)said();
	for (int i = 0; i < 44; i++)
		CHECK(hipMalloc(&p, 4096 * MIB) == hipErrorOutOfMemory);
	(void)hipGetLastError();
	text = said();
	CHECK(count(text, "tried:") == 3);
	CHECK(count(text, "SOMASHIM_OOM_REPORTS=all") == 1);
	CHECK(count(text, "out of memory: 10 times so far") == 1);
	CHECK(count(text, "somashim: out of memory:") == 4);
}

static hipError_t take_one(bool classic, void **p, uint64_t size)
{
	return classic ? hipMalloc(p, size) : hipMallocAsync(p, size, s);
}

static void give_one(bool classic, void *p)
{
	OK(classic ? hipFree(p) : hipFreeAsync(p, s));
	OK(hipStreamSynchronize(s));
}

/* A block that is a good part of the device, freed and allocated again: what is small and
 * came in between has not cut it up, or the rest of the device would be too little. Nor where
 * there is no room beside it, for whoever needs that. */
static void large_again(void)
{
	const uint64_t sizes[] = {640 * MIB + 1, 1000 * MIB};
	void *large, *small[8], *other;

	/* Nobody looks what is idle any more, since decay has looked once. */
	for (int classic = 0; classic < 2; classic++) {
		OK(take_one(classic, &large, MIB));
		give_one(classic, large);
	}
	for (int i = 0; i < 12; i++) {
		bool classic = i & 1;
		uint64_t size = sizes[i / 2 % 2];

		OK(take_one(classic, &large, size));
		if (i >= 4) { /* the rest of its segment is there for all streams */
			OK(hipMallocAsync(&other, 3 * MIB, t));
			OK(hipFreeAsync(other, t));
			OK(hipStreamSynchronize(t));
		}
		give_one(classic, large);
		if (i >= 8) { /* as closely as it fits the first time */
			OK(take_one(classic, &large, size));
			give_one(classic, large);
		}
		for (int k = 0; k < 8; k++)
			OK(take_one(classic, &small[k], MIB / 2 << k / 2));
		OK(take_one(classic, &large, 640 * MIB));
		give_one(classic, large);
		OK(take_one(!classic, &large, 900 * MIB));
		give_one(!classic, large);
		for (int k = 0; k < 8; k++)
			give_one(classic, small[k]);
	}
}

/* As many blocks each time, and each time twice as large, until they have all but a fortieth of
 * the device. */
static void doubled_sizes(void)
{
	static void *p[250];

	for (size_t size = MIB; size <= 4 * MIB; size *= 2) {
		for (int i = 0; i < 250; i++)
			OK(hipMalloc(&p[i], size));
		for (int i = 0; i < 250; i++)
			OK(hipFree(p[i]));
	}
}

/* All of the device, in pieces of one size and then of another. What is idle is not cut up, or
 * the rests would be missing at the end; nor by a program that has never had so much before. */
static void other_sizes(void)
{
	static const unsigned pieces[] = {4, 9, 1, 4, 7, 10, 13, 28, 9};
	void *p[28];

	for (unsigned i = 0; i < 2 * sizeof(pieces) / sizeof(pieces[0]); i++) {
		unsigned n = pieces[i / 2];
		uint64_t size = (i < 2 ? 600 : 1024) / n / 2 * 2 * MIB;

		for (unsigned k = 0; k < n; k++)
			OK(take_one(i & 1, &p[k], size));
		for (unsigned k = 0; k < n; k++)
			give_one(i & 1, p[k]);
	}
}

/* Three quarters of the device in one piece, after pieces whose exchange for it has cost all calls
 * that a tight fit may cost; a small block; and once more. */
static void small_between(void)
{
	void *p[12], *small;

	for (int i = 0; i < 2; i++) {
		for (unsigned k = 0; k < 12; k++)
			OK(hipMalloc(&p[k], 64 * MIB));
		for (unsigned k = 0; k < 12; k++)
			OK(hipFree(p[k]));
		OK(hipMalloc(&p[0], 768 * MIB));
		OK(hipFree(p[0]));
	}
	OK(hipMalloc(&small, 15360));
	OK(hipMalloc(&p[0], 768 * MIB));
	OK(hipFree(p[0]));
	OK(hipFree(small));
}

/* hipFree that did not wait, on a device that is at its end all the same; streams that join
 * the null stream have no command behind the free that could tell. */
static void idle_device(void)
{
	hipStream_t blocking;
	void *p, *q;

	OK(hipStreamCreate(&blocking));
	for (int i = 0; i < 16; i++) {
		OK(i & 1 ? hipMalloc(&p, 900 * MIB) : hipMallocAsync(&p, 900 * MIB, blocking));
		OK(hipMemsetAsync(p, 1, MIB, i & 2 ? blocking : NULL));
		OK(hipDeviceSynchronize());
		OK(hipFree(p));
		if (i & 4)
			OK(hipMalloc(&q, 800 * MIB));
		else
			OK(hipMallocAsync(&q, 800 * MIB, i & 8 ? s : blocking));
		OK(hipFree(q));
	}
	OK(hipStreamDestroy(blocking));
}

/* One report for one failure, with who holds what; nothing has changed. */
static void report(void)
{
	uint64_t reserved, used, left;
	char expected[128];
	const char *text;
	void *p, *q, *other;

	keep_all(pool);
	OK(hipExtMallocWithFlags(&other, 64 * MIB, hipDeviceMallocFinegrained)); /* not ours */
	OK(hipMallocAsync(&p, 200 * MIB, s));
	OK(hipMallocAsync(&q, 40 * MIB, s));
	stall(s);
	OK(hipMemsetAsync(q, 1, 4096, s));
	OK(hipFreeAsync(q, s)); /* in flight */
	reserved = figure(pool, hipMemPoolAttrReservedMemCurrent);
	used = figure(pool, hipMemPoolAttrUsedMemCurrent);
	left = device_free(0);
	(void)said();
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&q, 2048 * MIB, t));
	text = said();
	CHECK(count(text, "out of memory: 2147483648 bytes on device 0") == 1);
	CHECK(count(text, "out of memory") == 1);
	CHECK(strstr(text, "default pool (") && strstr(text, "used 209715200"));
	snprintf(expected, sizeof(expected),
		 "in flight %llu, completed 0, exported 0, largest free run %llu\n",
		 (unsigned long long)(reserved - used), (unsigned long long)(reserved - used));
	CHECK(strstr(text, expected));
	CHECK(strstr(text, "others about 67108864"));
	CHECK(strstr(text, "tried: nothing"));
	/* Others have so much: the device itself is large enough, and the report says so. */
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&q, 800 * MIB, t));
	text = said();
	CHECK(strstr(text, "tried: nothing, since it would not fit if all idle memory"));
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&q, 740 * MIB, t));
	text = said();
	CHECK(count(text, "out of memory") == 1 && strstr(text, "a bounded host wait\n"));
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) == reserved);
	CHECK(figure(pool, hipMemPoolAttrUsedMemCurrent) == used);
	CHECK(device_free(0) == left);
	release(s);
	OK(hipFreeAsync(p, s));
	OK(hipFree(other));
}

static void *let_go(void *arg)
{
	usleep(100000);
	release(arg);
	return NULL;
}

/* What is in flight is waited for, and no longer than is asked. SOMASHIM_OOM_WAIT_MS=1000 */
static void in_flight(void)
{
	uint64_t from;
	pthread_t thread;
	void *p, *q;

	OK(hipMallocAsync(&p, 600 * MIB, s));
	stall(s);
	OK(hipMemsetAsync(p, 1, 4096, s));
	OK(hipFreeAsync(p, s));
	CHECK(!pthread_create(&thread, NULL, let_go, s));
	OK(hipMallocAsync(&q, 700 * MIB, t));
	pthread_join(thread, NULL);
	OK(hipFreeAsync(q, t));
	OK(hipStreamSynchronize(t));

	OK(hipMallocAsync(&p, 600 * MIB, s));
	stall(s);
	OK(hipMemsetAsync(p, 1, 4096, s));
	OK(hipFreeAsync(p, s));
	from = now_ms();
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&q, 700 * MIB, t));
	CHECK(now_ms() - from >= 900 && now_ms() - from < 10000);
	release(s);
}

static void *take(void *arg)
{
	hipError_t err;
	void *p;

	err = hipMallocAsync(&p, 80 * MIB, arg);
	CHECK(err == hipSuccess || err == hipErrorOutOfMemory);
	return NULL;
}

/* SOMASHIM_LIMIT=128M, or 12.5%. */
static void limit(void)
{
	const char *call = getenv("SOMASHIM_BACKING") &&
					   !strcmp(getenv("SOMASHIM_BACKING"), "vmm") ?
				   "hipMemCreate" :
				   "hipExtMallocWithFlags";
	int (*hold)(const char *, int) = (int (*)(const char *, int))sim_call("somasim_hold");
	int (*holds)(void) = (int (*)(void))sim_call("somasim_holds");
	void (*go)(void) = (void (*)(void))sim_call("somasim_let_go");
	uint64_t before = device_free(0);
	size_t left, total;
	pthread_t thread;
	void *p, *q;

	CHECK(hold && holds && go);
	OK(hipMemGetInfo(&left, &total));
	CHECK(total == 128 * MIB && left == 128 * MIB);
	OK(hipMallocAsync(&p, 60 * MIB, s));
	OK(hipMemGetInfo(&left, &total));
	CHECK(total == 128 * MIB && left == 68 * MIB);
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&q, 70 * MIB, s));
	CHECK(strstr(said(), "SOMASHIM_LIMIT is 134217728"));
	GIVES(hipErrorOutOfMemory, hipMalloc(&q, 70 * MIB));
	(void)hipGetLastError();
	OK(hipMalloc(&q, 66 * MIB));
	CHECK(before - device_free(0) <= 128 * MIB);
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) + 66 * MIB <= 128 * MIB);
	OK(hipFree(q));
	OK(hipFreeAsync(p, s));
	OK(hipStreamSynchronize(s));
	OK(hipMemGetInfo(&left, &total));
	CHECK(left == 128 * MIB);             /* what is idle is free */
	OK(hipMallocAsync(&p, 120 * MIB, t)); /* and can be had, in one piece */
	OK(hipFreeAsync(p, t));
	OK(hipStreamSynchronize(t));
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipDeviceSynchronize());
	CHECK(device_free(0) == before);

	/* Two at once: while one thread stands before the call. */
	if (!getenv("SOMASHIM_BACKING") || strcmp(getenv("SOMASHIM_BACKING"), "hsa")) {
		CHECK(hold(call, 0) == 0);
		CHECK(!pthread_create(&thread, NULL, take, s));
		while (!holds())
			sched_yield();
		if (!strcmp(call, "hipExtMallocWithFlags"))
			take(t);
		go();
		pthread_join(thread, NULL);
		take(t);
		CHECK(before - device_free(0) <= 128 * MIB);
	}
}

/* Idle bytes are free for the program, and not for the runtime when it asks. */
static void free_figure(void)
{
	uint64_t (*told)(void) = (uint64_t(*)(void))sim_call("somasim_told_free");
	hipMemGenericAllocationHandle_t h;
	hipMemAllocationProp prop;
	size_t left, total;
	void *p;

	CHECK(told);
	keep_all(pool);
	OK(hipMallocAsync(&p, 300 * MIB, s));
	OK(hipFreeAsync(p, s));
	OK(hipStreamSynchronize(s));
	OK(hipMemGetInfo(&left, &total));
	CHECK(left >= device_free(0) + 296 * MIB && left <= total);
	/* Calls of the runtime that fail and ask themselves. */
	memset(&prop, 0, sizeof(prop));
	((int *)&prop)[0] = hipMemAllocationTypePinned;
	((int *)&prop)[2] = hipMemLocationTypeDevice;
	GIVES(hipErrorOutOfMemory, hipMemCreate(&h, 2048 * MIB, &prop, 0));
	CHECK(told() == (device_free(0) & ~(uint64_t)1023));
	GIVES(hipErrorOutOfMemory,
	      hipExtMallocWithFlags(&p, 2048 * MIB, hipDeviceMallocFinegrained));
	CHECK(told() == (device_free(0) & ~(uint64_t)1023));
}

/* The device's own figure: all that was ours is back. */
static void goes_back(void)
{
	uint64_t before = device_free(0), zero = 0;
	void *p[16];

	OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &zero));
	for (int i = 0; i < 16; i++)
		OK(hipMallocAsync(&p[i], (1 + (size_t)i) * 3 * MIB, i & 1 ? s : t));
	CHECK(before - device_free(0) >= 400 * MIB);
	for (int i = 0; i < 16; i++)
		OK(hipFreeAsync(p[i], i & 1 ? s : t));
	OK(hipDeviceSynchronize());
	CHECK(figure(pool, hipMemPoolAttrReservedMemCurrent) == 0);
	CHECK(device_free(0) == before);
}

/* SOMASHIM_ALIGN_LARGE=2M; and what holds without it. */
static void aligned(void)
{
	bool set = getenv("SOMASHIM_ALIGN_LARGE") != NULL;
	bool crooked = false;
	void *p[64];

	for (int kind = 0; kind < 2; kind++)
		for (int round = 0; round < 3; round++) {
			for (int i = 0; i < 64; i++) {
				size_t size = i % 3 == 0 ? 2 * MIB + (size_t)i * 4096 + 512 :
					      i % 3 == 1 ? 65536 + (size_t)i * 512 :
							   512 + (size_t)i * 700;
				uintptr_t at;

				OK(kind ? hipMalloc(&p[i], size) :
					  hipMallocAsync(&p[i], size, i & 1 ? s : t));
				at = (uintptr_t)p[i];
				CHECK(at % 512 == 0);
				if (kind && size >= 65536)
					CHECK(at % 4096 == 0);
				if (size >= 2 * MIB && at % (2 * MIB)) {
					crooked = true;
					CHECK(!set);
				}
			}
			for (int i = 0; i < 64; i++)
				OK(kind ? hipFree(p[i]) : hipFreeAsync(p[i], i & 1 ? s : t));
		}
	/* Or this says nothing; whole segments are aligned as they are. */
	CHECK(crooked || set || strcmp(getenv("SOMASHIM_BACKING"), "vmm"));
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"others_idle", others_idle},
	{"large_again", large_again},
	{"doubled_sizes", doubled_sizes},
	{"other_sizes", other_sizes},
	{"small_between", small_between},
	{"idle_device", idle_device},
	{"report", report},
	{"probes", probes},
	{"in_flight", in_flight},
	{"limit", limit},
	{"free_figure", free_figure},
	{"goes_back", goes_back},
	{"aligned", aligned},
};

int main(int argc, char **argv)
{
	CHECK(preloaded() && argc == 2 && getenv("SOMASHIM_LOG"));
	alarm(120);
	if (!sim_call("somasim_device_free_bytes"))
		return SKIP;
	unlink(getenv("SOMASHIM_LOG"));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&t, hipStreamNonBlocking));
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			unlink(getenv("SOMASHIM_LOG"));
			return 0;
		}
	CHECK(!"such a case");
	return 1;
}
