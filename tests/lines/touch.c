/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "tests/lines/touch.h"

#define LINES (1u << 16)
#define SHIFT 7

static struct note {
	uintptr_t line;
	uint32_t reads, writes;
} notes[2][LINES];
static __thread struct note *mine;

static struct note *find(struct note *of, uintptr_t line)
{
	size_t i = (line * 0x9e3779b97f4a7c15ull) >> 48;

	while (of[i].line && of[i].line != line)
		i = (i + 1) % LINES;
	return &of[i];
}

static void touch(const volatile void *p, bool write)
{
	struct note *n;

	if (!mine)
		return;
	n = find(mine, (uintptr_t)p >> SHIFT);
	n->line = (uintptr_t)p >> SHIFT;
	n->reads += !write;
	n->writes += write;
}

void touch_begin(int who)
{
	mine = notes[who];
}
void touch_end(void)
{
	mine = NULL;
}
void touch_reset(void)
{
	memset(notes, 0, sizeof(notes));
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t touch_shared(void (*each)(const struct touched *t))
{
	uint64_t sum = 0;

	for (size_t i = 0; i < LINES; i++) {
		const struct note *a = &notes[0][i], *b;

		if (!a->line)
			continue;
		b = find(notes[1], a->line);
		if (!b->line || !(a->writes + b->writes))
			continue;
		each(&(struct touched){
			a->line << SHIFT, {a->reads, b->reads}, {a->writes, b->writes}});
		sum += least(a->writes, b->reads + b->writes) +
		       least(b->writes, a->reads + a->writes);
	}
	return sum;
}

/* A mutex is written by whoever takes it, in code that is not compiled so. */
int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	touch(m, true);
	return __real_pthread_mutex_lock(m);
}

int __real_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m)
{
	touch(m, true);
	return __real_pthread_mutex_trylock(m);
}

/* ---- what the compiler calls -------------------------------------------- */

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

void __tsan_init(void)
{
}
void __tsan_func_entry(void *pc)
{
}
void __tsan_func_exit(void)
{
}
void __tsan_read_range(void *p, long n)
{
	touch(p, false);
}
void __tsan_write_range(void *p, long n)
{
	touch(p, true);
}
void __tsan_atomic_thread_fence(int order)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int order)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#define PLAIN(kind, size) \
	void __tsan_##kind##read##size(void *p) { touch(p, false); } \
	void __tsan_##kind##write##size(void *p) { touch(p, true); }
#define SIZES(kind) PLAIN(kind, 1) PLAIN(kind, 2) PLAIN(kind, 4) PLAIN(kind, 8) PLAIN(kind, 16)
SIZES()
SIZES(unaligned_)
SIZES(volatile_)
SIZES(unaligned_volatile_)

#define CHANGE(bits, op) \
	uint##bits##_t __tsan_atomic##bits##_##op(volatile uint##bits##_t *p, \
						  uint##bits##_t v, int order) \
	{ \
		touch(p, true); \
		return __atomic_##op(p, v, __ATOMIC_SEQ_CST); \
	}
#define EXCHANGE(bits, how) \
	int __tsan_atomic##bits##_compare_exchange_##how(volatile uint##bits##_t *p, \
			uint##bits##_t *old, uint##bits##_t v, int order, int failed) \
	{ \
		touch(p, true); \
		return __atomic_compare_exchange_n(p, old, v, false, __ATOMIC_SEQ_CST, \
						   __ATOMIC_SEQ_CST); \
	}
#define ATOMIC(bits) \
	uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *p, int order) \
	{ \
		touch(p, false); \
		return __atomic_load_n(p, __ATOMIC_SEQ_CST); \
	} \
	void __tsan_atomic##bits##_store(volatile uint##bits##_t *p, uint##bits##_t v, int order) \
	{ \
		touch(p, true); \
		__atomic_store_n(p, v, __ATOMIC_SEQ_CST); \
	} \
	uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t *p, \
						      uint##bits##_t v, int order) \
	{ \
		touch(p, true); \
		return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); \
	} \
	CHANGE(bits, fetch_add) CHANGE(bits, fetch_sub) CHANGE(bits, fetch_and) \
	CHANGE(bits, fetch_or) CHANGE(bits, fetch_xor) \
	EXCHANGE(bits, strong) EXCHANGE(bits, weak)
ATOMIC(8) ATOMIC(16) ATOMIC(32) ATOMIC(64)
