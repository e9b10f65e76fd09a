/* SPDX-License-Identifier: MIT */
/*
 * Requests of `somashim sleep' and `somashim wake', which come by the live page. The page may be
 * written by every process of this user at any time. So a request is copied before it is looked at,
 * and the process reads nothing back that it wrote.
 *
 * Locks: none. The thread of shim/sleep/ alone uses the page here.
 */
#include <stdio.h>
#include <string.h>

#include "core/base/deadline.h"
#include "core/sleep.h"
#include "driver/rocm/rocm.h"
#include "shim/process/live.h"
#include "shim/process/service.h"
#include "shim/process/sleep_state.h"
#include "shim/sleep/answer.h"

#define PATIENCE_MOST_MS 86400000 /* a day */

static struct ss_live_sleep *page;
static uint32_t answered; /* the last request that was answered */
static uint64_t fell_asleep_ns;
static bool slept;

bool ss_sleep_answers_start(const char *unable)
{
	struct ss_live_page *shown = atomic_load(&ss_live_shown);

	if (!shown)
		return false;
	page = &shown->sleep;
	snprintf(page->unable, sizeof(page->unable), "%s", unable ? unable : "");
	ss_sleep_set_bell(&page->bell);
	atomic_store(&page->able, !unable);
	return true;
}

bool ss_sleep_request_get(struct ss_sleep_request *out)
{
	if (!page)
		return false;
	out->word = atomic_load(&page->wanted);
	if (out->word == answered)
		return false;
	out->command = (enum ss_live_sleep_command)(out->word % SS_LIVE_COMMANDS);
	out->patience_ms = page->patience_ms;
	if (out->patience_ms > PATIENCE_MOST_MS)
		out->patience_ms = PATIENCE_MOST_MS;
	memcpy(out->store, page->store, sizeof(out->store));
	out->store[sizeof(out->store) - 1] = '\0';
	return true;
}

void ss_sleep_answer(const struct ss_sleep_request *request, const struct ss_live_slept *result)
{
	if (!page || request->word == answered)
		return;
	answered = request->word;
	ss_live_grew(); /* the client shows what stays besides */
	page->slept = *result;
	atomic_store(&page->done, answered);
	ss_sleep_futex_wake(&page->done);
}

static void show(enum ss_live_sleep_state state)
{
	bool now = state == SS_LIVE_ASLEEP || (slept && state == SS_LIVE_WAKING);

	for (int dev = 0; dev < ss_rocm_devices && dev < (int)SS_LIVE_DEVICES; dev++)
		atomic_store(&page->asleep[dev], ss_asleep_bytes(ss_core, dev));
	if (now && !slept) {
		fell_asleep_ns = ss_monotonic_ns();
		atomic_fetch_add(&page->naps, 1);
	} else if (!now && slept) {
		atomic_store(&page->last_ms,
			     (uint32_t)((ss_monotonic_ns() - fell_asleep_ns) / 1000000));
	}
	slept = now;
	atomic_store(&page->state, state);
	ss_sleep_show_keep();
}

void ss_sleep_enter(enum ss_live_sleep_state state)
{
	if (page)
		show(state);
	ss_sleep_set_state(state);
}

void ss_sleep_show_keep(void)
{
	if (page)
		atomic_store(&page->held, slept && ss_sleep_keeps());
}

void ss_sleep_answers_forked(void)
{
	page = NULL;
}
