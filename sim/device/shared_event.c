/* SPDX-License-Identifier: MIT */
/* Events that processes share. */
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "device/command.h"
#include "device/ipc.h"
#include "device/macros.h"
#include "device/shared_event.h"

struct sim_shared_event {
	_Atomic uint64_t recorded, done;
	int fd; /* of the creator */
};

static struct sim_shared_event *map_page(int fd)
{
	void *p = mmap(NULL, SIM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

struct sim_shared_event *sim_shared_event_new(void)
{
	int fd = memfd_create("somasim-event", MFD_CLOEXEC);
	struct sim_shared_event *ev;

	if (fd < 0)
		return NULL;
	ev = ftruncate(fd, (off_t)SIM_PAGE) ? NULL : map_page(fd);
	if (!ev) {
		close(fd);
		return NULL;
	}
	ev->fd = fd;
	return ev;
}

struct sim_shared_event *sim_shared_event_open(uint32_t pid, int fd)
{
	int peer = sim_open_peer_fd(pid, fd);
	struct sim_shared_event *ev;

	if (peer < 0)
		return NULL;
	ev = lseek(peer, 0, SEEK_END) == (off_t)SIM_PAGE ? map_page(peer) : NULL;
	close(peer);
	return ev;
}

int sim_shared_event_fd(const struct sim_shared_event *ev)
{
	return ev->fd;
}

uint64_t sim_shared_event_record(struct sim_shared_event *ev)
{
	return atomic_fetch_add(&ev->recorded, 1) + 1;
}

uint64_t sim_shared_event_recorded(struct sim_shared_event *ev)
{
	return atomic_load(&ev->recorded);
}

bool sim_shared_event_done(struct sim_shared_event *ev, uint64_t n)
{
	return atomic_load(&ev->done) >= n;
}

void sim_shared_event_wait(struct sim_shared_event *ev, uint64_t n)
{
	struct timespec ts = {0, 50000};

	while (!sim_shared_event_done(ev, n))
		nanosleep(&ts, NULL);
}

static void run_record(struct sim_command *c)
{
	atomic_store(&c->shared.event->done, c->shared.n);
}

static void run_wait(struct sim_command *c)
{
	sim_shared_event_wait(c->shared.event, c->shared.n);
}

struct sim_command *sim_shared_record_command(struct sim_shared_event *ev, uint64_t n)
{
	struct sim_command *c = sim_command_new(SIM_CMD_SHARED_RECORD, run_record);

	c->shared.event = ev;
	c->shared.n = n;
	return c;
}

struct sim_command *sim_shared_wait_command(struct sim_shared_event *ev, uint64_t n)
{
	struct sim_command *c = sim_command_new(SIM_CMD_SHARED_WAIT, run_wait);

	c->shared.event = ev;
	c->shared.n = n;
	return c;
}
