/* SPDX-License-Identifier: MIT */
/* Requests of `somashim sleep' and `somashim wake', which come by the live page. */
#ifndef SS_SHIM_SLEEP_ANSWER_H
#define SS_SHIM_SLEEP_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "live/page.h"

struct ss_sleep_request {
	uint32_t word; /* as in the page; tells it from others */
	enum ss_live_sleep_command command;
	uint32_t patience_ms;
	char store[SS_LIVE_STORE]; /* ends with a zero */
};

/* Requests can come from now on. `unable`: they are refused, for this reason; NULL: they are
 * answered. False: the process shows no page. */
bool ss_sleep_answers_start(const char *unable);
/* A request that was not answered yet. False: there is none. */
bool ss_sleep_request_get(struct ss_sleep_request *out);
void ss_sleep_answer(const struct ss_sleep_request *request, const struct ss_live_slept *slept);
/* Enters the state, and shows it and the bytes that sleep. The page shows it before a held call
 * goes on. */
void ss_sleep_enter(enum ss_live_sleep_state state);
/* Shows whether the process sleeps until `somashim wake'. */
void ss_sleep_show_keep(void);
/* The page is gone: it was the parent's. */
void ss_sleep_answers_forked(void);

#endif
