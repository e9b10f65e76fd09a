/* SPDX-License-Identifier: MIT */
/*
 * The clock of the fake device. The clock is virtual: the caller, calls of the host, and naps of
 * the core advance it. A device with a clock executes commands one at a time in the order in which
 * they were enqueued, so a command is described by the time of its completion.
 */
#include <stdlib.h>

#include "driver/fake/internal.h"

#define ASK_NS 1000 /* a query of the real runtime takes about a microsecond */

static bool has_clock(const struct ss_fake *fake)
{
	return fake->config.device_ns != 0;
}

bool ss_fake_clock_init(struct ss_fake *fake)
{
	if (!has_clock(fake))
		return true;
	if (fake->config.queue == 0)
		fake->config.queue = 1;
	fake->clock.queue = calloc(fake->config.queue, sizeof(*fake->clock.queue));
	return fake->clock.queue != NULL;
}

/* ---- with the mutex held ------------------------------------------------- */

static void pass(struct ss_fake *fake, uint64_t ns)
{
	struct ss_fake_clock *c = &fake->clock;

	c->now += ns;
	while (c->count && c->queue[c->first].done <= c->now) {
		struct ss_fake_command *done = &c->queue[c->first];
		c->first = (c->first + 1) % fake->config.queue;
		c->count--;
		ss_fake_stream_progress(done->stream, done->at);
	}
}

/* The pools let the host wait. */
static void pass_waiting(struct ss_fake *fake, uint64_t ns)
{
	struct ss_fake_clock *c = &fake->clock;

	c->times.waits += !c->waited;
	c->waited = true;
	c->times.waited += ns;
	c->taken += ns;
	pass(fake, ns);
}

void ss_fake_clock_enqueue(struct ss_fake *fake, struct ss_fake_stream *s, uint64_t ns)
{
	struct ss_fake_clock *c = &fake->clock;

	if (!has_clock(fake)) {
		ss_fake_stream_enqueue(s);
		return;
	}
	if (c->count == fake->config.queue) {
		uint64_t wait = c->queue[c->first].done - c->now;
		c->times.full += wait;
		pass(fake, wait);
	}
	if (c->now > c->ready) {
		/* Without the pools the command would have come earlier by this time. */
		uint64_t gap = c->now - c->ready;
		c->times.idle += gap < c->taken ? gap : c->taken;
		c->ready = c->now;
	}
	c->taken = 0;
	c->ready += ns;
	c->queue[(c->first + c->count++) % fake->config.queue] = (struct ss_fake_command){
		s, ss_fake_stream_enqueue(s), c->ready};
	pass(fake, 0);
}

void ss_fake_clock_asked(struct ss_fake *fake)
{
	if (has_clock(fake)) {
		fake->clock.taken += ASK_NS;
		pass(fake, ASK_NS);
	}
}

void ss_fake_clock_driver(struct ss_fake *fake, uint64_t ns)
{
	if (!has_clock(fake))
		return;
	fake->clock.taken += ns;
	fake->clock.times.driver += ns;
	pass(fake, ns);
}

void ss_fake_clock_drain(struct ss_fake *fake)
{
	if (has_clock(fake) && fake->clock.ready > fake->clock.now)
		pass_waiting(fake, fake->clock.ready - fake->clock.now);
}

/* ---- for the caller ------------------------------------------------------ */

void ss_fake_call(struct ss_fake *fake, int dev, void *native)
{
	ss_fake_lock(fake);
	fake->clock.waited = false;
	pass(fake, fake->config.host_ns);
	ss_fake_clock_enqueue(fake, ss_fake_stream_get(fake, dev, native), fake->config.device_ns);
	ss_fake_unlock(fake);
}

struct ss_fake_times ss_fake_times(struct ss_fake *fake)
{
	ss_fake_lock(fake);
	struct ss_fake_times times = fake->clock.times;
	times.end = fake->clock.ready > fake->clock.now ? fake->clock.ready : fake->clock.now;
	ss_fake_unlock(fake);
	return times;
}

void ss_fake_advance_ms(struct ss_fake *fake, uint64_t ms)
{
	ss_fake_lock(fake);
	pass(fake, ms * 1000000);
	ss_fake_unlock(fake);
}

void ss_fake_on_sleep(struct ss_fake *fake, void (*each)(void *arg, unsigned ms), void *arg)
{
	fake->on_sleep = each;
	fake->on_sleep_arg = arg;
}

/* ---- operations ---------------------------------------------------------- */

static uint64_t now_ms(void *ctx)
{
	struct ss_fake *fake = ctx;
	ss_fake_lock(fake);
	uint64_t now = fake->clock.now / 1000000;
	ss_fake_unlock(fake);
	return now;
}

static void sleep_ms(void *ctx, unsigned ms)
{
	struct ss_fake *fake = ctx;

	ss_fake_lock(fake);
	pass_waiting(fake, ms * 1000000ull);
	ss_fake_unlock(fake);
	if (fake->on_sleep)
		fake->on_sleep(fake->on_sleep_arg, ms);
}

static uint64_t nap(void *ctx, unsigned us)
{
	struct ss_fake *fake = ctx;

	ss_fake_lock(fake);
	pass_waiting(fake, us * 1000ull);
	ss_fake_unlock(fake);
	return us;
}

void ss_fake_clock_ops(struct ss_driver *drv, const struct ss_fake *fake)
{
	drv->now_ms = now_ms;
	drv->sleep_ms = sleep_ms;
	drv->nap = has_clock(fake) ? nap : NULL;
}
