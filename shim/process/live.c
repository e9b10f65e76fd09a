/* SPDX-License-Identifier: MIT */
/*
 * The live page of the process and its file of metrics. One thread at a time updates them, in a
 * call of the application; other threads skip the update.
 *
 * Locks: none. `busy` marks the updating thread, and no thread waits for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/sink.h"
#include "driver/rocm/rocm.h"
#include "live/directory.h"
#include "live/metrics.h"
#include "live/writer.h"
#include "shim/process/dump.h"
#include "shim/process/kernel_sample.h"
#include "shim/process/live.h"
#include "shim/process/log.h"
#include "shim/process/real.h"
#include "shim/process/service.h"
#include "trace/cut_guard.h"
#include "trace/file_name.h"
#include "trace/process_job.h"
#include "core/statistics.h"

/* Updates of the page take at most one part in COST_SHARE of the program's time, within the two
 * limits below on the time between updates. The upper limit exists because a slow update may just
 * have been preempted. */
#define COST_SHARE 500
#define PAGE_NS 1000000u
#define PAGE_MOST_NS 100000000u
/* Shortest time between two writes; they are read every 15 s or so */
#define METRICS_NS 5000000000u

_Atomic uint64_t ss_live_due = SS_LIVE_NEVER;
struct ss_live_page *_Atomic ss_live_shown;

#define COLLECT_TRIES 1000

/* The pools grew, or an allocation failed, since the page's figures were taken */
static atomic_bool grew;
static atomic_bool busy; /* guards the rest */
static struct ss_live_identity who;
static struct ss_live_figures figures;
static char metrics[1024];                       /* path; "": none are written */
static struct ss_sink metrics_held = {.fd = -1}; /* the file there, locked: the name is ours */
static unsigned metrics_number;                  /* number in the name */
static uint64_t metrics_due;                     /* CLOCK_MONOTONIC */
static uint64_t clock_start, ns_start;           /* one moment on both clocks */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- who the process is -------------------------------------------------- */

static void copy(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%.*s", (int)(size - 1), from ? from : "");
}
#define COPY(to, from) copy(to, sizeof(to), from)

static int32_t number(const char *text)
{
	char *end;
	long n = text ? strtol(text, &end, 10) : -1;

	return !text || end == text || *end || n < 0 || n > INT32_MAX ? -1 : (int32_t)n;
}

/* "" if the file cannot be read. */
static void read_file(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, out, size - 1);

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
}

/* Kubernetes names the control group of a container after its pod: .../pod1b2c.../..., with - or _
 * in the uid. */
static void find_pod(void)
{
	static char text[4096];
	const size_t length = 36;
	char *p = text;

	read_file("/proc/self/cgroup", text, sizeof(text));
	while ((p = strstr(p, "pod"))) {
		p += 3;
		if (strspn(p, "0123456789abcdef-_") != length || (p[8] != '-' && p[8] != '_'))
			continue;
		for (size_t i = 0; i < length; i++)
			who.pod[i] = p[i] == '_' ? '-' : p[i];
		return;
	}
}

static void identify(void)
{
	struct ss_process_job job;

	who.started_ns = clock_ns(CLOCK_REALTIME);
	who.pid = (uint32_t)getpid();
	who.rank = who.ranks = who.local_rank = -1;
	if (ss_process_job(&job)) {
		COPY(who.launcher, job.launcher);
		COPY(who.job, job.job);
		who.rank = number(job.rank);
		who.ranks = number(job.ranks);
		who.local_rank = number(job.local_rank);
	}
	read_file("/proc/self/comm", who.command, sizeof(who.command));
	who.command[strcspn(who.command, "\n")] = '\0';
	gethostname(who.host, sizeof(who.host) - 1);
	COPY(who.version, SOMASHIM_VERSION);
	(void)!readlink("/proc/self/exe", who.executable, sizeof(who.executable) - 1);
	find_pod();
}

/* ---- figures --------------------------------------------------------------- */

static void set_counts(struct ss_live_counts *to, const struct ss_pool_stats *s)
{
	*to = (struct ss_live_counts){s->allocations, s->frees, s->misses, s->out_of_memory};
}

static void add_device(const struct ss_device_stats *s, void *arg)
{
	struct ss_live_device *d = &figures.device[figures.device_count];

	if (figures.device_count == SS_LIVE_DEVICES)
		return;
	figures.device_count++;
	memset(d, 0, sizeof(*d));
	d->ordinal = (uint32_t)s->device;
	d->ended_pools = (uint32_t)s->ended_count;
	set_counts(&d->ended, s->ended);
	COPY(d->pci, ss_rocm_pci(s->device));
	COPY(d->name, s->name);
	d->total = s->total_bytes;
	d->limit = s->limit;
}

static void add_pool(const struct ss_pool_stats *s, void *arg)
{
	struct ss_live_device *d = figures.device, *end = d + figures.device_count;
	struct ss_live_pool *p = &figures.pool[figures.pool_count];

	for (; d < end; d++)
		if (d->ordinal == (uint32_t)s->device) {
			d->used += s->used;
			d->reserved += s->reserved;
			d->in_flight += s->in_flight;
		}
	if (figures.pool_count == SS_LIVE_POOLS) {
		figures.pools_left_out++;
		return;
	}
	figures.pool_count++;
	memset(p, 0, sizeof(*p));
	p->device = (uint32_t)s->device;
	COPY(p->name, s->kind);
	COPY(p->backing, s->backing);
	p->used = s->used;
	p->used_high = s->used_high;
	p->reserved = s->reserved;
	p->reserved_high = s->reserved_high;
	p->in_flight = s->in_flight;
	set_counts(&p->counts, s);
	figures.driver_calls = s->driver_calls;
	figures.driver_ns = s->driver_ns;
	figures.fences = s->fences;
}

/* False: another thread holds a lock of the core. */
static bool collect(void)
{
	static const struct ss_stats_visitor visitor = {add_device, add_pool};

	figures.device_count = figures.pool_count = figures.pools_left_out = 0;
	if (!ss_stats_try(ss_core, &visitor, NULL))
		return false;
	figures.updated_ns = clock_ns(CLOCK_BOOTTIME);
	figures.host_bytes = ss_host_bytes(ss_core);
	return true;
}

/* ---- showing them ------------------------------------------------------------ */

/* The first failure ends it: the reason will not go away. */
static void write_metrics(bool ended)
{
	uint64_t t0 = clock_ns(CLOCK_MONOTONIC), cost;
	int fd = ss_metrics_write(metrics, metrics_number, &who, &figures, ended);

	if (fd < 0) {
		ss_shim_log("cannot write SOMASHIM_METRICS %s: %s", metrics, strerror(errno));
		metrics[0] = '\0';
	}
	ss_sink_close(&metrics_held);
	if (fd >= 0)
		ss_sink_borrow(&metrics_held, ss_file_move_up(fd));
	cost = (clock_ns(CLOCK_MONOTONIC) - t0) * COST_SHARE;
	metrics_due = t0 + (cost > METRICS_NS ? cost : METRICS_NS);
}

static void answer_dump(struct ss_live_page *page, uint32_t wanted)
{
	int fd = ss_live_dump_open();

	atomic_store(&page->dump_error,
		     fd < 0 ? (uint32_t)errno : (uint32_t)ss_dump_write(fd, &who));
	atomic_store_explicit(&page->dump_done, wanted, memory_order_release);
}

/* Makes the page due at `ns`, converted to ss_live_clock(). */
static void set_due(uint64_t ns)
{
	uint64_t now = ss_live_clock(), ticks = now - clock_start,
		 elapsed = clock_ns(CLOCK_MONOTONIC) - ns_start;

	/* Too early to know the rate of the counter. No processor's is above 5 GHz. */
	if (elapsed < 1000000)
		ticks = 3 * (elapsed = 1000000);
	atomic_store_explicit(&ss_live_due,
			      now + (uint64_t)((unsigned __int128)ns * ticks / elapsed),
			      memory_order_relaxed);
}

static void update(void)
{
	struct ss_live_page *page = atomic_load(&ss_live_shown);
	uint32_t refresh = page ? atomic_load(&page->refresh_wanted) : 0;
	uint32_t dump = page ? atomic_load(&page->dump_wanted) : 0;
	uint64_t t0 = clock_ns(CLOCK_MONOTONIC), cost;
	bool must = atomic_exchange(&grew, false), collected = collect();

	/* Try again: the locks are held for moments only, and the program may be killed before its
	 * next call. */
	for (int i = 0; must && !collected && i < COLLECT_TRIES; i++) {
		sched_yield();
		collected = collect();
	}
	if (collected) {
		ss_kernel_sample(&figures, must);
		t0 = clock_ns(CLOCK_MONOTONIC); /* it has a share of its own */
		if (page) {
			ss_live_publish(page, &figures);
			atomic_store_explicit(&page->refresh_done, refresh, memory_order_release);
		}
		cost = (clock_ns(CLOCK_MONOTONIC) - t0) * COST_SHARE;
		set_due(cost < PAGE_NS ? PAGE_NS : cost < PAGE_MOST_NS ? cost : PAGE_MOST_NS);
		if (metrics[0] && t0 >= metrics_due)
			write_metrics(false);
	} else {
		set_due(must ? 0 : PAGE_NS);
	}
	if (page && dump != atomic_load(&page->dump_done))
		answer_dump(page, dump);
}

void ss_live_serve(void)
{
	int saved = errno;

	/* Repeat for a thread whose pool grew meanwhile, and which skipped its update. */
	do {
		if (atomic_exchange(&busy, true))
			break;
		SS_UNCANCELLED; /* the page may be due before a call is served */
		if ((uint32_t)getpid() == who.pid)
			update();
		else
			ss_live_forked(false); /* by a fork that libc does not know of */
		atomic_store(&busy, false);
	} while (atomic_load(&grew));
	errno = saved;
}

void ss_live_grew(void)
{
	if (!atomic_load(&ss_live_shown))
		return;
	atomic_store(&grew, true);
	ss_live_serve();
}

/* ---- start and end -------------------------------------------------------------- */

static void hold_metrics(void)
{
	int fd = ss_file_hold(ss_options.metrics, metrics, sizeof(metrics), &metrics_number);

	if (fd < 0) {
		ss_shim_log("cannot write SOMASHIM_METRICS %s: %s", ss_options.metrics,
			    errno == ENODEV ? "it is no regular file" : strerror(errno));
		metrics[0] = '\0';
		return;
	}
	ss_sink_borrow(&metrics_held, ss_file_move_up(fd));
	if (metrics_number > 1)
		ss_shim_log(
			"SOMASHIM_METRICS: another process has this name, so the figures are in %s",
			metrics);
}

void ss_live_start(void)
{
	struct ss_live_page *page = NULL;
	bool wanted = ss_live_enabled(ss_options.live);

	identify();
	if (wanted) {
		page = ss_live_create(ss_options.live, &who);
		/* If only the default directory, /dev/shm, is missing, the user did not ask for a
		 * page. */
		if (!page &&
		    (ss_options.verbose || strcmp(ss_options.live, SS_LIVE_DIRECTORY) != 0))
			ss_shim_log("no page for somashim top in SOMASHIM_LIVE %s: %s",
				    ss_options.live, strerror(errno));
		if (page)
			ss_cut_guard_mapping(page, SS_LIVE_BYTES);
	}
	if (ss_options.metrics[0])
		hold_metrics();
	clock_start = ss_live_clock();
	ns_start = clock_ns(CLOCK_MONOTONIC);
	atomic_store_explicit(&ss_live_shown, page, memory_order_release);
	if (page || metrics[0])
		atomic_store(&ss_live_due, 0);
}

void ss_live_end(void)
{
	if (atomic_load(&ss_live_due) == SS_LIVE_NEVER || (uint32_t)getpid() != who.pid)
		return;
	/* A thread that is in the middle of an update may have been stopped for ever by exit(). */
	for (int i = 0; i < 1000 && atomic_exchange(&busy, true); i++)
		usleep(1000);
	atomic_store(&ss_live_due, SS_LIVE_NEVER);
	if (metrics[0] && collect())
		write_metrics(true);
	ss_live_remove();
}

void ss_live_forked(bool alone)
{
	struct ss_live_page *page = atomic_exchange(&ss_live_shown, NULL);

	atomic_store(&ss_live_due, SS_LIVE_NEVER);
	if (page && alone) {
		ss_cut_guard_end(page);
		ss_live_leave(page);
	}
	/* Otherwise the name would stay ours as long as the child runs */
	ss_sink_close(&metrics_held);
	atomic_store(&grew, false);
	atomic_store(&busy, false);
}
