/* SPDX-License-Identifier: MIT */
/* Helpers with which directed tests write programs of the oracle. */
#ifndef ORACLE_DIRECTED_H
#define ORACLE_DIRECTED_H

#include "oracle.h"
#include "core/statistics.h"

struct d_test {
	const char *name;
	void (*fn)(void);
	uint64_t vram;      /* MiB */
	bool release_waits; /* as hipFree does */
	bool prefix;        /* VMM with access from the start of the reservation only */
	bool vmm;           /* VMM as it should be */
	/* Allocations wait before their pool grows past its peak. Elsewhere a pool grows at once,
	 * to show that it must not use what it has */
	bool waits;
};
#define T(f) { .name = #f, .fn = f }
/* The list ends with a NULL name. */
extern const struct d_test directed_memory[], directed_calls[], directed_arena[], directed_waits[];

void d_op(struct op op);
/* Runs `op`, and at the end of its first call of the driver other operations, as those of another
 * thread. */
void d_beside(const struct op *others, int count, struct op op);
/* Runs `nap`, as an operation of another thread, in the first nap of `op`. */
void d_in_nap(struct op nap, struct op op);
void d_end(void);
void d_check(bool ok, const char *what, int at);
struct world *d_world(void);
struct ss_pool_stats d_stats(void);

#define NUL 0
#define PT 2
#define S(n) (FIRST_USER + (n))
enum { NB = 0, BL = 1 };

#define D(...) do { \
	const struct op d_ops[] = { __VA_ARGS__ }; \
	for (size_t d_i = 0; d_i < sizeof(d_ops) / sizeof(d_ops[0]); d_i++) \
		d_op(d_ops[d_i]); \
} while (0)

#define BESIDE(d_call, ...) do { \
	const struct op d_ops[] = { __VA_ARGS__ }; \
	d_beside(d_ops, (int)(sizeof(d_ops) / sizeof(d_ops[0])), d_call); \
} while (0)

#define DOP(name) static inline struct op name
DOP(stream)(int s, int kind)
{
	return (struct op){.kind = OP_STREAM_CREATE, .a = (uint8_t)s, .c = (uint8_t)kind};
}
DOP(sdestroy)(int s)
{
	return (struct op){.kind = OP_STREAM_DESTROY, .a = (uint8_t)s};
}
DOP(kernel)(int s)
{
	return (struct op){.kind = OP_KERNEL, .a = (uint8_t)s};
}
DOP(stall)(int s)
{
	return (struct op){.kind = OP_STALL, .a = (uint8_t)s};
}
/* A host function begins, or ends. */
DOP(function)(void)
{
	return (struct op){.kind = OP_ADVANCE, .flags = OPF_HOST};
}
/* A wait for a value, and one that goes on for ever. */
DOP(host)(int s)
{
	return (struct op){.kind = OP_KERNEL, .a = (uint8_t)s, .flags = OPF_HOST};
}
DOP(host_stall)(int s)
{
	return (struct op){.kind = OP_STALL, .a = (uint8_t)s, .flags = OPF_HOST};
}
DOP(advance)(void)
{
	return (struct op){.kind = OP_ADVANCE, .a = 255, .b = 255};
}
DOP(event)(int e)
{
	return (struct op){.kind = OP_EVENT_CREATE, .a = (uint8_t)e};
}
DOP(record)(int e, int s)
{
	return (struct op){.kind = OP_RECORD, .a = (uint8_t)e, .b = (uint8_t)s};
}
DOP(wait_)(int s, int e)
{
	return (struct op){.kind = OP_WAIT, .a = (uint8_t)e, .b = (uint8_t)s};
}
DOP(ssync)(int s)
{
	return (struct op){.kind = OP_STREAM_SYNC, .b = (uint8_t)s};
}
DOP(dsync)(void)
{
	return (struct op){.kind = OP_DEVICE_SYNC};
}
DOP(alloc)(int b, int s, uint64_t n)
{
	return (struct op){.kind = OP_ALLOC, .a = (uint8_t)b, .b = (uint8_t)s, .c = POOLS, .n = n};
}
DOP(free_)(int b, int s)
{
	return (struct op){.kind = OP_FREE, .a = (uint8_t)b, .b = (uint8_t)s};
}
DOP(calloc_)(int b, uint64_t n)
{
	return (struct op){.kind = OP_ALLOC_CLASSIC, .a = (uint8_t)b, .n = n};
}
DOP(cfree)(int b, bool waited)
{
	return (struct op){
		.kind = OP_FREE_CLASSIC, .a = (uint8_t)b, .flags = waited ? OPF_WAITED : 0};
}
/* An attribute of the default pool of device 0, by its number. */
DOP(attr)(int a, uint64_t n)
{
	return (struct op){.kind = OP_POOL_ATTR, .a = POOLS, .b = (uint8_t)(a - 1), .n = n};
}
DOP(trim)(uint64_t keep)
{
	return (struct op){.kind = OP_TRIM, .a = POOLS, .n = keep};
}

static inline uint64_t at(int b)
{
	return d_world()->blk[b].addr;
}

static inline uint64_t given(void)
{
	return d_world()->given[0];
}

#endif
