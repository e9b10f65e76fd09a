/* SPDX-License-Identifier: MIT */
/*
 * Does the runtime give back what is unmapped and released? The device's free figure
 * says so. Some versions keep it until its reservation goes (V7), or for ever (V6): what
 * looks given back would be taken again and lost each time. Then only a pool of which
 * nothing is in use gives back, with its reservation; and if that doesn't help, none.
 *
 * The figure is everybody's. A release beside which other pools grew or shrank says
 * nothing. What other processes take is not seen, so what was found out is doubted now
 * and then, with one chunk, and ever more seldom: where the runtime keeps it, it is lost.
 *
 * No lock is held.
 */
#include "core/vmm.h"

#define KEEPS_WHOLE 2      /* once may be chance: others use the device, too */
#define UNKNOWN UINT64_MAX /* a figure that the device did not give */
#define DOUBT_MS 10000     /* at first; doubled each time that it was right */

static uint64_t now_ms(const struct ss_pool *pool)
{
	return pool->core->drv.now_ms(pool->core->drv.ctx);
}

static struct ss_device_state *device(const struct ss_pool *pool)
{
	return &pool->core->dev[pool->dev];
}

static uint64_t device_free(const struct ss_pool *pool)
{
	struct ss_core *core = pool->core;
	uint64_t left = 0;

	return SS_DRIVE(core, core->drv.mem_info(core->drv.ctx, pool->dev, &left, NULL)) == SS_OK ?
		       left : UNKNOWN;
}

enum ss_giving ss_keeps_how(struct ss_pool *pool, bool idle)
{
	struct ss_device_state *d = device(pool);
	unsigned keeps = atomic_load(&d->keeps);

	if (keeps < KEEPS_WHOLE)
		return SS_GIVE_PARTS;
	if (keeps == KEEPS_WHOLE && idle)
		return SS_GIVE_WHOLE;
	if (now_ms(pool) < atomic_load(&d->keeps_until))
		return SS_GIVE_NOTHING;
	return idle && atomic_load(&pool->reserved) <= SS_MAX_CHUNK ? SS_GIVE_WHOLE : SS_GIVE_ONE;
}

bool ss_keeps_all(struct ss_pool *pool)
{
	return atomic_load(&device(pool)->keeps) > KEEPS_WHOLE &&
	       now_ms(pool) < atomic_load(&device(pool)->keeps_until);
}

/* What is under way is taken of the limit before it is reserved. */
void ss_keeps_begin(struct ss_pool *pool, struct ss_witness *w)
{
	w->reserved = atomic_load(&device(pool)->reserved);
	w->taken = atomic_load(&device(pool)->taken);
	w->left = device_free(pool);
}

static void believe(struct ss_pool *pool, unsigned keeps, uint64_t wait)
{
	struct ss_device_state *d = device(pool);

	atomic_store(&d->keeps_wait, wait);
	atomic_store(&d->keeps_until, now_ms(pool) + wait);
	atomic_store(&d->keeps, keeps);
}

/* Are both figures known, and has nobody else in this process moved them? */
static bool alone(struct ss_pool *pool, const struct ss_witness *w, uint64_t given, uint64_t left)
{
	struct ss_device_state *d = device(pool);

	return w->left != UNKNOWN && left != UNKNOWN && w->taken == w->reserved &&
	       atomic_load(&d->reserved) == w->reserved - given &&
	       atomic_load(&d->taken) == w->taken - given;
}

void ss_keeps_end(struct ss_pool *pool, const struct ss_witness *w, uint64_t given,
		  enum ss_giving how)
{
	struct ss_device_state *d = device(pool);
	unsigned keeps = atomic_load(&d->keeps);
	uint64_t left = device_free(pool);
	bool told = alone(pool, w, given, left);
	bool back = left >= w->left + given / 2;

	if (how == SS_GIVE_PARTS && told) {
		if (back)
			atomic_store(&d->keeps, 0);
		else
			believe(pool, keeps + 1, DOUBT_MS);
	} else if (how == SS_GIVE_WHOLE && keeps == KEEPS_WHOLE) {
		if (told && !back)
			believe(pool, keeps + 1, DOUBT_MS);
	} else if (how != SS_GIVE_PARTS) {
		/* What somebody else gave back is no reason for more losses. */
		if (told && back && left <= w->left + 2 * given)
			believe(pool, how == SS_GIVE_ONE ? 0 : KEEPS_WHOLE, DOUBT_MS);
		else
			believe(pool, keeps, 2 * atomic_load(&d->keeps_wait));
	}
}

/* ---- what was exported ------------------------------------------------------ */

/* From 7.0 on it may be kept for good (hip#3886); for as long as a peer has it open it
 * always is. */

bool ss_keeps_exports(struct ss_pool *pool)
{
	return atomic_load(&device(pool)->pins) >= KEEPS_WHOLE &&
	       now_ms(pool) < atomic_load(&device(pool)->pins_until);
}

void ss_keeps_exports_end(struct ss_pool *pool, const struct ss_witness *w, uint64_t given)
{
	struct ss_device_state *d = device(pool);
	uint64_t left = device_free(pool), wait = DOUBT_MS;
	unsigned pins = atomic_load(&d->pins);

	if (!alone(pool, w, given, left))
		return;
	if (left >= w->left + given / 2) {
		atomic_store(&d->pins, 0);
		return;
	}
	/* Was it doubted in vain? */
	if (pins >= KEEPS_WHOLE && now_ms(pool) >= atomic_load(&d->pins_until))
		wait = 2 * atomic_load(&d->pins_wait);
	else if (pins >= KEEPS_WHOLE)
		return;
	atomic_store(&d->pins_wait, wait);
	atomic_store(&d->pins_until, now_ms(pool) + wait);
	atomic_store(&d->pins, pins + 1);
}
