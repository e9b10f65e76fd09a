/* SPDX-License-Identifier: MIT */
/* Requests to a process to sleep or to wake, from the client's side. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "live/reader.h"
#include "live/sleep_request.h"

#define AT(member) (off_t)(offsetof(struct ss_live_page, sleep) + offsetof(struct ss_live_sleep, member))
#define LOCK_TRIES 100 /* 10 ms apart */

bool ss_live_sleeper_open(struct ss_live_sleeper *s, const char *path)
{
	void *at;
	int err;

	s->fd = ss_live_open(path, O_RDWR);
	if (s->fd < 0)
		return false;
	at = mmap(NULL, SS_LIVE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (at == MAP_FAILED) {
		err = errno;
		close(s->fd);
		errno = err;
		return false;
	}
	s->mapped = at;
	return true;
}

void ss_live_sleeper_close(struct ss_live_sleeper *s)
{
	munmap(s->mapped, SS_LIVE_BYTES);
	close(s->fd);
}

static long futex(const _Atomic uint32_t *word, int op, uint32_t value, const struct timespec *t)
{
	return syscall(SYS_futex, word, op, value, t, NULL, 0);
}

static bool read_word(int fd, off_t at, uint32_t *out)
{
	errno = EIO;
	return pread(fd, out, sizeof(*out), at) == (ssize_t)sizeof(*out);
}

static bool write_at(int fd, off_t at, const void *from, size_t size)
{
	errno = EIO;
	return pwrite(fd, from, size, at) == (ssize_t)size;
}

/* One client at a time writes a request. The lock ends with its client. */
static bool lock(int fd, short type)
{
	static const struct timespec nap = {.tv_nsec = 10000000};
	struct flock part = {.l_type = type,
			     .l_whence = SEEK_SET,
			     .l_start = (off_t)offsetof(struct ss_live_page, sleep),
			     .l_len = sizeof(struct ss_live_sleep)};

	/* A kernel that does not know such locks lets everybody write. */
	for (int i = 0; fcntl(fd, F_OFD_SETLK, &part) != 0 && errno != EINVAL; i++) {
		if (i == LOCK_TRIES)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

/* The serial number differs from that of the request before, and of the last answer. */
static uint32_t next_request(uint32_t wanted, uint32_t command)
{
	return (wanted / SS_LIVE_COMMANDS + 1) * SS_LIVE_COMMANDS + command;
}

bool ss_live_sleeper_ask(struct ss_live_sleeper *s, enum ss_live_sleep_command command,
			 const char *store, uint32_t patience_ms)
{
	char text[SS_LIVE_STORE] = "";
	uint32_t wanted, rung;
	bool ok;
	int err;

	if (strlen(store) >= sizeof(text)) {
		errno = ENAMETOOLONG;
		return false;
	}
	strcpy(text, store);
	if (!lock(s->fd, F_WRLCK))
		return false;
	ok = read_word(s->fd, AT(wanted), &wanted) && read_word(s->fd, AT(bell), &rung) &&
	     write_at(s->fd, AT(store), text, sizeof(text)) &&
	     write_at(s->fd, AT(patience_ms), &patience_ms, sizeof(patience_ms));
	s->request = next_request(wanted, command);
	rung++;
	ok = ok && write_at(s->fd, AT(wanted), &s->request, sizeof(s->request)) &&
	     write_at(s->fd, AT(bell), &rung, sizeof(rung));
	err = errno;
	(void)lock(s->fd, F_UNLCK);
	if (ok)
		(void)futex(&s->mapped->sleep.bell, FUTEX_WAKE, INT_MAX, NULL);
	errno = err;
	return ok;
}

void ss_live_sleeper_wait(const struct ss_live_sleeper *s, uint32_t done, unsigned ms)
{
	const struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

	if (futex(&s->mapped->sleep.done, FUTEX_WAIT, done, &t) && errno != ETIMEDOUT &&
	    errno != EAGAIN && errno != EINTR)
		nanosleep(&t, NULL);
}
