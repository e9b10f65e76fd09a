/* SPDX-License-Identifier: MIT */
/*
 * Every exported call passes here: counted per thread, delayed by its
 * configured cost, or made to fail.
 *
 * Locks: calls_lock (thread list, rule list); hold.lock. Nothing is taken inside.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/sim.h"

enum { S_FAIL = 1, S_COST = 2, S_DEAD = 4, S_NODEV = 8, S_HOLD = 16 };

struct rule {
	char name[64];
	long nth, every;
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

__thread struct sim_thread *sim_tls __attribute__((tls_model("initial-exec")));
_Atomic unsigned char sim_special[SIM_MAX_CALLS];
_Atomic int sim_dead;
void (*_Atomic sim_thread_gone)(struct sim_thread *t);

static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_thread threads = { .next = &threads, .prev = &threads };
static uint64_t gone[SIM_MAX_CALLS];
static const char *names[SIM_MAX_CALLS];
static struct rule *_Atomic rules, *retired;
static struct cost *_Atomic costs;
static pthread_key_t key;

/* The next thread that calls `id` stops: before the call does anything, or when it
 * has done everything but return. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int id; /* -1: nobody will */
	bool at_end, standing;
} hold = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, -1, false, false };

static void thread_exit(void *arg)
{
	struct sim_thread *t = arg;
	void (*tell)(struct sim_thread *) = atomic_load(&sim_thread_gone);

	if (tell)
		tell(t);
	pthread_mutex_lock(&calls_lock);
	for (int i = 0; i < SIM_MAX_CALLS; i++)
		gone[i] += atomic_load_explicit(&t->counts[i], memory_order_relaxed);
	t->next->prev = t->prev;
	t->prev->next = t->next;
	pthread_mutex_unlock(&calls_lock);
	sim_tls = NULL;
	free(t);
}

struct sim_thread *sim_thread_new(void)
{
	struct sim_thread *t = calloc(1, sizeof *t);

	if (!t)
		abort();
	pthread_mutex_lock(&calls_lock);
	t->next = threads.next;
	t->prev = &threads;
	t->next->prev = t;
	threads.next = t;
	pthread_mutex_unlock(&calls_lock);
	sim_tls = t;
	pthread_setspecific(key, t);
	return t;
}

static bool allocates(const char *n)
{
	return strstr(n, "Alloc") || strstr(n, "alloc") || strstr(n, "MemCreate") ||
	       strstr(n, "handle_create") || strstr(n, "memory_pool");
}

static int default_code(const char *n)
{
	if (!strncmp(n, "hsa", 3))
		return allocates(n) ? 0x1008 : 0x1000;
	return allocates(n) ? 2 : 999;
}

/* hold.lock held. */
static void stand(void)
{
	hold.standing = true;
	while (hold.standing)
		pthread_cond_wait(&hold.cond, &hold.lock);
}

static void hold_enter(struct sim_thread *t, int id)
{
	pthread_mutex_lock(&hold.lock);
	if (hold.id == id) {
		hold.id = -1;
		t->stops = hold.at_end;
		if (!hold.at_end)
			stand();
	}
	pthread_mutex_unlock(&hold.lock);
}

void sim_leave_slow(struct sim_thread *t)
{
	t->stops = false;
	pthread_mutex_lock(&hold.lock);
	stand();
	pthread_mutex_unlock(&hold.lock);
}

void sim_enter_slow(struct sim_thread *t, int id)
{
	unsigned s = atomic_load(&sim_special[id]);
	bool hsa = id < SIM_HIP_FIRST;

	if (s & S_DEAD) {
		t->verdict = hsa ? 0x100b : 3;
		return;
	}
	if (s & S_NODEV) {
		t->verdict = 100;
		return;
	}
	if (s & S_HOLD)
		hold_enter(t, id);
	if (s & S_COST)
		for (struct cost *c = atomic_load(&costs); c; c = c->next)
			if (c->id == id) {
				struct timespec a, b;

				if (c->us >= 200) {
					b.tv_sec = (time_t)(c->us / 1e6);
					b.tv_nsec = (long)((c->us - (double)b.tv_sec * 1e6) * 1e3);
					nanosleep(&b, NULL);
					continue;
				}
				clock_gettime(CLOCK_MONOTONIC, &a);
				do {
					clock_gettime(CLOCK_MONOTONIC, &b);
				} while ((double)(b.tv_sec - a.tv_sec) * 1e6 +
					 (double)(b.tv_nsec - a.tv_nsec) / 1e3 < c->us);
			}
	if (s & S_FAIL)
		for (struct rule *r = atomic_load(&rules); r; r = r->next) {
			if (r->id != id)
				continue;
			long n = atomic_fetch_add(&r->seen, 1) + 1;

			if ((r->nth && n == r->nth) || (r->every && n % r->every == 0))
				t->verdict = r->code;
		}
}

int sim_call_id(const char *name)
{
	for (int i = 0; i < SIM_MAX_CALLS; i++)
		if (names[i] && !strcmp(names[i], name))
			return i;
	return -1;
}

/* "hipMalloc:3,hipFree:%5=1,hsa_amd_memory_pool_allocate:1" */
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
		r->code = code ? code : default_code(r->name);
		if (r->id < 0) {
			fprintf(stderr, "somasim: cannot make %s fail: no such call\n", r->name);
			free(r);
			continue;
		}
		r->next = atomic_load(&rules);
		atomic_store(&rules, r);
		atomic_fetch_or(&sim_special[r->id], S_FAIL);
	}
}

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
			atomic_fetch_or(&sim_special[c->id], S_COST);
		}
		spec += n + (spec[n] == ',');
	}
}

void sim_register_names(int first, const char *const *list, int count)
{
	const char *prefix = first == SIM_HIP_FIRST ? "hip" : "hsa";

	pthread_mutex_lock(&calls_lock);
	for (int i = 0; i < count; i++) {
		names[first + i] = list[i];
		if (sim_opt.no_device && first == SIM_HIP_FIRST)
			atomic_fetch_or(&sim_special[first + i], S_NODEV);
	}
	add_rules(sim_opt.fail, prefix);
	add_costs(sim_opt.cost, prefix);
	pthread_mutex_unlock(&calls_lock);
}

static uint64_t count_of(int id)
{
	uint64_t n = gone[id];

	for (struct sim_thread *t = threads.next; t != &threads; t = t->next)
		n += atomic_load_explicit(&t->counts[id], memory_order_relaxed);
	return n;
}

/* ---- test control, found by dlsym ---- */

#pragma GCC visibility push(default)
uint64_t somasim_call_count(const char *name);
uint64_t somasim_total_calls(void);
void somasim_fail(const char *spec);
void somasim_fail_clear(void);
uint64_t somasim_device_free_bytes(int device);
int somasim_hold(const char *name, int at_end);
int somasim_holds(void);
void somasim_let_go(void);
#pragma GCC visibility pop

uint64_t somasim_call_count(const char *name)
{
	uint64_t n = 0;
	int id;

	pthread_mutex_lock(&calls_lock);
	id = sim_call_id(name);
	if (id >= 0)
		n = count_of(id);
	pthread_mutex_unlock(&calls_lock);
	return n;
}

uint64_t somasim_total_calls(void)
{
	uint64_t n = 0;

	pthread_mutex_lock(&calls_lock);
	for (int i = 0; i < SIM_MAX_CALLS; i++)
		n += count_of(i);
	pthread_mutex_unlock(&calls_lock);
	return n;
}

void somasim_fail(const char *spec)
{
	pthread_mutex_lock(&calls_lock);
	add_rules(spec, "h");
	pthread_mutex_unlock(&calls_lock);
}

void somasim_fail_clear(void)
{
	pthread_mutex_lock(&calls_lock);
	/* Other threads may be walking the list: rules are disarmed, not freed. */
	for (struct rule *r = atomic_load(&rules); r; r = r->next) {
		atomic_fetch_and(&sim_special[r->id], (unsigned char)~S_FAIL);
		r->retired = retired;
		retired = r;
	}
	atomic_store(&rules, NULL);
	pthread_mutex_unlock(&calls_lock);
}

uint64_t somasim_device_free_bytes(int device)
{
	if (device < 0 || device >= sim_opt.devices)
		return 0;
	sim_ipc_sweep(device);
	return sim_free_bytes(device);
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
	atomic_fetch_or(&sim_special[id], S_HOLD);
	return 0;
}

int somasim_holds(void)
{
	int yes;

	pthread_mutex_lock(&hold.lock);
	yes = hold.standing;
	pthread_mutex_unlock(&hold.lock);
	return yes;
}

void somasim_let_go(void)
{
	pthread_mutex_lock(&hold.lock);
	hold.id = -1;
	hold.standing = false;
	pthread_cond_broadcast(&hold.cond);
	pthread_mutex_unlock(&hold.lock);
}

/* A forked child has none of the worker threads: every call says so. */
static void in_child(void)
{
	atomic_store(&sim_dead, 1);
	for (int i = 0; i < SIM_MAX_CALLS; i++)
		atomic_store(&sim_special[i], S_DEAD);
}

__attribute__((constructor(102))) static void calls_init(void)
{
	pthread_key_create(&key, thread_exit);
	pthread_atfork(NULL, NULL, in_child);
}
