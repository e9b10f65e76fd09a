/* SPDX-License-Identifier: MIT */
/* What the releases do differently: numbers, handles, NULL outputs, captured values, unmaps,
 * pools. */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "test.h"

#define CHUNK (4UL << 20)
#define LEGACY ((hipStream_t)1)
#define NODE_BATCH_MEM_OP 14
#define MANAGED ((hipMemAllocationType)2)

struct prop { /* hipMemAllocationProp since 5.7 */
	int type, handle;
	hipMemLocation location;
	void *win32;
	unsigned char flags[8];
};

static int is; /* 715 is 7.15 */

static void *found(const char *name)
{
	void *p = dlsym(RTLD_DEFAULT, name);

	CHECK(p);
	return p;
}

static void numbers(void)
{
	hipError_t (*address)(const char *, void **, int, uint64_t,
			      void *) = found("hipGetProcAddress");
	const char *env = getenv("SOMASIM_HIP_VERSION");
	int version, major, minor;
	void *fn;

	CHECK(env && sscanf(env, "%d.%d", &major, &minor) == 2);
	OK(hipRuntimeGetVersion(&version));
	is = version / 100000 / 100 * 100 + version / 100000 % 100;
	CHECK(is == major * 100 + minor);
	EXPECT(address("hipMemGetDefaultMemPool", &fn, 0, 0, NULL),
	       is >= 715 ? hipSuccess : hipErrorInvalidValue);
	EXPECT(address("hipInitDevice", &fn, 0, 0, NULL),
	       is >= 716 ? hipSuccess : hipErrorInvalidValue);
}

/* Before 6.0 handle 1 is no stream. */
static void legacy(void)
{
	void *p;

	EXPECT(hipMallocAsync(&p, 64, LEGACY), is < 505 ? hipErrorInvalidValue :
					       is < 600 ? hipErrorInvalidHandle :
							  hipSuccess);
	if (is >= 600)
		OK(hipFreeAsync(p, LEGACY));
	EXPECT(hipStreamSynchronize(LEGACY), is < 600 ? hipErrorContextIsDestroyed : hipSuccess);
}

/* A child that was forked cannot use the device, but one that starts anew can. */
static void null_output(void)
{
	hipDeviceptr_t base;
	char *p;

	OK(hipMalloc((void **)&p, 4096));
	close(2);
	(void)hipMemGetAddressRange(&base, NULL, p);
	exit(0);
}

static void outputs(void)
{
	hipDeviceptr_t base = NULL;
	size_t size = 0;
	int status;
	char *p;

	OK(hipMalloc((void **)&p, 4096));
	if (is >= 714) {
		OK(hipMemGetAddressRange(&base, NULL, p + 1));
		OK(hipMemGetAddressRange(NULL, &size, p + 1));
		OK(hipMemGetAddressRange(NULL, NULL, p));
		CHECK(base == p && size == 4096);
	} else if (!fork()) {
		execl("/proc/self/exe", "sim_release", "null", (char *)NULL);
		_exit(0);
	} else {
		/* (A sanitizer ends the child its own way.) */
		CHECK(wait(&status) > 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0));
	}
	OK(hipFree(p));
}

/* Up to 7.14 a value is written at once, while the stream captures; then by the graph. */
static void values(void)
{
	size_t before, after = 0, nodes = 0;
	hipGraphNode_t node[4];
	hipGraphNodeType type;
	volatile uint64_t *v;
	hipGraphExec_t exec;
	hipGraph_t graph;
	hipStream_t s;

	OK(hipHostMalloc((void **)&v, 64, 0));
	v[0] = v[1] = 0;
	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	OK(hipStreamBeginCapture(s, hipStreamCaptureModeRelaxed));
	OK(hipStreamWriteValue64(s, (void *)v, 7, 0));
	OK(hipStreamWaitValue64(s, (void *)v, 7, hipStreamWaitValueEq, ~0ull));
	OK(hipMemsetAsync((void *)&v[1], 1, 8, s));
	OK(hipStreamEndCapture(s, &graph));
	OK(hipDeviceSynchronize());
	before = v[0];
	OK(hipGraphGetNodes(graph, NULL, &nodes));
	CHECK(nodes == (is >= 715 ? 3 : 1));
	OK(hipGraphGetNodes(graph, node, &nodes));
	OK(hipGraphNodeGetType(node[0], &type));
	CHECK(((int)type == NODE_BATCH_MEM_OP) == (is >= 715));
	v[0] = 0;
	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	OK(hipGraphLaunch(exec, s));
	OK(hipStreamSynchronize(s));
	after = v[0];
	CHECK(before == (is >= 715 ? 0 : 7) && after == (is >= 715 ? 7 : 0));
	OK(hipGraphExecDestroy(exec));
	OK(hipGraphDestroy(graph));
	OK(hipStreamDestroy(s));
	OK(hipHostFree((void *)v));
}

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static atomic_int unmapped;

static void *unmap(void *va)
{
	OK(hipMemUnmap(va, CHUNK));
	atomic_store(&unmapped, 1);
	return NULL;
}

/* Since 7.14 an unmap waits for non-blocking streams as well, also for those of a peer. */
static void maps(void)
{
	struct prop prop = {.type = 1, .location = {hipMemLocationTypeDevice, 0}};
	hipMemAllocationProp *p = (void *)&prop;
	hipMemAccessDesc rw[2] = {{{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite},
				  {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtReadWrite}};
	hipMemGenericAllocationHandle_t h;
	int before;
	pthread_t thread;
	hipStream_t s;
	char *va, *x;

	if (is < 600)
		return;
	OK(hipMalloc((void **)&x, 64));
	OK(hipMemAddressReserve((void **)&va, 16 * CHUNK, 0, NULL, 0));
	before = descriptors();
	OK(hipMemCreate(&h, CHUNK, p, 0));
	CHECK(descriptors() == before + (is == 714));
	for (int dev = 0; dev < 2; dev++) {
		atomic_store(&unmapped, 0);
		OK(hipMemMap(va, CHUNK, 0, h, 0));
		OK(hipMemSetAccess(va, CHUNK, rw, 2));
		OK(hipSetDevice(dev));
		OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
		OK(hipSetDevice(0));
		stall(s);
		OK(hipMemsetAsync(x, 1, 64, s));
		CHECK(!pthread_create(&thread, NULL, unmap, va));
		if (is < 714) /* it does not wait, or this never ends */
			CHECK(!pthread_join(thread, NULL));
		else
			usleep(20000);
		CHECK(atomic_load(&unmapped) == (is < 714));
		release(s);
		if (is >= 714)
			CHECK(!pthread_join(thread, NULL));
		OK(hipStreamSynchronize(s));
		OK(hipStreamDestroy(s));
	}
	OK(hipMemRelease(h));
	OK(hipMemAddressFree(va, 16 * CHUNK));
	OK(hipFree(x));
}

static void pools(void)
{
	hipError_t (*get)(hipMemPool_t *, hipMemLocation *,
			  hipMemAllocationType) = found("hipMemGetDefaultMemPool");
	hipMemLocation here = {hipMemLocationTypeDevice, 1}, none = {hipMemLocationTypeDevice, 9},
		       host = {(hipMemLocationType)2, 0};
	hipMemPool_t pool, usual, managed;

	OK(hipDeviceGetDefaultMemPool(&usual, 1));
	OK(get(&pool, &here, hipMemAllocationTypePinned));
	CHECK(pool == usual);
	OK(get(&managed, &here, MANAGED));
	CHECK(managed && managed != usual);
	EXPECT(hipMemPoolDestroy(managed), hipErrorInvalidValue);
	EXPECT(get(NULL, &here, hipMemAllocationTypePinned), hipErrorInvalidValue);
	EXPECT(get(&pool, NULL, hipMemAllocationTypePinned), hipErrorInvalidValue);
	EXPECT(get(&pool, &none, hipMemAllocationTypePinned), hipErrorInvalidValue);
	EXPECT(get(&pool, &host, hipMemAllocationTypePinned), hipErrorInvalidValue);
	EXPECT(get(&pool, &here, (hipMemAllocationType)9), hipErrorInvalidValue);
}

static void libraries(void)
{
	hipError_t (*load)(void **, const void *, void *, void **, unsigned, void *, void **,
			   unsigned) = found("hipLibraryLoadData");
	hipError_t (*module_of)(hipModule_t *, void *) = found("hipLibraryGetModule");
	hipError_t (*unload)(void *) = found("hipLibraryUnload");
	hipModule_t module;
	void *library;

	OK(load(&library, "code", NULL, NULL, 0, NULL, NULL, 0));
	OK(module_of(&module, library));
	EXPECT(hipModuleUnload(module), (hipError_t)800);
	EXPECT(module_of(&module, NULL), hipErrorInvalidHandle);
	OK(unload(library));
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "null"))
		null_output();
	numbers();
	legacy();
	outputs();
	values();
	maps();
	pools();
	libraries();
	return 0;
}
