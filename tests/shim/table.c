/* SPDX-License-Identifier: MIT */
/*
 * SOMASHIM_API_TABLE on a runtime with an API table. The shim serves every way in; a
 * profiler that wraps the table as well sees the program's calls; and a table that is not
 * the runtime's is left alone.
 */
#include <unistd.h>

#include "test.h"

typedef int register_fn(const char *, uint32_t (*)(void), uint32_t, void **, uint64_t, uint64_t *);

static unsigned registered, seen;
static hipError_t (*behind)(void **, size_t);

__attribute__((visibility("default"))) int rocprofiler_set_api_table(const char *name,
								     uint64_t version,
								     uint64_t instance,
								     void **tables, uint64_t count);

static hipError_t wrap(void **ptr, size_t size)
{
	seen++;
	return behind(ptr, size);
}

/* The profiler. It knows the position of hipMalloc from AMD's header. */
int rocprofiler_set_api_table(const char *name, uint64_t version, uint64_t instance, void **tables,
			      uint64_t count)
{
	const uint64_t *size = tables[0];
	void **entry = (void **)(size + 1);
	Dl_info info;

	CHECK(!strcmp(name, "hip") && version == 60400 && count == 1);
	CHECK(*size > 215 * sizeof(void *));
	if (instance != registered++) /* the bogus ones below come here too */
		return 1;
	if (!dladdr(entry[215], &info) || !strstr(info.dli_fname, "libsomashim"))
		return 0;
	behind = (hipError_t(*)(void **, size_t))entry[215];
	entry[215] = (void *)wrap;
	return 0;
}

static uint32_t import(void)
{
	return 60400;
}

static int bogus(void **entry, uint32_t (*from)(void))
{
	static struct {
		uint64_t size;
		void *entry[506];
	} t;
	register_fn *fn = (register_fn *)dlsym(RTLD_DEFAULT,
					       "rocprofiler_register_library_api_table");
	void *tables[] = {&t};
	uint64_t id;

	t.size = sizeof(t);
	for (int i = 0; i < 506; i++)
		t.entry[i] = *entry;
	CHECK(fn && fn("hip", from, 60400, tables, 1, &id) == 0);
	for (int i = 0; i < 506; i++)
		CHECK(t.entry[i] == *entry);
	return 0;
}

int main(void)
{
	hipError_t (*alloc)(void **, size_t), (*give)(void *);
	void *of_libc = (void *)strtol, *nothing = NULL, *p, *q;
	hipStream_t s;

	CHECK(preloaded());
	CHECK(!bogus(&of_libc, import));
	CHECK(!bogus(&of_libc, NULL));
	CHECK(!bogus(&nothing, import));
	CHECK(!behind);

	/* The first call of all comes past the preload. */
	alloc = RUNTIME(hipMalloc);
	give = RUNTIME(hipFree);
	CHECK(alloc && give && alloc != hipMalloc);
	OK(alloc(&p, 1000));
	CHECK(behind && seen == 1);
	OK(hipMalloc(&q, 1000)); /* by name: straight to the shim */
	CHECK(seen == 1 && q != p);
	OK(give(p));
	OK(give(q));
	OK(hipStreamCreate(&s));
	OK(hipMallocAsync(&p, 1 << 20, s));
	OK(hipMemsetAsync(p, 7, 1 << 20, s));
	OK(hipFreeAsync(p, s));
	OK(hipStreamDestroy(s));
	OK(hipDeviceSynchronize());
	CHECK(!sim_count("hipMalloc") && !sim_count("hipMallocAsync") &&
	      !sim_count("hipFreeAsync"));
	CHECK(sim_count("hipExtMallocWithFlags") && sim_count("hipMemsetAsync") == 1);
	/* A real call of ours is not one of the program's. */
	CHECK(seen == 1);
	return 0;
}
