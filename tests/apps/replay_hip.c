/* SPDX-License-Identifier: MIT */
/*
 * An ordinary HIP program that replays an allocation log (RMM CSV, plain or .xz) as HIP calls. It
 * knows nothing of somashim.
 *
 * Device work stamps every block when it is allocated: its first and last 4 KiB and one random page
 * in each 2 MiB. Device work on the stream that frees the block reads the stamps. The host waits
 * between the two only if the buffer of pages that were read is full. So frees overtake the device
 * all the time, and memory that is reused too early shows as a wrong stamp.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hip/hip_runtime_api.h>

#include "device_work.h"
#include "replay_log.h"

#define PAGE 4096u
#define STRIDE ((size_t)2 << 20) /* one random page in each */
#define SLOTS 16384u             /* pages that can be read before they are compared */
#define MAX_STREAMS 256

struct slot { /* what a page that was read must hold */
	uint32_t block, words, tail, value;
};

struct live {
	char *ptr;
	uint64_t serial; /* of this allocation: stamps of one log round differ from the next */
	int stream;
	bool on;
};

static struct {
	bool classic, keep;
	double work; /* microseconds */
	int streams;
	unsigned repeat, cross, host;
	uint64_t seed;
	const char *path;
} opt = {.streams = 1, .repeat = 1, .seed = 1};

static hipStream_t stream[MAX_STREAMS];
static hipEvent_t event[MAX_STREAMS];
static char *pages; /* pinned */
static struct slot slots[SLOTS];
static unsigned used_slots;
static struct live *live;
static unsigned char *bad;      /* per block of the round: a stamp was wrong */
static _Atomic uint64_t called; /* host functions */
static uint64_t calls, verified, corrupt, allocations, in_use, in_use_high, device_high;

static void die(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	fputs("replay_hip: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(2);
}

static void check(hipError_t err, const char *call)
{
	calls++;
	if (err != hipSuccess)
		die("%s: %s", call, hipGetErrorString(err));
}
#define HIP(call) check(call, #call)

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* ---- stamps ------------------------------------------------------------- */

/* The nth place of a block to stamp: no two overlap. False past the last. */
static bool place(uint64_t serial, size_t size, size_t n, size_t *at, size_t *len)
{
	size_t last = size > 2 * PAGE ? (size - PAGE + 3) & ~(size_t)3 : PAGE;

	if (n == 0) {
		*at = 0;
		*len = size < PAGE ? size : PAGE;
		return size > 0;
	}
	if (n == 1) {
		*at = last;
		*len = size > last ? size - last : 0;
		return size > PAGE;
	}
	size_t window = (n - 2) * STRIDE;
	if (window + PAGE > size || last < 3 * PAGE)
		return false;
	*at = window + mix(opt.seed ^ serial << 20 ^ n) % (STRIDE / PAGE) * PAGE;
	*len = PAGE;
	if (*at < PAGE)
		*at = PAGE;
	if (*at + PAGE > last)
		*len = 0; /* beyond the end: this window has no page */
	return true;
}

static uint32_t stamp_of(uint64_t serial, size_t n)
{
	return (uint32_t)mix(opt.seed * 31 + serial * 1000003 + n);
}

static void stamp(char *ptr, uint64_t serial, size_t size, hipStream_t s)
{
	size_t at, len;

	for (size_t n = 0; place(serial, size, n, &at, &len); n++) {
		uint32_t value = stamp_of(serial, n);
		if (len / 4)
			HIP(hipMemsetD32Async((hipDeviceptr_t)(ptr + at), (int)value, len / 4, s));
		if (len % 4)
			HIP(hipMemsetAsync(ptr + at + len / 4 * 4, (int)(value & 255), len % 4, s));
	}
}

/* Waits for the pages that were read, and compares them. */
static void compare(void)
{
	for (int i = 0; i < opt.streams; i++)
		HIP(hipStreamSynchronize(stream[i]));
	for (unsigned i = 0; i < used_slots; i++) {
		const struct slot *slot = &slots[i];
		const char *page = pages + (size_t)i * PAGE;
		bool ok = true;

		for (uint32_t w = 0; w < slot->words; w++) {
			uint32_t word;
			memcpy(&word, page + 4 * w, 4);
			ok &= word == slot->value;
		}
		for (uint32_t t = 0; t < slot->tail; t++)
			ok &= (unsigned char)page[4 * slot->words + t] == (slot->value & 255);
		bad[slot->block] |= !ok;
	}
	used_slots = 0;
}

static void read_back(uint32_t block, const struct live *b, size_t size, hipStream_t s)
{
	size_t at, len;

	for (size_t n = 0; place(b->serial, size, n, &at, &len); n++) {
		if (len == 0)
			continue;
		if (used_slots == SLOTS)
			compare();
		slots[used_slots] = (struct slot){block, (uint32_t)len / 4, len % 4,
						  stamp_of(b->serial, n)};
		HIP(hipMemcpyAsync(pages + (size_t)used_slots * PAGE, b->ptr + at, len,
				   hipMemcpyDeviceToHost, s));
		used_slots++;
	}
}

/* ---- the replay --------------------------------------------------------- */

static void sample_device(void)
{
	size_t left, total;
	HIP(hipMemGetInfo(&left, &total));
	if (total - left > device_high)
		device_high = total - left;
}

static int stream_of(const struct replay_log *log, uint32_t block, uint32_t log_stream)
{
	if (log->streams > 1)
		return (int)(log_stream % (unsigned)opt.streams);
	return (int)(mix(opt.seed + block) % (unsigned)opt.streams);
}

static void host_function(hipStream_t s, hipError_t status, void *arg)
{
	(void)s, (void)status, (void)arg;
	called++;
}

static void allocate(const struct replay_log *log, const struct replay_op *op, uint64_t serial)
{
	struct live *b = &live[op->block];
	size_t size = log->sizes[op->block];
	void *ptr = NULL;

	b->stream = stream_of(log, op->block, op->stream);
	b->serial = serial;
	if (opt.classic)
		HIP(hipMalloc(&ptr, size));
	else
		HIP(hipMallocAsync(&ptr, size, stream[b->stream]));
	if (!ptr && size)
		die("a NULL block of %zu bytes came with hipSuccess", size);
	b->ptr = ptr;
	b->on = true;
	allocations++;
	in_use += size;
	if (in_use > in_use_high + in_use_high / 256) {
		in_use_high = in_use;
		sample_device();
	}
	stamp(ptr, serial, size, stream[b->stream]);
	HIP(device_work(stream[b->stream]));
	if (opt.host && allocations % opt.host == 0)
		HIP(hipStreamAddCallback(stream[b->stream], host_function, NULL, 0));
}

static void release(const struct replay_log *log, const struct replay_op *op)
{
	struct live *b = &live[op->block];
	size_t size = log->sizes[op->block];
	int to = log->streams > 1 ? stream_of(log, op->block, op->stream) : b->stream;

	if (log->streams == 1 && mix(b->serial ^ opt.seed) % 100 < opt.cross)
		to = (b->stream + 1) % opt.streams;
	if (to != b->stream) {
		HIP(hipEventRecord(event[b->stream], stream[b->stream]));
		HIP(hipStreamWaitEvent(stream[to], event[b->stream], 0));
	}
	read_back(op->block, b, size, stream[to]);
	if (opt.classic)
		HIP(hipFree(b->ptr));
	else if (b->ptr)
		HIP(hipFreeAsync(b->ptr, stream[to]));
	b->on = false;
	in_use -= size;
}

static void replay(const struct replay_log *log, unsigned round)
{
	memset(bad, 0, log->blocks);
	for (size_t i = 0; i < log->count; i++) {
		const struct replay_op *op = &log->ops[i];
		if (op->is_free)
			release(log, op);
		else
			allocate(log, op, (uint64_t)round * log->blocks + op->block);
	}
	/* The blocks that the log never frees are checked, too. */
	for (uint32_t block = 0; block < log->blocks; block++) {
		if (live[block].on) {
			struct replay_op op = {.block = block,
					       .stream = (uint32_t)live[block].stream};
			release(log, &op);
		}
	}
	compare();
	for (uint32_t block = 0; block < log->blocks; block++) {
		verified += !bad[block];
		corrupt += bad[block];
		if (bad[block] && corrupt <= 10) {
			fprintf(stderr, "replay_hip: block %u (%zu bytes) was overwritten\n", block,
				log->sizes[block]);
		}
	}
}

static void keep_all(void)
{
	uint64_t all = UINT64_MAX;
	hipMemPool_t pool;

	HIP(hipDeviceGetDefaultMemPool(&pool, 0));
	HIP(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &all));
}

static void report(const struct replay_log *log, double seconds)
{
	uint64_t reserved = 0;
	hipMemPool_t pool;

	printf("mode=%s streams=%d allocations=%llu verified=%llu corrupt=%llu "
	       "skipped_frees=%llu calls=%llu seconds=%.3f peak_requested=%llu device_high=%llu",
	       opt.classic ? "classic" : "async", opt.streams, (unsigned long long)allocations,
	       (unsigned long long)verified, (unsigned long long)corrupt,
	       (unsigned long long)log->unknown_frees, (unsigned long long)calls, seconds,
	       (unsigned long long)log->peak, (unsigned long long)device_high);
	if (!opt.classic) {
		if (hipDeviceGetDefaultMemPool(&pool, 0) == hipSuccess) {
			(void)hipMemPoolGetAttribute(pool, hipMemPoolAttrReservedMemHigh,
						     &reserved);
		}
		printf(" reserved_high=%llu", (unsigned long long)reserved);
	}
	if (opt.host)
		printf(" host_functions=%llu", (unsigned long long)called);
	printf("\n");
}

static void usage(void)
{
	fputs("usage: replay_hip [--classic|--async] [--streams N] [--cross PERCENT] [--work US]\n"
	      "                  [--host N] [--keep] [--seed N] [--repeat N] LOG.csv[.xz]\n"
	      "  --cross: a log of one stream frees so many blocks on another one\n"
	      "  --work: the device is busy for so many microseconds after each allocation\n"
	      "  --host: the stream calls a function of the host after every Nth allocation\n"
	      "  --keep: the pool gives nothing back (release threshold: all)\n",
	      stderr);
	exit(2);
}

static uint64_t number(const char *text, uint64_t max)
{
	char *end;
	unsigned long long n = text ? strtoull(text, &end, 10) : 0;
	if (!text || *end || end == text || n > max)
		usage();
	return n;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--classic") == 0)
			opt.classic = true;
		else if (strcmp(argv[i], "--async") == 0)
			opt.classic = false;
		else if (strcmp(argv[i], "--streams") == 0)
			opt.streams = (int)number(argv[++i], MAX_STREAMS);
		else if (strcmp(argv[i], "--cross") == 0)
			opt.cross = (unsigned)number(argv[++i], 100);
		else if (strcmp(argv[i], "--work") == 0)
			opt.work = (double)number(argv[++i], 1000000);
		else if (strcmp(argv[i], "--host") == 0)
			opt.host = (unsigned)number(argv[++i], 1000000000);
		else if (strcmp(argv[i], "--keep") == 0)
			opt.keep = true;
		else if (strcmp(argv[i], "--seed") == 0)
			opt.seed = number(argv[++i], UINT64_MAX);
		else if (strcmp(argv[i], "--repeat") == 0)
			opt.repeat = (unsigned)number(argv[++i], 1000000);
		else if (argv[i][0] == '-' || opt.path)
			usage();
		else
			opt.path = argv[i];
	if (!opt.path || opt.streams < 1)
		usage();

	struct replay_log log;
	char err[256];
	if (!replay_log_read(&log, opt.path, err, sizeof(err)))
		die("%s: %s", opt.path, err);
	live = calloc(log.blocks + 1, sizeof(*live));
	bad = calloc(log.blocks + 1, 1);
	if (!live || !bad)
		die("out of memory");

	HIP(hipSetDevice(0));
	void *pinned = NULL;
	HIP(hipHostMalloc(&pinned, (size_t)SLOTS * PAGE, 0));
	pages = pinned;
	for (int i = 0; i < opt.streams; i++) {
		HIP(hipStreamCreateWithFlags(&stream[i], hipStreamNonBlocking));
		HIP(hipEventCreateWithFlags(&event[i], hipEventDisableTiming));
	}

	HIP(device_work_prepare(opt.work));
	if (opt.keep)
		keep_all();

	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (unsigned round = 0; round < opt.repeat; round++)
		replay(&log, round);
	HIP(hipDeviceSynchronize());
	clock_gettime(CLOCK_MONOTONIC, &to);

	report(&log, (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9);
	for (int i = 0; i < opt.streams; i++) {
		HIP(hipEventDestroy(event[i]));
		HIP(hipStreamDestroy(stream[i]));
	}
	HIP(hipHostFree(pages));
	free(live);
	free(bad);
	replay_log_finish(&log);
	return corrupt ? 1 : 0;
}
