/* SPDX-License-Identifier: MIT */
/*
 * Addresses that the pools have released to the runtime. Anybody may get them from then on: the
 * runtime for an allocation that the checker does not see, or the host's malloc(). The runtime is
 * asked for its allocations. The host has the address if it can be read, unless the mapping is the
 * device's: a runtime may keep device memory mapped for the host.
 *
 * Locks: `lock`, a leaf.
 */
#include <errno.h>
#include <hsa/hsa_ext_amd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "driver/rocm/resolve.h"
#include "shim/check/inside.h"

#define LOOKS 16u /* a look reads the process's list of mappings */

struct mapping {
	uintptr_t begin, end;
	unsigned major, minor;
	unsigned long inode; /* 0: no file */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping devices[LOOKS]; /* mappings that have had blocks */
static unsigned count, looks;

/* False: nothing is mapped at the address, or the list cannot be read. */
static bool mapping_of(uintptr_t at, struct mapping *m)
{
	FILE *f = fopen("/proc/self/maps", "re");
	bool found = false;
	char *line = NULL;
	size_t room = 0;

	while (f && !found && getline(&line, &room, f) > 0)
		found = sscanf(line, "%lx-%lx %*s %*s %x:%x %lu", &m->begin, &m->end, &m->major,
			       &m->minor, &m->inode) == 5 &&
			m->begin <= at && at < m->end;
	free(line);
	if (f)
		fclose(f);
	return found;
}

void ss_check_memory_seen(const void *block)
{
	uintptr_t at = (uintptr_t)block;
	struct mapping m;
	bool known;

	pthread_mutex_lock(&lock);
	known = looks == LOOKS;
	for (unsigned i = 0; i < count && !known; i++)
		known = devices[i].begin <= at && at < devices[i].end;
	if (!known) {
		looks++; /* also if nothing is found, or each block would cost a look */
		if (mapping_of(at, &m))
			devices[count++] = m;
	}
	pthread_mutex_unlock(&lock);
}

static bool is_devices(const void *ptr)
{
	struct mapping m;
	bool found = false;

	if (!mapping_of((uintptr_t)ptr, &m) || !m.inode)
		return false;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < count; i++)
		found |= devices[i].inode == m.inode && devices[i].major == m.major &&
			 devices[i].minor == m.minor;
	pthread_mutex_unlock(&lock);
	return found;
}

static bool host_has(const void *ptr)
{
	char byte;
	struct iovec to = {&byte, 1}, from = {(void *)(uintptr_t)ptr, 1};

	return (process_vm_readv(getpid(), &to, 1, &from, 1, 0) >= 0 || errno != EFAULT) &&
	       !is_devices(ptr);
}

static bool device_has(const void *ptr)
{
	__typeof__(hsa_amd_pointer_info) *ask = (__typeof__(hsa_amd_pointer_info) *)ss_hsa_symbol(
		"hsa_amd_pointer_info");
	hsa_amd_pointer_info_t info = {.size = sizeof(info)};

	return !ask || ask(ptr, &info, NULL, NULL, NULL) != HSA_STATUS_SUCCESS ||
	       info.type != HSA_EXT_POINTER_TYPE_UNKNOWN;
}

bool ss_check_nobody_has(const void *ptr)
{
	int before = errno;
	bool nobody = !device_has(ptr) && !host_has(ptr);

	errno = before;
	return nobody;
}
