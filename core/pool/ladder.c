/* SPDX-License-Identifier: MIT */
/*
 * The ladder: the steps that are tried, in this order, for an allocation that was no hit. The order
 * of the rows is the whole policy.
 *
 * Locks: none held; each step takes the locks that it needs.
 */
#include "core/base/rent.h"
#include "core/pool/release.h"
#include "core/pool/request.h"
#include "core/statistics.h"

static const struct row {
	const char *name, *cost; /* the cost is for the reader */
	ss_step *try;
	bool once; /* at most once for a request, though the ladder may begin anew */
	enum ss_rent rent;
} rows[] = {
	{"own and completed ranges", "pool lock, best fit", ss_step_own, false, SS_RENT_NONE},
	{"ranges ordered by events", "a walk over all free ranges", ss_step_event_order, false,
	 SS_RENT_EVENT},
	{"asking the streams", "a query or a fence per stream", ss_step_ask, false, SS_RENT_ASK},
	{"waiting for the oldest frees", "host naps, where it would grow past its peak",
	 ss_step_wait, false, SS_RENT_WAIT},
	{"cutting an idle segment", "it cannot be released then", ss_step_cut, false, SS_RENT_CUT},
	{"growing", "driver calls; idle memory makes room", ss_step_grow, false, SS_RENT_NONE},
	/* Out of memory from here on. */
	{"whether so much is possible", "one driver call", ss_step_possible, false, SS_RENT_NONE},
	{"fences for all frees", "a fence per stream of the device", ss_step_fences, true,
	 SS_RENT_NONE},
	{"idle memory of all pools", "driver calls, maybe a bounded wait", ss_step_release, true,
	 SS_RENT_NONE},
	{"a device-side wait", "the stream waits for another", ss_step_device_wait, true,
	 SS_RENT_NONE},
	{"a bounded host wait", "up to SOMASHIM_OOM_WAIT_MS", ss_step_host_wait, false,
	 SS_RENT_NONE},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))
_Static_assert(ROWS == SS_LADDER_ROWS, "a counter for each row");

const char *ss_ladder_row(unsigned i)
{
	return rows[i].name;
}

static void count(struct ss_pool *pool, unsigned row)
{
	ss_pool_lock(pool);
	pool->st.served[row]++;
	ss_pool_unlock(pool);
}

/* A failed request leaves the pool as it was: memory by which the pool grew for the request is
 * released, unless the release would wait. */
static enum ss_status give_up(struct ss_request *r, uint64_t reserved)
{
	struct ss_pool *pool = r->pool;

	if (r->grown && ss_reserved(pool) > reserved && ss_may_release(pool, SS_IDLE_UNASKED))
		ss_pool_release(pool, reserved, UINT64_MAX, SS_TRACE_TRIM_OOM);
	if (r->grown)
		ss_decay_wake(ss_core_of(pool));
	ss_pool_lock(pool);
	pool->st.out_of_memory += r->status == SS_ERR_NOMEM;
	ss_pool_unlock(pool);
	if (r->status == SS_ERR_NOMEM)
		ss_oom_report(r);
	ss_tell_growth(ss_core_of(pool));
	return r->status;
}

enum ss_status ss_ladder(struct ss_request *r)
{
	uint64_t reserved;

	ss_device_initial(r->pool);
	reserved = ss_reserved(r->pool);
	r->missed = true;
	for (unsigned i = 0; i < ROWS;) {
		if ((rows[i].once && r->tried >> i & 1) || ss_without(rows[i].rent)) {
			i++;
			continue;
		}
		r->tried |= 1ull << i;
		switch (rows[i].try(r)) {
		case SS_NEXT: i++; break;
		case SS_FOUND: count(r->pool, i); return SS_OK;
		case SS_AGAIN:
			if (i > 0)
				count(r->pool, i);
			i = 0;
			break;
		case SS_GIVE_UP: return give_up(r, reserved);
		}
	}
	r->status = SS_ERR_NOMEM;
	return give_up(r, reserved);
}
