/* SPDX-License-Identifier: MIT */
/*
 * Does the device get memory back that is unmapped and released? The device's free figure tells.
 * Some versions keep the memory until its reservation is released (7.0 to 7.13, where the driver
 * cannot free it earlier), or for good. Memory that is only seemingly released would be taken again
 * and lost each time. So on such a version a pool releases memory only when none of it is in use,
 * and with its reservation; if that does not help, it releases nothing.
 *
 * The free figure covers the whole device. A release during which other pools grew or shrank proves
 * nothing, and other processes are not seen at all. So the finding is tested again now and then,
 * with one chunk, and less and less often: if the runtime does keep memory, that chunk is lost.
 *
 * Locks: none is held.
 */
#include "core/backing/vmm.h"

#define KEPT_PARTS 2       /* failures that prove that parts do not come back (one may be chance) */
#define UNKNOWN UINT64_MAX /* the device did not tell */
#define DOUBT_MS 10000     /* until the first new test; doubled after each test that failed */

static struct ss_device_memory *device(const struct ss_memory *m)
{
	return ss_device_memory(m->core, m->dev);
}

static uint64_t device_free(const struct ss_memory *m)
{
	struct ss_core *core = m->core;
	uint64_t left = 0;

	return SS_DRIVE(core, core->drv.mem_info(core->drv.ctx, m->dev, &left, NULL)) == SS_OK ?
		       left :
		       UNKNOWN;
}

static bool is_doubted(const struct ss_memory *m, const struct ss_retention *r)
{
	return ss_now_ms(m->core) >= atomic_load(&r->until);
}

static void believe(const struct ss_memory *m, struct ss_retention *r, unsigned kept, uint64_t wait)
{
	atomic_store(&r->wait, wait);
	atomic_store(&r->until, ss_now_ms(m->core) + wait);
	atomic_store(&r->kept, kept);
}

enum ss_release_how ss_retention_how(struct ss_memory *m, bool idle)
{
	struct ss_retention *r = &device(m)->chunks;
	unsigned kept = atomic_load(&r->kept);

	if (kept < KEPT_PARTS)
		return SS_RELEASE_PARTS;
	if (kept == KEPT_PARTS && idle)
		return SS_RELEASE_WHOLE;
	if (!is_doubted(m, r))
		return SS_RELEASE_NOTHING;
	return idle && atomic_load(&m->reserved) <= SS_CHUNK_MOST ? SS_RELEASE_WHOLE :
								    SS_RELEASE_ONE;
}

void ss_retention_begin(struct ss_memory *m, struct ss_witness *w)
{
	w->reserved = atomic_load(&device(m)->reserved);
	w->taken = atomic_load(&device(m)->taken);
	w->left = device_free(m);
}

/* Are both free figures known, and has no other thread of this process changed them? A call in
 * progress has taken its bytes, but not reserved them. */
static bool is_alone(struct ss_memory *m, const struct ss_witness *w, uint64_t given, uint64_t left)
{
	return w->left != UNKNOWN && left != UNKNOWN && w->taken == w->reserved &&
	       atomic_load(&device(m)->reserved) == w->reserved - given &&
	       atomic_load(&device(m)->taken) == w->taken - given;
}

void ss_retention_end(struct ss_memory *m, const struct ss_witness *w, uint64_t given,
		      enum ss_release_how how)
{
	struct ss_retention *r = &device(m)->chunks;
	unsigned kept = atomic_load(&r->kept);
	uint64_t left = device_free(m);
	bool alone = is_alone(m, w, given, left);
	bool back = left >= w->left + given / 2;

	if (how == SS_RELEASE_PARTS && alone) {
		if (back)
			atomic_store(&r->kept, 0);
		else
			believe(m, r, kept + 1, DOUBT_MS);
	} else if (how == SS_RELEASE_WHOLE && kept == KEPT_PARTS) {
		if (alone && !back)
			believe(m, r, kept + 1, DOUBT_MS);
	} else if (how != SS_RELEASE_PARTS) {
		/* Memory that another process released is no reason to lose more of ours. */
		if (alone && back && left <= w->left + 2 * given)
			believe(m, r, how == SS_RELEASE_ONE ? 0 : KEPT_PARTS, DOUBT_MS);
		else
			believe(m, r, kept, 2 * atomic_load(&r->wait));
	}
}

/* ---- exported segments -------------------------------------------------------- */

/* A segment is kept while a peer has it open, and from 7.0 on perhaps for good (hip#3886). */

bool ss_retention_exports(struct ss_memory *m)
{
	struct ss_retention *r = &device(m)->exports;

	return atomic_load(&r->kept) >= KEPT_PARTS && !is_doubted(m, r);
}

void ss_retention_exports_end(struct ss_memory *m, const struct ss_witness *w, uint64_t given)
{
	struct ss_retention *r = &device(m)->exports;
	unsigned kept = atomic_load(&r->kept);
	uint64_t left = device_free(m);

	if (!is_alone(m, w, given, left))
		return;
	if (left >= w->left + given / 2)
		atomic_store(&r->kept, 0);
	else if (kept < KEPT_PARTS)
		believe(m, r, kept + 1, DOUBT_MS);
	else if (is_doubted(m, r))
		believe(m, r, kept + 1, 2 * atomic_load(&r->wait));
}
