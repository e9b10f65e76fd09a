/* SPDX-License-Identifier: MIT */
/*
 * Keeps the mappings that the core returns for the next program. Each program makes a core and
 * destroys it, and unmapping flushes address translations on every processor, which would be most
 * of what a program costs. Linked with --wrap=mmap64 and --wrap=munmap.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define __asan_poison_memory_region(p, size) ((void)(p))
#define __asan_unpoison_memory_region(p, size) ((void)(p))
#endif

#define PAGE 4096
#define KEPT 256
#define SMALL (64u << 10)
#define LARGEST (17u << 20)
#define PLAIN (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

void *__real_mmap64(void *at, size_t size, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *p, size_t size);
void *__wrap_mmap64(void *at, size_t size, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *p, size_t size);

/* Mappings of the core that are live or kept. An entry without `p` is free. */
static struct {
	void *p;
	size_t size;
	bool live;
} known[2 * KEPT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Zeroes a mapping. Of a large one, which is sparse, only the pages that were touched; a small one
 * is cleared faster than the kernel is asked which pages those are.
 */
static void zero(char *p, size_t size)
{
	unsigned char resident[LARGEST / PAGE];

	if (size <= SMALL) {
		memset(p, 0, size);
		return;
	}
	if (mincore(p, size, resident))
		memset(resident, 1, sizeof(resident));
	for (size_t at = 0; at < size; at += PAGE)
		if (resident[at / PAGE] & 1)
			memset(p + at, 0, size - at < PAGE ? size - at : PAGE);
}

void *__wrap_mmap64(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	bool plain = !at && prot == (PROT_READ | PROT_WRITE) && flags == PLAIN && size <= LARGEST;
	void *p = NULL;
	size_t i, spare = 2 * KEPT;

	if (!plain)
		return __real_mmap64(at, size, prot, flags, fd, offset);
	pthread_mutex_lock(&lock);
	for (i = 0; i < 2 * KEPT && !p; i++) {
		if (!known[i].p)
			spare = i;
		else if (!known[i].live && known[i].size == size) {
			p = known[i].p;
			known[i].live = true;
			__asan_unpoison_memory_region(p, size);
			zero(p, size);
		}
	}
	if (!p) {
		p = __real_mmap64(at, size, prot, flags, fd, offset);
		if (p != MAP_FAILED && spare < 2 * KEPT) {
			known[spare].p = p;
			known[spare].size = size;
			known[spare].live = true;
		}
	}
	pthread_mutex_unlock(&lock);
	return p;
}

int __wrap_munmap(void *p, size_t size)
{
	size_t kept = 0, at = 2 * KEPT;
	int r = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < 2 * KEPT; i++) {
		kept += known[i].p && !known[i].live;
		if (known[i].p == p && known[i].size == size)
			at = i;
	}
	if (at < 2 * KEPT && kept < KEPT) {
		known[at].live = false;
		__asan_poison_memory_region(p, size);
	} else {
		if (at < 2 * KEPT)
			known[at].p = NULL;
		r = __real_munmap(p, size);
	}
	pthread_mutex_unlock(&lock);
	return r;
}
