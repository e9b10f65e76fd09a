/* SPDX-License-Identifier: MIT */
/*
 * Limits of the process that look like a lack of device memory. On some runtimes (7.14)
 * every handle of physical memory is a file descriptor, and on all of them a mapped chunk is
 * a mapping of the process.
 *
 * Locks: limit_lock, for the text of the last limit that was hit.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "driver/rocm/process_limits.h"

static pthread_mutex_t limit_lock = PTHREAD_MUTEX_INITIALIZER;
static char text[160];

static bool descriptors_out(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == EMFILE;
	close(fd);
	return false;
}

bool ss_process_limit_raised(void)
{
	struct rlimit r;

	/* The limit is raised only when needed, because select() cannot handle descriptors above
	 * 1023. */
	if (!descriptors_out() || getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= r.rlim_max)
		return false;
	r.rlim_cur = r.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &r) == 0;
}

/* Mapping a chunk splits the mapping of its reservation, so try to split one. */
static bool mappings_out(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		       0);
	bool out = p == MAP_FAILED;

	if (!out) {
		out = munmap(p + page, page) != 0;
		munmap(p, out ? 3 * page : page);
		if (!out)
			munmap(p + 2 * page, page);
	}
	return out;
}

bool ss_process_limit_hit(void)
{
	bool files = descriptors_out(), maps = !files && mappings_out();
	unsigned long most = 0;
	struct rlimit r;
	FILE *f;

	if (!files && !maps)
		return false;
	pthread_mutex_lock(&limit_lock);
	if (files && !getrlimit(RLIMIT_NOFILE, &r)) {
		snprintf(text, sizeof(text),
			 "all %llu file descriptors of the process are in use "
			 "(RLIMIT_NOFILE, ulimit -n)",
			 (unsigned long long)r.rlim_cur);
	} else if (!getrlimit(RLIMIT_AS, &r) && r.rlim_cur != RLIM_INFINITY) {
		snprintf(text, sizeof(text),
			 "the process may map no more than %llu bytes "
			 "(RLIMIT_AS, ulimit -v)",
			 (unsigned long long)r.rlim_cur);
	} else {
		f = fopen("/proc/sys/vm/max_map_count", "re");
		if (f && fscanf(f, "%lu", &most) != 1)
			most = 0;
		if (f)
			fclose(f);
		snprintf(text, sizeof(text),
			 "all %lu mappings of the process are in use "
			 "(vm.max_map_count)",
			 most);
	}
	pthread_mutex_unlock(&limit_lock);
	return true;
}

bool ss_process_limit(void *ctx, char *out, size_t size)
{
	bool any;

	(void)ctx;
	pthread_mutex_lock(&limit_lock);
	any = text[0] != '\0';
	snprintf(out, size, "%s", text);
	text[0] = '\0';
	pthread_mutex_unlock(&limit_lock);
	return any;
}
