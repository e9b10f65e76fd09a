/* SPDX-License-Identifier: MIT */
/* Makes, writes and removes the live page of this process. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/mapped_file.h"
#include "live/directory.h"
#include "live/writer.h"

static char path[SS_LIVE_PATH]; /* path of the page; "" if there is none */
/* Pid of the process that made the page: a forked child is another process */
static uint32_t owner;

/* Locks the file as a sign of life for processes that cannot see this one. The lock stays as long
 * as the file is mapped, also without a descriptor. */
static struct ss_live_page *map(int fd)
{
	(void)flock(fd, LOCK_EX | LOCK_NB); /* readers ignore a file without its full size */
	return ss_file_reserve(fd, 0, SS_LIVE_BYTES) ? ss_file_map(fd, 0, SS_LIVE_BYTES) : NULL;
}

struct ss_live_page *ss_live_create(const char *directory, const struct ss_live_identity *who)
{
	struct ss_live_page *page;
	struct ss_live_name name;
	int fd, err;

	ss_live_clean(directory);
	if (!ss_live_own_name(&name))
		return NULL;
	if (!ss_live_path(directory, &name, path)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	/* The program that this process ran before exec() may have left a page. */
	(void)unlink(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		path[0] = '\0';
		return NULL;
	}
	page = map(fd);
	err = errno;
	close(fd);
	owner = name.pid;
	if (!page) {
		ss_live_remove();
		errno = err;
		return NULL;
	}
	page->version = SS_LIVE_VERSION;
	page->size = SS_LIVE_SIZE;
	atomic_store(&page->sleep.version, SS_LIVE_SLEEP_VERSION);
	page->who = *who;
	atomic_store_explicit(&page->magic, SS_LIVE_MAGIC, memory_order_release);
	return page;
}

void ss_live_publish(struct ss_live_page *page, const struct ss_live_figures *figures)
{
	struct ss_live_figures *to = &page->figures;
	uint32_t n = atomic_load_explicit(&page->sequence, memory_order_relaxed);

	atomic_store_explicit(&page->sequence, n | 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	memcpy(to, figures,
	       offsetof(struct ss_live_figures, device) +
		       figures->device_count * sizeof(to->device[0]));
	memcpy(to->pool, figures->pool, figures->pool_count * sizeof(to->pool[0]));
	atomic_store_explicit(&page->sequence, (n | 1) + 1, memory_order_release);
}

int ss_live_dump_open(void)
{
	char dump[SS_LIVE_PATH];

	if (!path[0] || !ss_live_dump_path(path, dump)) {
		errno = ENOENT;
		return -1;
	}
	(void)unlink(dump);
	return open(dump, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

void ss_live_leave(struct ss_live_page *page)
{
	munmap(page, SS_LIVE_BYTES);
}

void ss_live_remove(void)
{
	if (path[0] && owner == (uint32_t)getpid())
		(void)unlink(path);
	path[0] = '\0';
}
