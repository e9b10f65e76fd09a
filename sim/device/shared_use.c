/* SPDX-License-Identifier: MIT */
/*
 * The file that counts the device memory of several processes. Each process has a slot, and holds a
 * record lock on that slot's byte for as long as it lives: the kernel drops the lock when it ends.
 *
 * Locks: shared_lock, and inside it a record lock on the whole table. Leaf.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/arena.h"
#include "device/options.h"
#include "device/shared_use.h"

#define SLOTS 64
#define TABLE (1 << 20) /* the byte whose lock is the table's */

struct slot {
	_Atomic uint64_t taken;
	_Atomic uint64_t used[SIM_MAX_DEVICES];
};

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *table; /* NULL: nothing is shared */
static int fd = -1;        /* never closed, because that drops the locks */
static int mine = -1;

static bool record_lock(int command, off_t at, short type)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
	int err;

	do {
		err = fcntl(fd, command, &l);
	} while (err && errno == EINTR);
	return !err && (command != F_GETLK || l.l_type == F_UNLCK);
}

static void enter(void)
{
	pthread_mutex_lock(&shared_lock);
	(void)record_lock(F_SETLKW, TABLE, F_WRLCK);
}

static void leave(void)
{
	(void)record_lock(F_SETLK, TABLE, F_UNLCK);
	pthread_mutex_unlock(&shared_lock);
}

/* Slots of processes that have ended are free again. */
static void sweep(void)
{
	for (int i = 0; i < SLOTS; i++)
		if (i != mine && atomic_load(&table[i].taken) && record_lock(F_GETLK, i, F_WRLCK)) {
			for (int d = 0; d < SIM_MAX_DEVICES; d++)
				atomic_store(&table[i].used[d], 0);
			atomic_store(&table[i].taken, 0);
		}
}

static bool take_slot(void)
{
	sweep();
	for (int i = 0; i < SLOTS; i++)
		if (!atomic_load(&table[i].taken) && record_lock(F_SETLK, i, F_WRLCK)) {
			atomic_store(&table[i].taken, 1);
			mine = i;
			return true;
		}
	errno = EUSERS;
	return false;
}

static bool open_table(void)
{
	void *p;

	/* A high number: sim_high_fd() closes the first descriptor before any lock is taken. */
	fd = sim_high_fd(open(sim_opt.shared, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	if (fd < 0 || ftruncate(fd, SLOTS * sizeof(*table)))
		return false;
	p = mmap(NULL, SLOTS * sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return false;
	table = p;
	return true;
}

bool sim_shared_init(void)
{
	bool ok;

	if (!sim_opt.shared)
		return true;
	if (!open_table()) {
		perror("somasim: SOMASIM_SHARED");
		return false;
	}
	enter();
	ok = take_slot();
	leave();
	if (!ok)
		perror("somasim: SOMASIM_SHARED");
	for (int d = 0; ok && d < SIM_MAX_DEVICES; d++)
		sim_devices[d].used = &table[mine].used[d];
	return ok;
}

uint64_t sim_shared_begin(int device)
{
	uint64_t others = 0;

	if (mine < 0)
		return 0;
	enter();
	sweep();
	for (int i = 0; i < SLOTS; i++)
		if (i != mine)
			others += atomic_load(&table[i].used[device]);
	return others;
}

void sim_shared_end(void)
{
	if (mine >= 0)
		leave();
}
