/* SPDX-License-Identifier: MIT */
/*
 * SOMASHIM_FREE_SYNC=auto: every way by which the program can get an observer of the device
 * ends the mode in which hipFree does not wait (freesync.c shows why). Each runs in a
 * process of its own. Before the call hipFree makes no call of the runtime; after it,
 * hipFree waits.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define SIZE (64u << 10)

void **__hipRegisterFatBinary(const void *data);
void __hipRegisterManagedVar(void **modules, void **pointer, void *init, const char *name,
			     size_t size, unsigned align);

static const struct {
	uint32_t magic, version;
	const void *binary;
	void *unused;
} fat = {
	0x48495046,
	1,
	"",
	NULL,
};

static bool waits(void)
{
	uint64_t before;
	void *p;

	OK(hipMalloc(&p, SIZE));
	before = sim_count("hipStreamSynchronize");
	OK(hipFree(p));
	return sim_count("hipStreamSynchronize") > before;
}

/* ---- a thread's own stream ---------------------------------------------- */

static char *dst, host[4096];

static void memset_spt(void)
{
	OK(hipMemset_spt(dst, 0, 256));
}
static void memset2d_spt(void)
{
	OK(hipMemset2D_spt(dst, 256, 0, 256, 2));
}
static void memset3d_spt(void)
{
	hipPitchedPtr p = {.ptr = dst, .pitch = 256, .xsize = 256, .ysize = 2};
	hipExtent box = {.width = 256, .height = 2, .depth = 1};

	OK(hipMemset3D_spt(p, 0, box));
}
static void memcpy2d_spt(void)
{
	OK(hipMemcpy2D_spt(dst, 256, host, 256, 256, 2, hipMemcpyHostToDevice));
}
static void write_value(void)
{
	OK(hipStreamWriteValue64(hipStreamPerThread, dst, 1, 0));
}
static void param2d(void)
{
	hip_Memcpy2D p = {0};

	(void)hipMemcpyParam2DAsync(&p, hipStreamPerThread);
}
static void drv3d(void)
{
	size_t p[32] = {0}; /* it is longer since 6.0 */

	(void)hipDrvMemcpy3DAsync((HIP_MEMCPY3D *)p, hipStreamPerThread);
}
static void prefetch(void)
{
	(void)hipMemPrefetchAsync(dst, 256, 0, hipStreamPerThread);
}
static void configure(void)
{
	dim3 one = {1, 1, 1};

	(void)hipConfigureCall(one, one, 0, hipStreamPerThread);
}
static void multi(void)
{
	hipLaunchParams list[2] = {{.stream = NULL}, {.stream = hipStreamPerThread}};

	(void)hipExtLaunchMultiKernelMultiDevice(list, 2, 0);
}
static void ext_launch(void)
{
	dim3 one = {1, 1, 1};

	(void)hipExtLaunchKernel((const void *)waits, one, one, NULL, 0, hipStreamPerThread, NULL,
				 NULL, 0);
}

/* ---- graphs, managed variables, devices ---------------------------------- */

static void launch(void)
{
	hipGraphExec_t exec;
	hipGraph_t graph;

	OK(hipGraphCreate(&graph, 0));
	OK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
	OK(hipGraphLaunch(exec, NULL));
}
static void called(void *arg)
{
}
static void host_node(void)
{
	hipHostNodeParams params = {.fn = called};
	hipGraphNode_t node;
	hipGraph_t graph;

	OK(hipGraphCreate(&graph, 0));
	OK(hipGraphAddHostNode(&node, graph, NULL, 0, &params));
}
static void managed(void)
{
	static void *variable;
	static int init;

	__hipRegisterManagedVar(__hipRegisterFatBinary(&fat), &variable, &init, "variable",
				sizeof(init), 4);
}
static void device(void)
{
	OK(hipSetDevice(1));
	OK(hipSetDevice(0));
}

/* ---- memory that others see ------------------------------------------------ */

/* (The software device refuses some of these, but a device might not.) */
static void import_chunk(void)
{
	hipMemGenericAllocationHandle_t chunk;

	(void)hipMemImportFromShareableHandle(&chunk, (void *)1,
					      hipMemHandleTypePosixFileDescriptor);
}
static void import_external(void)
{
	hipExternalMemoryHandleDesc desc = {0};
	hipExternalMemory_t memory;

	(void)hipImportExternalMemory(&memory, &desc);
}
static void map_graphics(void)
{
	hipGraphicsResource_t none = NULL;

	(void)hipGraphicsMapResources(0, &none, NULL);
}
static void host_access(void)
{
	hipMemAccessDesc desc = {.location = {.type = (hipMemLocationType)2},
				 .flags = hipMemAccessFlagsProtReadWrite};

	(void)hipMemSetAccess(dst, SIZE, &desc, 1);
}
static void device_access(void)
{
	hipMemAccessDesc desc = {.location = {.type = hipMemLocationTypeDevice},
				 .flags = hipMemAccessFlagsProtReadWrite};

	(void)hipMemSetAccess(dst, SIZE, &desc, 1);
}
static void native_pool(void)
{
	hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
				 .handleTypes = (hipMemAllocationHandleType)4,
				 .location = {.type = hipMemLocationTypeDevice}};
	hipMemPool_t pool;

	OK(hipMemPoolCreate(&pool, &props));
}

static void nothing(void)
{
	OK(hipSetDevice(0));
}

#define WAY(name) { #name, name }
static const struct {
	const char *name;
	void (*call)(void);
} ways[] = {
	WAY(nothing),       WAY(memset_spt),      WAY(memset2d_spt), WAY(memset3d_spt),
	WAY(memcpy2d_spt),  WAY(write_value),     WAY(param2d),      WAY(drv3d),
	WAY(prefetch),      WAY(configure),       WAY(multi),        WAY(ext_launch),
	WAY(launch),        WAY(host_node),       WAY(managed),      WAY(device),
	WAY(import_chunk),  WAY(import_external), WAY(map_graphics), WAY(host_access),
	WAY(device_access), WAY(native_pool),
};

int main(int argc, char **argv)
{
	int status;

	CHECK(preloaded());
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		pid_t pid;

		if (argc == 2 && strcmp(argv[1], ways[i].name))
			continue;
		if (argc == 2) {
			OK(hipMalloc((void **)&dst, SIZE));
			CHECK(!waits());
			ways[i].call();
			CHECK(waits() ==
			      (ways[i].call != nothing && ways[i].call != device_access));
			return 0;
		}
		pid = fork();
		if (!pid) {
			execl(argv[0], argv[0], ways[i].name, (char *)NULL);
			_exit(127);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			fprintf(stderr, "%s: failed\n", ways[i].name);
			return 1;
		}
	}
	return 0;
}
