/* SPDX-License-Identifier: MIT */
/*
 * dlsym() and dlvsym() mean under the preload what they mean without it, but for functions of HIP.
 *
 *   dlsym_calls [wrapped | wrapped-info]
 */
#include "test.h"

const char *who(void);
int early_a(void), early_b(void), constructed_a(void), constructed_b(void);
const char *next_a(void), *next_b(void), *default_a(void), *default_b(void);

static bool says(const char *words)
{
	const char *error = dlerror();

	if (!error || !strstr(error, words))
		fprintf(stderr, "dlerror: %s\n", error ? error : "nothing");
	return error && strstr(error, words);
}

static const char *home(void *fn)
{
	Dl_info info;

	return fn && dladdr(fn, &info) ? info.dli_fname : "nowhere";
}

/* What RTLD_NEXT and RTLD_DEFAULT mean depends on who asks. */
static void callers(void)
{
	const char *(*next)(void) = (const char *(*)(void))dlsym(RTLD_NEXT, "who");

	CHECK(early_a() && early_b() && constructed_a() && constructed_b());
	CHECK(!strcmp(who(), "a") && next && !strcmp(next(), "a"));
	CHECK(!strcmp(next_a(), "b") && !strcmp(default_a(), "a") && !strcmp(default_b(), "a"));
	(void)dlerror();
	CHECK(!next_b() && says("undefined symbol: who"));
}

/* A runtime may lack functions that we have. They are as little there as without us. */
static void lacking(void *hip)
{
	static const char *const names[] = {"hipModuleLoadFatBinary", "hipLaunchKernelExC",
					    "hipHccModuleLaunchKernel",
					    "hipModuleLaunchCooperativeKernel", "hipGraphUpload"};
	unsigned lacks = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct runtime_symbol s = {.name = names[i]};

		dl_iterate_phdr(find_in_runtime, &s);
		if (s.address)
			continue;
		lacks++;
		CHECK(!dlsym(hip, names[i]) && says(names[i]));
		CHECK(!dlsym(RTLD_DEFAULT, names[i]) && says(names[i]));
		CHECK(!dlsym(RTLD_NEXT, names[i]) && says(names[i]));
	}
	CHECK(lacks);
}

/* Answers and errors are those of the real call. */
static void errors(void)
{
	void *math = dlopen("libm.so.6", RTLD_LAZY), *hip = dlopen("libamdhip64.so.5", RTLD_LAZY);

	CHECK(math && hip);
	CHECK(!dlsym(math, "hipMalloc") && says("libm.so.6: undefined symbol: hipMalloc"));
	CHECK(!dlsym(math, "no_such_function") &&
	      says("libm.so.6: undefined symbol: no_such_function"));
	CHECK(!dlsym(hip, "hipNoSuchFunction") && says("undefined symbol: hipNoSuchFunction"));
	lacking(hip);
	CHECK(!dlvsym(hip, "hipMalloc", "hip_9.9") && says("hipMalloc"));
	CHECK(!dlvsym(RTLD_DEFAULT, "hipMalloc", "hip_9.9") && says("hipMalloc"));
	CHECK(dlsym(hip, "hipMalloc") == (void *)hipMalloc && !dlerror());
	CHECK(dlvsym(hip, "hipMalloc", "hip_4.2") == (void *)hipMalloc && !dlerror());
	/* Functions of the runtime that we do not intercept stay its own. */
	CHECK(strstr(home(dlsym(hip, "somasim_call_count")), "libhsa-runtime64"));
	CHECK(strstr(home(dlsym(hip, "hipGetErrorString")), "libamdhip64"));
	CHECK(strstr(home(dlsym(math, "cos")), "libm"));
}

int main(int argc, char **argv)
{
	unsigned (*interposer)(void) = (unsigned (*)(void))dlsym(RTLD_DEFAULT, "interposer_calls");
	unsigned before = interposer ? interposer() : 0;
	void *p;

	CHECK(preloaded());
	sim_calls();
	if (argc > 1 && !strcmp(argv[1], "wrapped")) {
		unsigned *wrapped = (unsigned *)dlsym(RTLD_DEFAULT, "wrapper_calls");

		/* The shim is disabled: the call goes through it and the wrapper to the runtime. */
		CHECK(wrapped);
		OK(hipMalloc(&p, 1000));
		OK(hipFree(p));
		CHECK(*wrapped == 1 && sim_count("hipMalloc") == 1);
		return 0;
	}
	if (argc > 1) {
		unsigned *wrapped = (unsigned *)dlsym(RTLD_DEFAULT, "wrapper_calls");
		size_t left, total;

		/* It has this function only. All others are the runtime's. */
		CHECK(wrapped);
		OK(hipMalloc(&p, 1000));
		OK(hipFree(p));
		*wrapped = 0;
		OK(hipMemGetInfo(&left, &total));
		CHECK(*wrapped == 1 && total >= left);
		return 0;
	}
	if (!interposer) /* which is the caller that glibc sees */
		callers();
	errors();
	CHECK(!interposer || interposer() > before);
	return 0;
}
