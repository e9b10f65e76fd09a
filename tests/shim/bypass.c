/* SPDX-License-Identifier: MIT */
/*
 * Ways past the shim, with the preload alone. The first sign of one is logged once. From
 * then on events and queries prove nothing, and hipFree waits for the device.
 *
 *   bypass PLUGIN [HOW WHAT]
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#define SIZE (1u << 20)
#define LARGE (64u << 20) /* a segment of its own */
#define HOLD_MS 400

static char log_path[64];
static const char *plugin;

#ifdef STATIC_HIP
/* Device code that nobody is asked to register: the program brings its own HIP. */
__attribute__((section(".hip_fatbin"), used)) static const char code[64] = "code";
#endif

static unsigned said(const char *words)
{
	char line[1024];
	unsigned n = 0;
	FILE *f = fopen(log_path, "r");

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, words) != NULL;
	if (f)
		fclose(f);
	return n;
}

/* A block that goes from one stream to another behind an event, while neither of them
 * moves: only the event's clock says that this is right. */
static bool clocks_are_trusted(void)
{
	hipStream_t a, b;
	hipEvent_t e;
	void *p, *q;

	OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
	OK(hipEventCreateWithFlags(&e, hipEventDisableTiming));
	OK(hipMallocAsync(&p, LARGE, a));
	stall(a);
	OK(hipMemsetAsync(p, 1, LARGE, a));
	OK(hipFreeAsync(p, a));
	OK(hipEventRecord(e, a));
	OK(hipStreamWaitEvent(b, e, 0));
	OK(hipMallocAsync(&q, LARGE, b));
	release(a);
	OK(hipFreeAsync(q, b));
	OK(hipStreamSynchronize(a));
	OK(hipStreamSynchronize(b));
	OK(hipEventDestroy(e));
	OK(hipStreamDestroy(a));
	OK(hipStreamDestroy(b));
	return p == q;
}

/* A stream was asked and is at its end: is what it freed another's without more ado? */
static bool query_is_trusted(void)
{
	uint64_t before;
	hipStream_t a, b;
	bool without_ado;
	void *p, *q;

	OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
	OK(hipMallocAsync(&p, LARGE, a));
	OK(hipMemsetAsync(p, 1, LARGE, a));
	OK(hipFreeAsync(p, a));
	while (hipStreamQuery(a) == hipErrorNotReady)
		usleep(1000);
	before = sim_count("hipEventRecord"); /* a fence of ours */
	OK(hipMallocAsync(&q, LARGE, b));
	without_ado = q == p && sim_count("hipEventRecord") == before;
	OK(hipFreeAsync(q, b));
	OK(hipStreamSynchronize(b));
	OK(hipStreamDestroy(a));
	OK(hipStreamDestroy(b));
	return without_ado;
}

/* The first time, a fence is on its way from before. */
static bool queries_are_trusted(void)
{
	(void)query_is_trusted();
	return query_is_trusted();
}

static void *let_go(void *arg)
{
	struct timespec ts = {0, HOLD_MS * 1000000L};

	nanosleep(&ts, NULL);
	atomic_store((atomic_bool *)arg, true);
	release(NULL);
	return arg;
}

/* Does hipFree come back while the null stream is held? */
static bool waits_are_skipped(void)
{
	atomic_bool released = false;
	pthread_t releaser;
	bool skipped;
	void *p;

	OK(hipMalloc(&p, SIZE));
	OK(hipMemset(p, 0, SIZE));
	OK(hipDeviceSynchronize());
	stall(NULL);
	OK(hipMemsetAsync(p, 1, SIZE, NULL));
	CHECK(pthread_create(&releaser, NULL, let_go, &released) == 0);
	OK(hipFree(p));
	skipped = !atomic_load(&released); /* no clock: a machine may stand still */
	pthread_join(releaser, NULL);
	return skipped;
}

/* ---- ways past the shim ------------------------------------------------- */

/* The runtime once more, from another file. */
static void second_runtime(void)
{
	char path[] = "/tmp/somashim-copy.XXXXXX", buffer[65536];
	int in, out = mkstemp(path);
	Dl_info info;
	ssize_t n;

	CHECK(dladdr((void *)RUNTIME(hipMalloc), &info));
	in = open(info.dli_fname, O_RDONLY);
	CHECK(in >= 0 && out >= 0);
	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		CHECK(write(out, buffer, (size_t)n) == n);
	close(in);
	close(out);
	CHECK(dlopen(path, RTLD_LAZY | RTLD_LOCAL));
	unlink(path);
}

static void unseen_stream(void)
{
	hipError_t (*create)(hipStream_t *) = RUNTIME(hipStreamCreate);
	hipStream_t s;
	void *p;

	OK(hipMalloc(&p, SIZE));
	CHECK(create != hipStreamCreate);
	OK(create(&s));
	OK(hipMemsetAsync(p, 0, SIZE, s)); /* here it shows */
	OK(hipStreamSynchronize(s));
	OK(hipFree(p));
}

/* A tool makes a page of the runtime's code writable, which splits its mapping. */
static void split_code(void)
{
	uintptr_t page = ((uintptr_t)RUNTIME(hipMalloc) + 8192) & ~4095ul;

	CHECK(!mprotect((void *)page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC));
	CHECK(dlopen(plugin, RTLD_NOW | RTLD_LOCAL));
}

static void act(const char *how)
{
	CHECK(dlopen("libamdhip64.so.5", RTLD_LAZY));
	if (!strcmp(how, "deepbind"))
		CHECK(dlopen(plugin, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND));
	else if (!strcmp(how, "second"))
		second_runtime();
	else if (!strcmp(how, "namespace"))
		CHECK(dlmopen(LM_ID_NEWLM, "libamdhip64.so.5", RTLD_NOW));
	else if (!strcmp(how, "stream"))
		unseen_stream();
	else if (!strcmp(how, "split"))
		split_code();
	else if (!strcmp(how, "none")) /* as programs do all the time */
		CHECK(dlopen(plugin, RTLD_NOW | RTLD_LOCAL) && dlopen("libm.so.6", RTLD_NOW));
}

static int one(const char *how, const char *what)
{
	bool (*trusts)(void) = !strcmp(what, "clocks")  ? clocks_are_trusted :
			       !strcmp(what, "queries") ? queries_are_trusted :
							  waits_are_skipped;
	bool from_the_start = !strcmp(how, "static"),
	     never = !strcmp(how, "none") || !strcmp(how, "split");

	CHECK(preloaded());
	CHECK(trusts() == !from_the_start);
	CHECK(said("prove nothing") == from_the_start);
	act(how);
	CHECK(trusts() == never);
	CHECK(trusts() == never);
	CHECK(said("prove nothing") == !never);
	CHECK(never || said(!strcmp(how, "deepbind")  ? "shim_plugin" :
			    !strcmp(how, "second")    ? "two HIP runtimes" :
			    !strcmp(how, "namespace") ? "dlmopen" :
			    !strcmp(how, "static")    ? "linked statically" :
							"a stream") == 1);
	return 0;
}

int main(int argc, char **argv)
{
#ifdef STATIC_HIP
	static const char *const hows[] = {"static"};
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	static const char *const hows[] = {"none", "split", "second", "stream"};
#else
	static const char *const hows[] = {"none",   "split",    "second",
					   "stream", "deepbind", "namespace"};
#endif
	static const char *const whats[] = {"clocks", "queries", "waits"};
	int status;

	plugin = argv[1];
	snprintf(log_path, sizeof(log_path), "/tmp/somashim-bypass.%d", (int)getpid());
	if (argc == 4) {
		status = one(argv[2], argv[3]);
		unlink(log_path);
		return status;
	}
	for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++)
		for (size_t k = 0; k < 3; k++) {
			pid_t pid = fork();

			if (!pid) {
				setenv("SOMASHIM_LOG", "/tmp/somashim-bypass.%p", 1);
				execl(argv[0], argv[0], plugin, hows[i], whats[k], (char *)NULL);
				_exit(127);
			}
			CHECK(waitpid(pid, &status, 0) == pid);
			if (status)
				fprintf(stderr, "%s %s: status %d\n", hows[i], whats[k], status);
			CHECK(!status);
		}
	return 0;
}
