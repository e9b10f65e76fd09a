/* SPDX-License-Identifier: MIT */
/*
 * The device layer without HIP and HSA: memory, queues, events, signals, virtual memory and
 * kernels. This program links all of the device library and nothing above it, so a call from
 * the device to an upper layer does not link.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/arena.h"
#include "device/command.h"
#include "device/device_queues.h"
#include "device/host_call.h"
#include "device/kernel.h"
#include "device/options.h"
#include "device/physical.h"
#include "device/queue.h"
#include "device/record.h"
#include "device/signal.h"
#include "device/start.h"
#include "device/stream_value.h"
#include "device/transfer.h"
#include "device/virtual_memory.h"

#define CHECK(x) do { if (!(x)) { \
	fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); exit(1); } } while (0)

static struct sim_command *fill(char *dst, int value, size_t n)
{
	struct sim_command *c = sim_fill_command();

	c->fill.dst = dst;
	c->fill.value = (uint32_t)value;
	c->fill.elem = 1;
	c->fill.width = n;
	c->fill.height = c->fill.depth = 1;
	return c;
}

static struct sim_command *copy(char *dst, const char *src, size_t n)
{
	struct sim_command *c = sim_copy_command();

	c->copy.dst = dst;
	c->copy.src = src;
	c->copy.width = n;
	c->copy.height = c->copy.depth = 1;
	return c;
}

/* Accounting, the address map, and zeros after a free. */
static void memory(void)
{
	uint64_t before = sim_free_bytes(0);
	struct sim_alloc a;
	char *p;

	p = sim_device_alloc(0, 10000, 0);
	CHECK(p && sim_free_bytes(0) == before - 3 * SIM_PAGE);
	CHECK(sim_find(p + 9999, &a) && a.r.base == (uintptr_t)p && a.size == 10000 &&
	      a.kind == SIM_DEVICE);
	memset(p, 7, 10000);
	CHECK(!sim_free(p + 1, false) && sim_free(p + 1, true) && !sim_find(p, &a));
	p = sim_device_alloc(0, 10000, 0);
	CHECK(p && p[0] == 0 && p[9999] == 0);
	CHECK(!sim_device_alloc(0, before, 0));
	CHECK(sim_free(p, false) && sim_free_bytes(0) == before);
}

/* The null queue and a blocking queue wait for each other; a stalled queue holds the other. */
static void order(void)
{
	struct sim_queue *null = sim_null_queue(0), *blocking = sim_device_queue_new(0, true);
	struct sim_queue *other = sim_device_queue_new(0, false);
	char *p = sim_device_alloc(0, 4096, 0);
	struct sim_record *r;

	sim_queue_stall(blocking, true);
	sim_enqueue(blocking, fill(p, 1, 16));
	sim_enqueue(null, copy(p + 16, p, 16));
	sim_enqueue(other, fill(p + 32, 2, 16));
	r = sim_record_new(null);
	sim_enqueue(null, sim_record_command(r));
	sim_queue_drain(other);
	CHECK(p[32] == 2 && !sim_record_done(r) && !sim_null_idle(0));
	sim_queue_stall(blocking, false);
	sim_queue_wait(r->queue, r->seq);
	CHECK(sim_record_done(r) && r->time_ns && p[16] == 1 && sim_null_idle(0));
	sim_record_unref(r);

	/* What has not started is thrown away, and its positions are reached all the same. */
	sim_queue_stall(other, true);
	sim_enqueue(other, fill(p + 32, 9, 16));
	sim_device_drop(0);
	CHECK(p[32] == 2 && sim_queue_done(other, atomic_load(&other->enqueued)));
	sim_queue_close(other);
	sim_queue_close(blocking);
	sim_queue_unref(null);
	CHECK(sim_free(p, false));
}

static void count(void *arg)
{
	++*(int *)arg;
}

/* Waits for values, host functions, clones, and kernels by their registered body. */
static void add(void **args)
{
	**(int **)args[0] += *(int *)args[1];
}

void somasim_register_kernel(const void *host, sim_kernel_body body);

static void commands(void)
{
	struct sim_queue *q = sim_device_queue_new(0, false);
	uint64_t s = sim_signal_new(3);
	const uint32_t dims[6] = {1, 1, 1, 1, 1, 1};
	int called = 0, sum = 0, *to = &sum, by = 5;
	void *args[] = {&to, &by};
	struct sim_command *template = sim_host_command(count, &called);

	sim_enqueue(q, sim_wait_value_command(sim_signal_value(s), 9, ~0ull, SIM_VALUE_EQ, true));
	sim_enqueue(q, sim_command_clone(template));
	sim_enqueue(q, sim_command_clone(template));
	sim_command_free(template);
	sim_enqueue(q, sim_write_value_command(sim_signal_value(s), 1, true));
	CHECK(sim_signal_op(s, SIG_XCHG, 9, 0) == 3);
	CHECK(sim_signal_wait(s, SIM_LESS, 2, UINT64_MAX) == 1 && called == 2);
	sim_signal_free(s);
	CHECK(!sim_signal_is_live(s));

	CHECK(!sim_kernel_at((void *)add));
	sim_kernel_register((void *)add, "add");
	somasim_register_kernel((void *)add, add);
	sim_enqueue(q, sim_kernel_command(sim_kernel_at((void *)add), dims, args, NULL, 0));
	by = 100; /* arguments were copied */
	sim_queue_drain(q);
	CHECK(sum == 5);
	sim_queue_close(q);
}

/* Physical memory keeps its contents when it is mapped elsewhere. */
static void virtual_memory(void)
{
	uint64_t before = sim_free_bytes(0);
	struct sim_phys *h = sim_phys_create(0, SIM_HUGE_PAGE, false);
	char *p;
	int prot;

	CHECK(h && sim_free_bytes(0) == before - SIM_HUGE_PAGE);
	CHECK(!sim_vmm_reserve((void **)&p, 4 * SIM_HUGE_PAGE, 0, NULL));
	CHECK(!sim_vmm_map(p, SIM_HUGE_PAGE, h, false) && sim_vmm_map(p, SIM_HUGE_PAGE, h, false));
	CHECK(!sim_vmm_get_access(p, 0, &prot) && prot == 0);
	CHECK(!sim_vmm_access(p, SIM_HUGE_PAGE, 0, 3));
	p[5] = 5;
	CHECK(!sim_vmm_unmap(p, SIM_HUGE_PAGE, true));
	CHECK(!sim_vmm_map(p + SIM_HUGE_PAGE, SIM_HUGE_PAGE, h, false));
	CHECK(!sim_vmm_access(p + SIM_HUGE_PAGE, SIM_HUGE_PAGE, 0, 3) && p[SIM_HUGE_PAGE + 5] == 5);
	CHECK(sim_phys_release(h) && sim_free_bytes(0) == before - SIM_HUGE_PAGE);
	CHECK(sim_vmm_unreserve(p, 4 * SIM_HUGE_PAGE));
	CHECK(!sim_vmm_unmap(p + SIM_HUGE_PAGE, SIM_HUGE_PAGE, true));
	CHECK(sim_free_bytes(0) == before && !sim_vmm_unreserve(p, 4 * SIM_HUGE_PAGE));
	CHECK(!sim_phys_release(h));
}

/* A full queue makes the host wait. */
static void full_queue(void)
{
	struct sim_queue *q = sim_device_queue_new(0, false);
	char *p = sim_device_alloc(0, 4096, 0);
	uint64_t most = 0;

	sim_opt.queue = 3;
	for (int i = 0; i < 200; i++) {
		uint64_t seq = sim_enqueue(q, fill(p, i, 1));
		uint64_t behind = seq - atomic_load(&q->completed);

		most = behind > most ? behind : most;
	}
	CHECK(most <= 3);
	sim_opt.queue = 0;
	sim_queue_drain(q);
	CHECK(sim_free(p, false));
	sim_queue_close(q);
}

int main(void)
{
	CHECK(!sim_started());
	sim_start();
	CHECK(sim_started());
	memory();
	order();
	commands();
	virtual_memory();
	full_queue();
	return 0;
}
