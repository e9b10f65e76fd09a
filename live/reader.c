/* SPDX-License-Identifier: MIT */
/* Reads, checks and repairs live pages of other processes, and writes requests to them. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "live/reader.h"

#define DELETED " (deleted)" /* what /proc appends to the name of a removed file */
#define TRIES 200 /* of a page that is being written, a millisecond apart */

/* A string of a page is shown on a terminal and in JSON. */
static void repair(char *text, size_t size)
{
	size_t n = 0;

	text[size - 1] = '\0';
	for (; text[n]; n++)
		if (text[n] < ' ' || text[n] > '~')
			text[n] = '?';
	memset(text + n, 0, size - n);
}

#define REPAIR(text) repair(text, sizeof(text))

enum ss_live_result ss_live_check(struct ss_live_page *page, size_t size)
{
	struct ss_live_identity *who = &page->who;
	struct ss_live_figures *f = &page->figures;

	if (size < sizeof(*page) || page->magic != SS_LIVE_MAGIC)
		return SS_LIVE_GONE;
	if (page->version != SS_LIVE_VERSION || page->size != SS_LIVE_SIZE)
		return SS_LIVE_NEWER;
	REPAIR(who->command);
	REPAIR(who->launcher);
	REPAIR(who->job);
	REPAIR(who->pod);
	REPAIR(who->host);
	REPAIR(who->version);
	REPAIR(who->executable);
	if (f->device_count > SS_LIVE_DEVICES)
		f->device_count = SS_LIVE_DEVICES;
	if (f->pool_count > SS_LIVE_POOLS)
		f->pool_count = SS_LIVE_POOLS;
	for (uint32_t i = 0; i < f->device_count; i++) {
		REPAIR(f->device[i].pci);
		REPAIR(f->device[i].name);
	}
	for (uint32_t i = 0; i < f->pool_count; i++) {
		REPAIR(f->pool[i].name);
		REPAIR(f->pool[i].backing);
	}
	/* An older or a newer somashim has no such part, or another one. */
	if (page->sleep.version != SS_LIVE_SLEEP_VERSION) {
		memset(&page->sleep, 0, sizeof(page->sleep));
		return SS_LIVE_OK;
	}
	REPAIR(page->sleep.unable);
	REPAIR(page->sleep.slept.why);
	return SS_LIVE_OK;
}

static bool read_sequence(int fd, uint32_t *out)
{
	return pread(fd, out, sizeof(*out), offsetof(struct ss_live_page, sequence)) ==
	       (ssize_t)sizeof(*out);
}

/* The kernel calls order the reads. */
static enum ss_live_result read_whole(int fd, struct ss_live_page *out)
{
	static const struct timespec nap = {.tv_nsec = 1000000};
	uint32_t before, after;
	ssize_t n;

	for (int i = 0; i < TRIES; i++) {
		if (!read_sequence(fd, &before))
			return SS_LIVE_GONE;
		n = pread(fd, out, sizeof(*out), 0);
		if (n != (ssize_t)sizeof(*out) || !read_sequence(fd, &after))
			return SS_LIVE_GONE;
		if (!(before & 1) && before == after)
			return ss_live_check(out, sizeof(*out));
		nanosleep(&nap, NULL);
	}
	return SS_LIVE_BUSY;
}

/* A file of another kind with this name could block, or do worse. */
int ss_live_open(const char *path, int flags)
{
	int fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == SS_LIVE_BYTES &&
	    (st.st_uid == geteuid() || geteuid() == 0))
		return fd;
	close(fd);
	errno = EINVAL;
	return -1;
}

enum ss_live_result ss_live_read(const char *path, struct ss_live_page *out)
{
	int fd = ss_live_open(path, O_RDONLY);
	enum ss_live_result result;

	if (fd < 0)
		return SS_LIVE_GONE;
	result = read_whole(fd, out);
	close(fd);
	return result;
}

enum ss_live_result ss_live_read_process(const char *path, uint32_t pid, struct ss_live_page *out)
{
	enum ss_live_result result = ss_live_read(path, out);
	char link[64], now[sizeof(out->who.executable) + sizeof(DELETED)] = "", *end;

	if (result != SS_LIVE_OK)
		return result;
	snprintf(link, sizeof(link), "/proc/%u/exe", pid);
	if (readlink(link, now, sizeof(now) - 1) <= 0)
		return result; /* the process may not be inspected */
	/* A program that was rebuilt while it runs counts as the same program. */
	end = strstr(now, DELETED);
	if (end && !end[sizeof(DELETED) - 1])
		*end = '\0';
	now[sizeof(out->who.executable) - 1] = '\0';
	REPAIR(now);
	return strcmp(now, out->who.executable) == 0 || !out->who.executable[0] ? result :
										  SS_LIVE_LEFT;
}

double ss_live_age(const struct ss_live_page *page)
{
	uint64_t updated = page->figures.updated_ns, now;
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	return updated && updated < now ? (double)(now - updated) / 1e9 : 0;
}

static bool ask(const char *path, off_t where, uint32_t value)
{
	int fd = ss_live_open(path, O_WRONLY), err;
	ssize_t n;

	if (fd < 0)
		return false;
	n = pwrite(fd, &value, sizeof(value), where);
	err = errno;
	close(fd);
	errno = err;
	return n == (ssize_t)sizeof(value);
}

bool ss_live_ask_refresh(const char *path, uint32_t value)
{
	return ask(path, offsetof(struct ss_live_page, refresh_wanted), value);
}

bool ss_live_ask_dump(const char *path, uint32_t value)
{
	return ask(path, offsetof(struct ss_live_page, dump_wanted), value);
}
