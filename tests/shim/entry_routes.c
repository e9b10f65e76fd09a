/* SPDX-License-Identifier: MIT */
/*
 * The ways in which programs reach HIP. Prints "seen" if the runtime saw none of the allocations,
 * and "past" if it saw them all. routes.sh compares that with a table.
 *
 *   [POINTERS=LIBRARY] entry_routes WAY PLUGIN
 *
 * POINTERS names a library that has pointers called as functions of HIP. It is loaded first.
 */
#include <elf.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <link.h>
#include <sys/mman.h>

#include "test.h"

#define LIBRARY "libamdhip64.so.5"

static void *hip, *plugin_lib;
static void *(*plugin_dlsym)(void *, const char *);
static void *(*plugin_dlvsym)(void *, const char *, const char *);

static uint64_t calls(const char *name)
{
	uint64_t (*count)(const char *) = (uint64_t(*)(const char *))dlsym(hip,
									   "somasim_call_count");

	if (!count) {
		fprintf(stderr, "needs the software device\n");
		exit(SKIP);
	}
	return count(name);
}

/* Allocates with whatever `look` finds, and frees. */
static void use(void *(*look)(const char *))
{
	hipError_t (*alloc)(void **, size_t) = (hipError_t(*)(void **, size_t))look("hipMalloc");
	hipError_t (*give)(void *) = (hipError_t(*)(void *))look("hipFree");
	hipError_t (*alloc_async)(void **, size_t, hipStream_t) = (hipError_t(*)(
		void **, size_t, hipStream_t))look("hipMallocAsync");
	hipError_t (*free_async)(void *, hipStream_t) = (hipError_t(*)(void *, hipStream_t))look(
		"hipFreeAsync");
	void *p, *q;

	CHECK(alloc && give && alloc_async && free_async);
	CHECK(alloc(&p, 1000) == hipSuccess && alloc_async(&q, 5000, NULL) == hipSuccess);
	CHECK(free_async(q, NULL) == hipSuccess && give(p) == hipSuccess);
}

static const char *node(const char *name)
{
	return strstr(name, "Async") ? "hip_5.1" : "hip_4.2";
}

static void *by_handle(const char *name)
{
	return dlsym(hip, name);
}

static void *by_version(const char *name)
{
	return dlvsym(hip, name, node(name));
}

static void *by_default(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

static void *by_default_version(const char *name)
{
	return dlvsym(RTLD_DEFAULT, name, node(name));
}

static void *by_next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static void *by_next_version(const char *name)
{
	return dlvsym(RTLD_NEXT, name, node(name));
}

static void *by_program(const char *name)
{
	return dlsym(dlopen(NULL, RTLD_LAZY), name);
}

static void *by_plugin_handle(const char *name)
{
	return plugin_dlsym(hip, name);
}

static void *by_plugin_default(const char *name)
{
	return plugin_dlsym(RTLD_DEFAULT, name);
}

static void *by_plugin_next(const char *name)
{
	return plugin_dlsym(RTLD_NEXT, name);
}

static void *by_plugin_version(const char *name)
{
	return plugin_dlvsym(RTLD_DEFAULT, name, node(name));
}

/* The runtime was loaded with RTLD_LOCAL. A program that looks whether there is HIP finds none, as
 * without us, and no error is left when it asks for what there is. */
static void *by_handle_alone(const char *name)
{
	void *(*const looks[])(const char *) = {by_default, by_default_version, by_next,
						by_next_version, by_program};

	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		const char *error;

		CHECK(!looks[i](name));
		error = dlerror();
		CHECK(error && strstr(error, name));
	}
	CHECK(by_handle(name) && !dlerror());
	return by_handle(name);
}

/* Triton: everything through the one function that it looks up by name. */
static void *by_proc(const char *name)
{
	hipError_t (*get)(const char *, void **, int, uint64_t, void *) = (hipError_t(*)(
		const char *, void **, int, uint64_t, void *))dlsym(hip, "hipGetProcAddress");
	void *fn = NULL;

	CHECK(get && get(name, &fn, 60100, 0, NULL) == hipSuccess);
	return fn;
}

/* By either name: the stream NULL means another one in each. */
static void second_copy(void)
{
	static const char *const names[] = {"hipGetDriverEntryPoint", "hipGetDriverEntryPoint_spt"};

	for (int i = 0; i < 2; i++) {
		hipError_t (*get)(const char *, void **, unsigned long long,
				  void *) = (hipError_t(*)(const char *, void **,
							   unsigned long long,
							   void *))dlsym(RTLD_DEFAULT, names[i]);
		void *fn = NULL;
		Dl_info info;

		CHECK(get && get("hipMemcpyAsync", &fn, 0, NULL) == hipSuccess && fn);
		CHECK(dladdr(fn, &info) && strstr(info.dli_fname, "libsomashim"));
		CHECK(!strcmp(info.dli_sname, i ? "hipMemcpyAsync_spt" : "hipMemcpyAsync"));
	}
}

static void load_plugin(const char *path, int flags)
{
	plugin_lib = dlopen(path, flags);
	if (!plugin_lib)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(plugin_lib);
	plugin_dlsym = (void *(*)(void *, const char *))dlsym(plugin_lib, "plugin_dlsym");
	plugin_dlvsym = (void *(*)(void *, const char *, const char *))dlsym(plugin_lib,
									     "plugin_dlvsym");
	CHECK(plugin_dlsym && plugin_dlvsym);
}

static void run_plugin(void)
{
	int (*run)(void) = (int (*)(void))dlsym(plugin_lib, "plugin_run");

	CHECK(run && run() == 0);
}

/* ---- UCX: every relocation of a name in every object -------------------- */

static unsigned seen_alloc, seen_free, patched;
static __typeof__(hsa_amd_memory_pool_allocate) *real_alloc;
static __typeof__(hsa_amd_memory_pool_free) *real_free;

static hsa_status_t hook_alloc(hsa_amd_memory_pool_t pool, size_t size, uint32_t flags, void **ptr)
{
	seen_alloc++;
	return real_alloc(pool, size, flags, ptr);
}

static hsa_status_t hook_free(void *ptr)
{
	seen_free++;
	return real_free(ptr);
}

static void patch_table(const struct dl_phdr_info *info, const Elf64_Rela *r, size_t bytes,
			const Elf64_Sym *symbols, const char *strings)
{
	for (size_t i = 0; r && i < bytes / sizeof(*r); i++) {
		const char *name = strings + symbols[ELF64_R_SYM(r[i].r_info)].st_name;
		uintptr_t at = info->dlpi_addr + r[i].r_offset;
		void *hook = !strcmp(name, "hsa_amd_memory_pool_allocate") ? (void *)hook_alloc :
			     !strcmp(name, "hsa_amd_memory_pool_free")     ? (void *)hook_free :
									     NULL;

		if (!hook)
			continue;
		CHECK(!mprotect((void *)(at & ~4095ul), 8192, PROT_READ | PROT_WRITE));
		memcpy((void *)at, &hook, sizeof(hook));
		patched++;
	}
}

static int patch_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const Elf64_Rela *rela = NULL, *plt = NULL;
	const Elf64_Sym *symbols = NULL;
	const char *strings = NULL;
	const Elf64_Dyn *d = NULL;
	size_t rela_bytes = 0, plt_bytes = 0;

	(void)size;
	(void)arg;
	if (strstr(info->dlpi_name, "vdso"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; d && d->d_tag; d++) {
		const void *at = (const void *)d->d_un.d_ptr;

		switch (d->d_tag) {
		case DT_RELA: rela = at; break;
		case DT_RELASZ: rela_bytes = d->d_un.d_val; break;
		case DT_JMPREL: plt = at; break;
		case DT_PLTRELSZ: plt_bytes = d->d_un.d_val; break;
		case DT_SYMTAB: symbols = at; break;
		case DT_STRTAB: strings = at; break;
		default: break;
		}
	}
	if (symbols && strings) {
		patch_table(info, rela, rela_bytes, symbols, strings);
		patch_table(info, plt, plt_bytes, symbols, strings);
	}
	return 0;
}

/* Segments come and go: its registration cache must hear of both. */
static void ucx(void)
{
	hipError_t (*alloc)(void **,
			    size_t) = (hipError_t(*)(void **, size_t))by_default("hipMalloc");
	hipError_t (*give)(void *) = (hipError_t(*)(void *))by_default("hipFree");
	hipError_t (*sync)(void) = (hipError_t(*)(void))by_default("hipDeviceSynchronize");
	hipError_t (*alloc_async)(void **, size_t, hipStream_t) = (hipError_t(*)(
		void **, size_t, hipStream_t))by_default("hipMallocAsync");
	hipError_t (*free_async)(void *, hipStream_t) = (hipError_t(*)(
		void *, hipStream_t))by_default("hipFreeAsync");
	void *p;

	/* hsa_* of the runtime are no business of ours: these are the real ones. */
	real_alloc = (__typeof__(real_alloc))dlsym(hip, "hsa_amd_memory_pool_allocate");
	real_free = (__typeof__(real_free))dlsym(hip, "hsa_amd_memory_pool_free");
	CHECK(real_alloc && real_free);
	dl_iterate_phdr(patch_object, NULL);
	CHECK(patched);
	CHECK(alloc(&p, 64 << 20) == hipSuccess && seen_alloc);
	CHECK(give(p) == hipSuccess && sync() == hipSuccess && sync() == hipSuccess);
	CHECK(seen_free);
	/* Pools too, whatever they are made of. */
	seen_alloc = seen_free = 0;
	CHECK(alloc_async(&p, 64 << 20, NULL) == hipSuccess && seen_alloc);
	CHECK(free_async(p, NULL) == hipSuccess && sync() == hipSuccess && sync() == hipSuccess);
	CHECK(seen_free);
}

#define LOCAL (RTLD_LAZY | RTLD_LOCAL)
#define GLOBAL (RTLD_LAZY | RTLD_GLOBAL)

static const struct way {
	const char *name;
	int hip_flags;    /* 0: the program loads HIP after the plugin, which has brought it */
	int plugin_flags; /* 0: no plugin */
	void *(*look)(const char *); /* NULL: the plugin calls */
} ways[] = {
	{"handle", LOCAL, 0, by_handle},
	{"handle-deepbind", LOCAL | RTLD_DEEPBIND, 0, by_handle},
	{"dlvsym", LOCAL, 0, by_version},
	{"default", GLOBAL, 0, by_default},
	{"default-local", LOCAL, 0, by_handle_alone},
	{"default-dlvsym", GLOBAL, 0, by_default_version},
	{"next", GLOBAL, 0, by_next},
	{"next-dlvsym", GLOBAL, 0, by_next_version},
	{"program", GLOBAL, 0, by_program},
	{"proc", LOCAL, 0, by_proc},
	{"plugin", 0, RTLD_NOW | RTLD_LOCAL, NULL},
	{"plugin-lazy", 0, RTLD_LAZY | RTLD_LOCAL, NULL},
	{"plugin-handle", 0, RTLD_NOW | RTLD_LOCAL, by_plugin_handle},
	{"plugin-default", 0, RTLD_NOW | RTLD_LOCAL, by_plugin_default},
	{"plugin-next", 0, RTLD_NOW | RTLD_LOCAL, by_plugin_next},
	{"plugin-dlvsym", 0, RTLD_NOW | RTLD_LOCAL, by_plugin_version},
	{"deepbind", 0, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND, NULL},
	/* Here the runtime itself was loaded without the flag. */
	{"deepbind-late", LOCAL, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND, NULL},
	{"deepbind-handle", LOCAL, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND, by_plugin_handle},
};

static void go(const struct way *w, const char *path)
{
	if (getenv("POINTERS"))
		CHECK(dlopen(getenv("POINTERS"), LOCAL));
	if (w->hip_flags)
		hip = dlopen(LIBRARY, w->hip_flags);
	if (w->plugin_flags)
		load_plugin(path, w->plugin_flags);
	if (!w->hip_flags)
		hip = dlopen(LIBRARY, LOCAL);
	CHECK(hip);
	if (w->look)
		use(w->look);
	else
		run_plugin();
	if (calls("hipMalloc") || calls("hipMallocAsync") || calls("hipFreeAsync")) {
		CHECK(calls("hipMalloc") && calls("hipMallocAsync") && calls("hipFreeAsync"));
		puts("past");
		return;
	}
	CHECK(calls("hipExtMallocWithFlags") || calls("hsa_amd_memory_pool_allocate"));
	puts("seen");
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[1] : "";

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(how, ways[i].name)) {
			go(&ways[i], argv[2]);
			return 0;
		}
	hip = dlopen(LIBRARY, GLOBAL);
	CHECK(hip && preloaded());
	if (!strcmp(how, "second-copy"))
		second_copy();
	else if (!strcmp(how, "ucx"))
		ucx();
	else
		CHECK(!"a way that there is");
	return 0;
}
