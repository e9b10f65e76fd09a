/* SPDX-License-Identifier: MIT */
/* The places and names of live pages, and the detection of stale pages. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live/directory.h"
#include "live/page.h"

#define PREFIX "somashim-"
#define DUMP ".dump"

bool ss_live_enabled(const char *directory)
{
	static const char *const off[] = {"", "0", "off", "no", "false"};

	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
		if (strcasecmp(directory, off[i]) == 0)
			return false;
	return true;
}

/* Field 22 of /proc/PID/stat. The command, which comes before this field, may contain any
 * characters. False: there is no such process, or no /proc. */
static bool start_time(const char *pid, uint64_t *out)
{
	char path[64], text[1024], *p;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	p = strrchr(text, ')');
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p)
		return false;
	*out = strtoull(p + 1, NULL, 10);
	return true;
}

bool ss_live_name_of(uint32_t pid, struct ss_live_name *out)
{
	char link[64], text[16];
	ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link) - 1); /* "pid:[4026531836]" */

	snprintf(text, sizeof(text), "%" PRIu32, pid);
	if (n <= 0 || !start_time(text, &out->start))
		return false;
	link[n] = '\0';
	out->space = strtoull(link + strcspn(link, "0123456789"), NULL, 10);
	out->pid = pid;
	return true;
}

bool ss_live_own_name(struct ss_live_name *out)
{
	return ss_live_name_of((uint32_t)getpid(), out);
}

bool ss_live_path(const char *directory, const struct ss_live_name *name, char out[SS_LIVE_PATH])
{
	int n = snprintf(out, SS_LIVE_PATH, "%s/" PREFIX "%" PRIu64 "-%" PRIu32 "-%" PRIu64,
			 directory, name->space, name->pid, name->start);

	return n > 0 && n < SS_LIVE_PATH;
}

bool ss_live_dump_path(const char *page, char out[SS_LIVE_PATH])
{
	int n = snprintf(out, SS_LIVE_PATH, "%s" DUMP, page);

	return n > 0 && n < SS_LIVE_PATH;
}

bool ss_live_parse_name(const char *text, struct ss_live_name *out)
{
	char again[128], *end;
	unsigned long long pid;

	if (strncmp(text, PREFIX, sizeof(PREFIX) - 1) != 0)
		return false;
	out->space = strtoull(text + sizeof(PREFIX) - 1, &end, 10);
	pid = *end == '-' ? strtoull(end + 1, &end, 10) : 0;
	out->start = *end == '-' ? strtoull(end + 1, &end, 10) : 0;
	if (!pid || pid > INT32_MAX)
		return false;
	out->pid = (uint32_t)pid;
	/* One name per process: no signs, leading zeros or spaces. */
	snprintf(again, sizeof(again), PREFIX "%" PRIu64 "-%" PRIu32 "-%" PRIu64, out->space,
		 out->pid, out->start);
	return strcmp(again, text) == 0;
}

enum ss_live_process ss_live_look(const struct ss_live_name *name, uint64_t space)
{
	char pid[16];
	uint64_t start;

	if (name->space != space)
		return SS_LIVE_ELSEWHERE;
	snprintf(pid, sizeof(pid), "%" PRIu32, name->pid);
	if (start_time(pid, &start))
		return start == name->start ? SS_LIVE_RUNS : SS_LIVE_ENDED;
	return kill((pid_t)name->pid, 0) != 0 && errno == ESRCH ? SS_LIVE_ENDED : SS_LIVE_RUNS;
}

/* Only root looks at files of other users. *held: a process has the file locked. */
static bool is_own_file(int dir, const char *file, off_t *size, bool *held)
{
	int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	bool own;

	if (fd < 0)
		return false;
	own = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	      (st.st_uid == geteuid() || geteuid() == 0);
	*held = own && st.st_size == SS_LIVE_BYTES && flock(fd, LOCK_SH | LOCK_NB) != 0;
	close(fd);
	*size = st.st_size;
	return own;
}

static void remove_page(int dir, const char *file)
{
	char dump[256 + sizeof(DUMP)];

	snprintf(dump, sizeof(dump), "%s" DUMP, file);
	(void)unlinkat(dir, dump, 0);
	(void)unlinkat(dir, file, 0);
}

bool ss_live_scan(const char *directory, ss_live_each *each, void *arg)
{
	struct ss_live_name own, name;
	enum ss_live_process state;
	char path[SS_LIVE_PATH];
	struct dirent *e;
	bool held;
	off_t size;
	DIR *d;

	if (!ss_live_own_name(&own))
		own.space = 0; /* every process counts as one of another namespace */
	d = opendir(directory);
	if (!d)
		return false;
	while ((e = readdir(d))) {
		if (!ss_live_parse_name(e->d_name, &name) ||
		    !is_own_file(dirfd(d), e->d_name, &size, &held))
			continue;
		state = ss_live_look(&name, own.space);
		/* A page is locked before it has its size. */
		if (state == SS_LIVE_ELSEWHERE && !held && size == SS_LIVE_BYTES)
			state = SS_LIVE_ENDED;
		if (state == SS_LIVE_ENDED)
			remove_page(dirfd(d), e->d_name);
		else if (each && size == SS_LIVE_BYTES && ss_live_path(directory, &name, path))
			each(path, &name, state, arg);
	}
	closedir(d);
	return true;
}

void ss_live_clean(const char *directory)
{
	(void)ss_live_scan(directory, NULL, NULL);
}
