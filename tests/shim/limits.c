/* SPDX-License-Identifier: MIT */
/*
 * A limit of the process is not taken for a lack of device memory. A soft limit is raised;
 * one that cannot be raised is named in the report. Needs SOMASIM_QUIRKS=fd-per-handle.
 *
 *   limits files|soft|maps|small
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test.h"

#define MIB ((size_t)1 << 20)
#define BLOCKS 600

static hipStream_t s;
static hipMemPool_t pool;

/* Blocks of 1 MiB until one fails: how many there were. */
static int fill(int most)
{
	void *p;
	int n = 0;

	while (n < most && hipMallocAsync(&p, MIB, s) == hipSuccess)
		n++;
	return n;
}

/* What somashim says goes to a file; does it hold `word`? */
static bool said(const char *word)
{
	static char text[1 << 16];
	FILE *f = fopen(getenv("SOMASHIM_LOG"), "r");
	size_t n;

	CHECK(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return strstr(text, word) != NULL;
}

static uint64_t reserved(void)
{
	return figure(pool, hipMemPoolAttrReservedMemCurrent);
}

static int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = -3; /* ., .. and d itself */

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void files(bool soft)
{
	struct rlimit r = {128, soft ? 4096 : 128};
	uint64_t before;
	void *p;

	CHECK(!setrlimit(RLIMIT_NOFILE, &r));
	if (soft) {
		CHECK(fill(BLOCKS) == BLOCKS);
		CHECK(!getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur > 128);
		CHECK(open_files() > 128);
		return;
	}
	CHECK(fill(BLOCKS) < BLOCKS);
	before = reserved();
	for (int i = 0; i < 4; i++) {
		GIVES(hipErrorOutOfMemory, hipMallocAsync(&p, 64 * MIB, s));
		CHECK(reserved() == before);
	}
	close(0); /* room for one, to read what was said */
	CHECK(said("a limit was hit: all 128 file descriptors"));
}

/* A process with almost all mappings that it may have. */
static void maps(void)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "r");
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	long most = 0;
	void *p;
	char *at;

	CHECK(f && fscanf(f, "%ld", &most) == 1);
	fclose(f);
	if (most > 1000000)
		exit(SKIP);
	OK(hipMallocAsync(&p, MIB, s)); /* what HIP needs for itself is there */
	OK(hipStreamSynchronize(s));
	at = mmap(NULL, page * 2 * (size_t)most, PROT_NONE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(at != MAP_FAILED);
	for (long i = 0; i < most && !mprotect(at + 2 * (size_t)i * page, page, PROT_READ); i++)
		;
	GIVES(hipErrorOutOfMemory, hipMallocAsync(&p, 64 * MIB, s));
	munmap(at, page * 2 * (size_t)most);
	CHECK(said("vm.max_map_count"));
	OK(hipMallocAsync(&p, 64 * MIB, s));
}

/* A large pool of small blocks: handles and mappings stay few. */
static void small(void)
{
	uint64_t before = sim_count("hipMemCreate");
	size_t total = (size_t)24 << 30, step = 2 * MIB;
	void *p;

	for (size_t at = 0; at < total; at += step)
		OK(hipMallocAsync(&p, step, s));
	CHECK(reserved() >= total && reserved() <= total + total / 256);
	CHECK(sim_count("hipMemCreate") - before < 4096);
}

int main(int argc, char **argv)
{
	CHECK(preloaded());
	alarm(300);
	CHECK(argc == 2);
	if (!sim_call("somasim_device_free_bytes"))
		return SKIP;
	CHECK(getenv("SOMASHIM_LOG"));
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	if (!strcmp(argv[1], "files") || !strcmp(argv[1], "soft"))
		files(argv[1][0] == 's');
	else if (!strcmp(argv[1], "maps"))
		maps();
	else
		small();
	OK(hipDeviceSynchronize());
	if (strncmp(getenv("SOMASHIM_LOG"), "/dev/", 5))
		unlink(getenv("SOMASHIM_LOG"));
	return 0;
}
