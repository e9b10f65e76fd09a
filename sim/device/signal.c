/* SPDX-License-Identifier: MIT */
/*
 * Signals and waiting for them.
 *
 * Locks: signal_lock guards the list of free signals. The address map's lock is taken inside.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include "device/arena.h"
#include "device/clock.h"
#include "device/signal.h"

#define SLAB (256 * 1024)

struct signal {
	int64_t kind; /* 1: a live signal, 0: free */
	_Atomic int64_t value;
	struct signal *next;
	uint64_t pad[5];
};
_Static_assert(sizeof(struct signal) == 64, "amd_signal_t is 64 bytes");

static pthread_mutex_t signal_lock = PTHREAD_MUTEX_INITIALIZER;
static struct signal *free_signals;

uint64_t sim_signal_new(int64_t value)
{
	struct signal *s;

	pthread_mutex_lock(&signal_lock);
	if (!free_signals) {
		char *slab = sim_host_alloc(SLAB, 0, SIM_SIGNAL, -1);

		for (size_t i = 0; slab && i < SLAB / sizeof *s; i++) {
			s = (struct signal *)(slab + i * sizeof *s);
			s->next = free_signals;
			free_signals = s;
		}
	}
	s = free_signals;
	if (s)
		free_signals = s->next;
	pthread_mutex_unlock(&signal_lock);
	if (!s)
		return 0;
	s->kind = 1;
	atomic_store(&s->value, value);
	return (uint64_t)(uintptr_t)s;
}

static struct signal *get(uint64_t handle)
{
	return (struct signal *)(uintptr_t)handle;
}

void *sim_signal_value(uint64_t handle)
{
	return &get(handle)->value;
}

void sim_signal_free(uint64_t handle)
{
	struct signal *s = get(handle);

	pthread_mutex_lock(&signal_lock);
	s->kind = 0;
	s->next = free_signals;
	free_signals = s;
	pthread_mutex_unlock(&signal_lock);
}

bool sim_signal_is_live(uint64_t handle)
{
	return get(handle)->kind == 1;
}

bool sim_signal_holds(uint64_t handle, enum sim_condition c, int64_t ref, int64_t *out)
{
	int64_t v = atomic_load(&get(handle)->value);

	*out = v;
	switch (c) {
	case SIM_EQUAL: return v == ref;
	case SIM_NOT_EQUAL: return v != ref;
	case SIM_LESS: return v < ref;
	case SIM_NOT_LESS: return v >= ref;
	}
	return false;
}

/* Plain memory writes change values, so a wait has to poll. */
void sim_signal_pause(unsigned round)
{
	struct timespec ts = {0, round < 200 ? 20000 : 200000};

	if (round < 16)
		sched_yield();
	else
		nanosleep(&ts, NULL);
}

int64_t sim_signal_wait(uint64_t handle, enum sim_condition c, int64_t ref, uint64_t timeout)
{
	uint64_t start = sim_now_ns();
	int64_t v;

	for (unsigned round = 0;; round++) {
		if (sim_signal_holds(handle, c, ref, &v))
			return v;
		if (timeout != UINT64_MAX && sim_now_ns() - start >= timeout)
			return v;
		sim_signal_pause(round);
	}
}

int64_t sim_signal_op(uint64_t handle, enum sim_signal_op op, int64_t v, int64_t expected)
{
	_Atomic int64_t *p = &get(handle)->value;

	switch (op) {
	case SIG_LOAD: return atomic_load(p);
	case SIG_STORE: atomic_store(p, v); return 0;
	case SIG_ADD: return atomic_fetch_add(p, v);
	case SIG_SUB: return atomic_fetch_sub(p, v);
	case SIG_AND: return atomic_fetch_and(p, v);
	case SIG_OR: return atomic_fetch_or(p, v);
	case SIG_XOR: return atomic_fetch_xor(p, v);
	case SIG_XCHG: return atomic_exchange(p, v);
	case SIG_CAS: atomic_compare_exchange_strong(p, &expected, v); return expected;
	}
	return 0;
}
