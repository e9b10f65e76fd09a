/* SPDX-License-Identifier: MIT */
/* Helpers of the programs that sleep: the command, the page, and blocks whose bytes are known. */
#ifndef TEST_SLEEP_H
#define TEST_SLEEP_H

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live/page.h"
#include "test.h"

#define MIB (1ull << 20)

extern char **environ;
static const char *somashim; /* path of the command */
static char said[4096];      /* what the last command printed, on both streams */

/* ---- the command ------------------------------------------------------------------ */

struct running {
	pid_t pid;
	int from;
};

/* Without the preload, and without what the loader needs for it. */
static inline struct running command_start(const char *const *args)
{
	char *argv[16] = {(char *)(uintptr_t)somashim}, *env[256];
	posix_spawn_file_actions_t actions;
	struct running r;
	int fds[2], n = 0;

	for (int i = 0; args[i]; i++)
		argv[i + 1] = (char *)(uintptr_t)args[i];
	for (char **e = environ; *e && n < 255; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11) != 0)
			env[n++] = *e;
	env[n] = NULL;
	CHECK(!pipe2(fds, O_CLOEXEC));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 2);
	CHECK(!posix_spawn(&r.pid, somashim, &actions, NULL, argv, env));
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	r.from = fds[0];
	return r;
}

/* Returns the exit status. */
static inline int command_end(struct running r)
{
	size_t at = 0;
	ssize_t n;
	int status;

	while ((n = read(r.from, said + at, sizeof(said) - 1 - at)) > 0)
		at += (size_t)n;
	said[at] = '\0';
	close(r.from);
	CHECK(waitpid(r.pid, &status, 0) == r.pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The last argument is NULL. */
static inline int command(const char *first, ...)
{
	const char *args[15] = {first};
	va_list more;
	int n = 1;

	va_start(more, first);
	while ((args[n] = va_arg(more, const char *)))
		n++;
	va_end(more);
	return command_end(command_start(args));
}

static inline const char *own_pid(void)
{
	static char text[16];

	snprintf(text, sizeof(text), "%d", (int)getpid());
	return text;
}

#define SAID(text) do { \
	if (!strstr(said, text)) { \
		fprintf(stderr, "%s:%d: the command did not say '%s' but: %s\n", __FILE__, \
			__LINE__, text, said); \
		exit(1); \
	} \
} while (0)
#define COMMAND(want, ...) do { \
	int status_ = command(__VA_ARGS__, NULL); \
	if (status_ != (want)) { \
		fprintf(stderr, "%s:%d: the command ended with %d: %s\n", __FILE__, __LINE__, \
			status_, said); \
		exit(1); \
	} \
} while (0)

/* ---- the page ------------------------------------------------------------------------- */

/* As the library has it mapped; NULL: there is none. */
static inline struct ss_live_page *page_of_ours(void)
{
	static struct ss_live_page *page;
	char line[1024], name[64];
	void *at = NULL;
	FILE *f;

	if (page)
		return page;
	snprintf(name, sizeof(name), "-%d-", (int)getpid());
	f = fopen("/proc/self/maps", "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "/somashim-") && strstr(line, name))
			CHECK(sscanf(line, "%p-", &at) == 1);
	fclose(f);
	return page = at;
}

static inline uint32_t state_now(void)
{
	return atomic_load(&page_of_ours()->sleep.state);
}

static inline void wait_state(uint32_t state)
{
	while (state_now() != state)
		usleep(1000);
}

/* ---- blocks ----------------------------------------------------------------------------- */

static hipStream_t stream;

static inline void pattern(uint32_t *to, size_t words, uint32_t seed)
{
	for (size_t i = 0; i < words; i++)
		to[i] = (uint32_t)i * 2654435761u + seed;
}

/* A block with known bytes, written by a copy. */
static inline void *block(size_t size, uint32_t seed)
{
	uint32_t *host = malloc(size);
	void *p;

	CHECK(host);
	pattern(host, size / 4, seed);
	OK(hipMallocAsync(&p, size, stream));
	OK(hipMemcpyAsync(p, host, size, hipMemcpyHostToDevice, stream));
	OK(hipStreamSynchronize(stream));
	free(host);
	return p;
}

static inline bool whole(const void *p, size_t size, uint32_t seed)
{
	uint32_t *host = malloc(size), *want = malloc(size);
	bool same;

	CHECK(host && want);
	pattern(want, size / 4, seed);
	OK(hipMemcpyAsync(host, p, size, hipMemcpyDeviceToHost, stream));
	OK(hipStreamSynchronize(stream));
	same = !memcmp(host, want, size);
	free(host);
	free(want);
	return same;
}

/* ---- kernels ------------------------------------------------------------------------------ */

static inline void kernel_register(const void *kernel, void (*body)(void **), const size_t *sizes)
{
	void (*reg)(const void *, void (*)(void **), const size_t *) = (void (*)(
		const void *, void (*)(void **),
		const size_t *))sim_must("somasim_register_kernel_args");

	reg(kernel, body, sizes);
}

static char live[] = "/tmp/somashim-sleep-XXXXXX";
static pid_t test_pid;

/* With the page, which the library would remove later. */
static inline void sleep_test_clean(void)
{
	DIR *d = getpid() == test_pid ? opendir(live) : NULL;

	for (struct dirent *e; d && (e = readdir(d));)
		(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d) {
		closedir(d);
		(void)rmdir(live);
	}
}

/* On any device. */
static inline void sleep_begin(const char *command)
{
	somashim = command;
	/* Of its own, so that the command sees no processes of other tests. */
	test_pid = getpid();
	CHECK(mkdtemp(live) && !setenv("SOMASHIM_LIVE", live, 0));
	atexit(sleep_test_clean);
	OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	(void)page_of_ours(); /* found once, before there are threads */
}

static inline void sleep_test_begin(int argc, char **argv)
{
	if (argc < 2 || !sim_call("somasim_register_kernel_args"))
		exit(SKIP);
	sleep_begin(argv[1]);
}

#endif
