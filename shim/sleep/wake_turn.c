/* SPDX-License-Identifier: MIT */
/*
 * A file for each device beside the live pages, with a lock of the kernel. The lock ends with the
 * process that has it. The end of a turn removes the file, so a lock on a file that was removed
 * meanwhile is no turn.
 *
 * Locks: none of the process.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/limits.h"
#include "driver/rocm/rocm.h"
#include "live/directory.h"
#include "shim/process/live.h"
#include "shim/process/service.h"
#include "shim/sleep/wake_turn.h"

#define TRIES 50
#define TRY_US 10000 /* between two */

static int held[SS_MAX_DEVICES]; /* descriptor + 1; 0: none */

static bool path_of(int dev, char *out, size_t size)
{
	const char *pci = ss_rocm_pci(dev);
	int n = snprintf(out, size, "%s/somashim-wake-%u-%s", ss_options.live, (unsigned)geteuid(),
			 pci);

	return ss_live_is_shown() && pci[0] && !strchr(pci, '/') && n < (int)size;
}

/* False: another process has the device's turn. */
static bool take(int dev)
{
	char path[SS_LIVE_PATH];
	struct stat st;
	int fd;

	if (!path_of(dev, path, sizeof(path)))
		return true;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
	if (fd < 0 || fstat(fd, &st) != 0 || st.st_uid != geteuid()) {
		if (fd >= 0)
			close(fd);
		return true; /* there are no turns here */
	}
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &st) != 0 || !st.st_nlink) {
		close(fd);
		return false;
	}
	held[dev] = fd + 1;
	return true;
}

void ss_wake_turn_end(void)
{
	char path[SS_LIVE_PATH];

	for (int dev = 0; dev < ss_rocm_devices; dev++) {
		if (!held[dev])
			continue;
		if (path_of(dev, path, sizeof(path)))
			(void)unlink(path);
		close(held[dev] - 1);
		held[dev] = 0;
	}
}

static bool take_all(void)
{
	for (int dev = 0; dev < ss_rocm_devices; dev++)
		if (ss_rocm_uses_device(dev) && !take(dev)) {
			/* Two processes that each wait for what the other has would not wake. */
			ss_wake_turn_end();
			return false;
		}
	return true;
}

/* A wait in vain is not repeated before a turn was had. A process that is stopped with the turn
 * would otherwise slow down each attempt of others, which are counted (SOMASHIM_WAKE_WAIT_MS). */
void ss_wake_turn_begin(void)
{
	static int tries = TRIES;
	bool mine = take_all();

	for (int i = 0; !mine && i < tries; i++) {
		usleep(TRY_US);
		mine = take_all();
	}
	tries = mine ? TRIES : 0;
}
