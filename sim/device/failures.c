/* SPDX-License-Identifier: MIT */
/*
 * The slow path of an exported call: it may start the device, stop and wait for a test to
 * let it go on, cost time, or fail.
 *
 * Locks: the calls lock guards changes of the lists of rules and costs, which are read
 * without it; hold.lock guards the stop. Nothing is taken inside either.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/calls.h"
#include "device/clock.h"
#include "device/failures.h"
#include "device/options.h"
#include "device/start.h"

/* Results of the two libraries; this layer includes neither's headers. */
enum {
	HIP_OUT_OF_MEMORY = 2,
	HIP_NOT_INITIALIZED = 3,
	HIP_NO_DEVICE = 100,
	HIP_UNKNOWN = 999,
	HSA_ERROR = 0x1000,
	HSA_OUT_OF_RESOURCES = 0x1008,
	HSA_NOT_INITIALIZED = 0x100b,
};

struct rule {
	char name[64];
	long nth, every; /* the nth call fails, or each every-th; 0 = unused */
	int code;
	int id;
	atomic_long seen;
	struct rule *next, *retired;
};

struct cost {
	char name[64];
	double us;
	int id;
	struct cost *next;
};

static struct rule *_Atomic rules, *retired;
static struct cost *_Atomic costs;

/* somasim_hold: the next thread that calls `id` waits here, before the call does anything
 * or when everything is done and it is about to return. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int id; /* -1: no thread will stop */
	bool at_end, waiting;
} hold = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, -1, false, false};

static bool is_hsa(int id)
{
	return id < SIM_HIP_FIRST;
}

static bool allocates(const char *n)
{
	return strstr(n, "Alloc") || strstr(n, "alloc") || strstr(n, "MemCreate") ||
	       strstr(n, "handle_create") || strstr(n, "memory_pool");
}

static int default_code(const char *n)
{
	if (!strncmp(n, "hsa", 3))
		return allocates(n) ? HSA_OUT_OF_RESOURCES : HSA_ERROR;
	return allocates(n) ? HIP_OUT_OF_MEMORY : HIP_UNKNOWN;
}

/* Caller holds hold.lock. */
static void wait_for_release(void)
{
	hold.waiting = true;
	while (hold.waiting)
		pthread_cond_wait(&hold.cond, &hold.lock);
}

static void hold_enter(struct sim_thread *t, int id)
{
	pthread_mutex_lock(&hold.lock);
	if (hold.id == id) {
		hold.id = -1;
		t->holds_at_end = hold.at_end;
		if (!hold.at_end)
			wait_for_release();
	}
	pthread_mutex_unlock(&hold.lock);
}

/* somasim_count_inside: threads in those calls now, and the most there were at once. */
static atomic_int inside, most_inside;

static void inside_enter(struct sim_thread *t)
{
	int now = atomic_fetch_add(&inside, 1) + 1, most = atomic_load(&most_inside);

	t->inside = true;
	while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now))
		;
}

void sim_leave_slow(struct sim_thread *t)
{
	if (t->holds_at_end) {
		t->holds_at_end = false;
		pthread_mutex_lock(&hold.lock);
		wait_for_release();
		pthread_mutex_unlock(&hold.lock);
	}
	if (t->inside) {
		t->inside = false;
		atomic_fetch_sub(&inside, 1);
	}
}

/* Sleeps where the scheduler is exact enough, and spins below that. */
static void spend(double us)
{
	uint64_t ns = (uint64_t)(us * 1e3), start = sim_now_ns();

	if (us >= 200) {
		struct timespec ts = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

		nanosleep(&ts, NULL);
		return;
	}
	while (sim_now_ns() - start < ns)
		;
}

void sim_enter_slow(struct sim_thread *t, int id)
{
	unsigned special = atomic_load(&sim_call_special[id]);

	if (special & SIM_CALL_DEAD) {
		t->verdict = is_hsa(id) ? HSA_NOT_INITIALIZED : HIP_NOT_INITIALIZED;
		return;
	}
	if (special & SIM_CALL_NO_DEVICE) {
		t->verdict = HIP_NO_DEVICE;
		return;
	}
	if (special & SIM_CALL_STARTS)
		sim_start();
	if (special & SIM_CALL_INSIDE)
		inside_enter(t);
	if (special & SIM_CALL_HOLDS)
		hold_enter(t, id);
	if (special & SIM_CALL_COSTS)
		for (struct cost *c = atomic_load(&costs); c; c = c->next)
			if (c->id == id)
				spend(c->us);
	if (special & SIM_CALL_FAILS)
		for (struct rule *r = atomic_load(&rules); r; r = r->next) {
			if (r->id != id)
				continue;
			long n = atomic_fetch_add(&r->seen, 1) + 1;

			if ((r->nth && n == r->nth) || (r->every && n % r->every == 0))
				t->verdict = r->code;
		}
}

/* Parses "hipMalloc:3,hipFree:%5=1,hipMemsetAsync:2=lost". Names that do not start
 * with prefix belong to the other library and are skipped. Caller holds the calls lock. */
static void add_rules(const char *spec, const char *prefix)
{
	while (spec && *spec) {
		size_t n = strcspn(spec, ",");
		char item[128], pct[2] = "";
		struct rule *r = calloc(1, sizeof *r);
		long num = 1;
		int code = 0, got;

		if (!r || n >= sizeof item) {
			free(r);
			return;
		}
		memcpy(item, spec, n);
		item[n] = 0;
		spec += n + (spec[n] == ',');
		got = sscanf(item, "%63[A-Za-z0-9_]:%1[%]%ld=%d", r->name, pct, &num, &code);
		if (got < 3)
			got = sscanf(item, "%63[A-Za-z0-9_]:%ld=%d", r->name, &num, &code);
		if (strncmp(r->name, prefix, strlen(prefix))) {
			free(r);
			continue;
		}
		if (num < 1)
			num = 1;
		if (pct[0] == '%')
			r->every = num;
		else
			r->nth = num;
		r->id = sim_call_id(r->name);
		r->code = strstr(item, "=lost") ? SIM_LOST : code ? code : default_code(r->name);
		if (r->id < 0) {
			fprintf(stderr, "somasim: cannot make %s fail: no such call\n", r->name);
			free(r);
			continue;
		}
		r->next = atomic_load(&rules);
		atomic_store(&rules, r);
		atomic_fetch_or(&sim_call_special[r->id], SIM_CALL_FAILS);
	}
}

/* Parses "hipMalloc:14,hipFree:20". Caller holds the calls lock. */
static void add_costs(const char *spec, const char *prefix)
{
	while (spec && *spec) {
		size_t n = strcspn(spec, ",");
		struct cost *c = calloc(1, sizeof *c);

		if (!c)
			return;
		if (sscanf(spec, "%63[A-Za-z0-9_]:%lf", c->name, &c->us) != 2 ||
		    strncmp(c->name, prefix, strlen(prefix)) ||
		    (c->id = sim_call_id(c->name)) < 0) {
			free(c);
		} else {
			c->next = atomic_load(&costs);
			atomic_store(&costs, c);
			atomic_fetch_or(&sim_call_special[c->id], SIM_CALL_COSTS);
		}
		spec += n + (spec[n] == ',');
	}
}

void sim_failures_apply(int first, int count, const char *prefix)
{
	sim_calls_lock();
	for (int i = first; i < first + count; i++) {
		if (sim_opt.no_device && !is_hsa(i))
			atomic_fetch_or(&sim_call_special[i], SIM_CALL_NO_DEVICE);
		if (!sim_started())
			atomic_fetch_or(&sim_call_special[i], SIM_CALL_STARTS);
	}
	add_rules(sim_opt.fail, prefix);
	add_costs(sim_opt.cost, prefix);
	sim_calls_unlock();
}

/* ---- test control, found by dlsym ---- */

void somasim_fail(const char *spec);
void somasim_fail_clear(void);
int somasim_hold(const char *name, int at_end);
int somasim_holds(void);
void somasim_let_go(void);
int somasim_count_inside(const char *name);
int somasim_most_inside(void);

void somasim_fail(const char *spec)
{
	sim_calls_lock();
	add_rules(spec, "h");
	sim_calls_unlock();
}

void somasim_fail_clear(void)
{
	sim_calls_lock();
	/* Another thread may be walking the list, so rules are unlinked but never freed. */
	for (struct rule *r = atomic_load(&rules); r; r = r->next) {
		atomic_fetch_and(&sim_call_special[r->id], (unsigned char)~SIM_CALL_FAILS);
		r->retired = retired;
		retired = r;
	}
	atomic_store(&rules, NULL);
	sim_calls_unlock();
}

int somasim_hold(const char *name, int at_end)
{
	int id = sim_call_id(name);

	if (id < 0)
		return -1;
	pthread_mutex_lock(&hold.lock);
	hold.id = id;
	hold.at_end = at_end;
	pthread_mutex_unlock(&hold.lock);
	atomic_fetch_or(&sim_call_special[id], SIM_CALL_HOLDS);
	return 0;
}

int somasim_holds(void)
{
	int waiting;

	pthread_mutex_lock(&hold.lock);
	waiting = hold.waiting;
	pthread_mutex_unlock(&hold.lock);
	return waiting;
}

void somasim_let_go(void)
{
	pthread_mutex_lock(&hold.lock);
	hold.id = -1;
	hold.waiting = false;
	pthread_cond_broadcast(&hold.cond);
	pthread_mutex_unlock(&hold.lock);
}

int somasim_count_inside(const char *name)
{
	int id = sim_call_id(name);

	if (id < 0)
		return -1;
	atomic_fetch_or(&sim_call_special[id], SIM_CALL_INSIDE);
	return 0;
}

int somasim_most_inside(void)
{
	return atomic_load(&most_inside);
}
