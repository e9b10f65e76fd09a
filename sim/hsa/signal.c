/* SPDX-License-Identifier: MIT */
/*
 * HSA signals: amd_signal_t in memory that the device can reach, the value
 * word 8 bytes after the handle, as on the real runtime.
 *
 * Locks: signal_lock (free list).
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hsa_sim.h"

#define SLAB (256 * 1024)

struct signal {
	int64_t kind;             /* 1 = user signal; 0 when free */
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

	s->kind = 0;
	pthread_mutex_lock(&signal_lock);
	s->next = free_signals;
	free_signals = s;
	pthread_mutex_unlock(&signal_lock);
}

/* ---- the HSA calls ---- */

hsa_status_t i_hsa_signal_create(hsa_signal_value_t v, uint32_t n, const hsa_agent_t *c, hsa_signal_t *out)
{
	if (!out)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	out->handle = sim_signal_new(v);
	return out->handle ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

hsa_status_t i_hsa_amd_signal_create(hsa_signal_value_t v, uint32_t n, const hsa_agent_t *c,
				     uint64_t attributes, hsa_signal_t *out)
{
	return i_hsa_signal_create(v, n, c, out);
}

hsa_status_t i_hsa_signal_destroy(hsa_signal_t s)
{
	if (!s.handle)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (get(s.handle)->kind != 1)
		return HSA_STATUS_ERROR_INVALID_SIGNAL;
	sim_signal_free(s.handle);
	return HSA_STATUS_SUCCESS;
}

hsa_status_t i_hsa_amd_signal_value_pointer(hsa_signal_t s, volatile hsa_signal_value_t **p)
{
	if (!s.handle || !p)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	*p = sim_signal_value(s.handle);
	return HSA_STATUS_SUCCESS;
}

static bool holds(int64_t v, hsa_signal_condition_t c, int64_t ref)
{
	switch (c) {
	case HSA_SIGNAL_CONDITION_EQ: return v == ref;
	case HSA_SIGNAL_CONDITION_NE: return v != ref;
	case HSA_SIGNAL_CONDITION_LT: return v < ref;
	case HSA_SIGNAL_CONDITION_GTE: return v >= ref;
	}
	return false;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Values change through plain memory writes, so waiting is polling. */
static void pause_for(unsigned round)
{
	struct timespec ts = { 0, round < 200 ? 20000 : 200000 };

	if (round < 16)
		sched_yield();
	else
		nanosleep(&ts, NULL);
}

int64_t sim_signal_wait(hsa_signal_t s, hsa_signal_condition_t c, int64_t ref, uint64_t timeout)
{
	struct signal *g = get(s.handle);
	uint64_t start = now_ns();
	int64_t v;

	for (unsigned round = 0;; round++) {
		v = atomic_load(&g->value);
		if (holds(v, c, ref))
			return v;
		if (timeout != UINT64_MAX && now_ns() - start >= timeout)
			return v;
		pause_for(round);
	}
}

uint32_t sim_signal_wait_many(uint32_t n, hsa_signal_t *s, hsa_signal_condition_t *c,
			      hsa_signal_value_t *ref, uint64_t timeout, bool all,
			      hsa_signal_value_t *out)
{
	uint64_t start = now_ns();

	for (unsigned round = 0;; round++) {
		uint32_t met = 0;

		for (uint32_t i = 0; i < n; i++) {
			int64_t v = atomic_load(&get(s[i].handle)->value);

			if (!holds(v, c[i], ref[i]))
				continue;
			met++;
			if (!all) {
				if (out)
					*out = v;
				return i;
			}
			if (out)
				out[i] = v;
		}
		if (all && met == n)
			return 0;
		if (timeout != UINT64_MAX && now_ns() - start >= timeout)
			return UINT32_MAX;
		pause_for(round);
	}
}

int64_t sim_signal_op(hsa_signal_t s, enum sim_signal_op op, int64_t v, int64_t expected)
{
	_Atomic int64_t *p = &get(s.handle)->value;

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
