/* SPDX-License-Identifier: MIT */
/*
 * Makes the time line of a device. When the samples are used up, neighbours are joined, and each
 * sample covers twice the time. So the file is read once, and its length need not be known.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/timeline.h"

bool ss_samples_begin(struct ss_timeline *t, size_t room, uint64_t begin_ns)
{
	*t = (struct ss_timeline){
		.room = room, .begin_ns = begin_ns, .span_ns = 1000, .now_ns = begin_ns};
	t->sample = calloc(room, sizeof(*t->sample));
	return t->sample != NULL;
}

static void keep_most(struct ss_sample *s, const struct ss_sample *other)
{
	if (other->used > s->used) {
		s->used = other->used;
		s->event = other->event;
		s->time_ns = other->time_ns;
	}
	s->reserved = other->reserved > s->reserved ? other->reserved : s->reserved;
	s->in_flight = other->in_flight > s->in_flight ? other->in_flight : s->in_flight;
	for (int k = 0; k < SS_TRACE_OUTSIDE_KINDS; k++)
		s->outside[k] = other->outside[k] > s->outside[k] ? other->outside[k] :
								    s->outside[k];
	s->rest = other->rest > s->rest ? other->rest : s->rest;
}

static void join(struct ss_timeline *t)
{
	for (size_t i = 0; i < t->count; i += 2) {
		t->sample[i / 2] = t->sample[i];
		if (i + 1 < t->count)
			keep_most(&t->sample[i / 2], &t->sample[i + 1]);
	}
	t->count = (t->count + 1) / 2;
	t->span_ns *= 2;
}

/* Makes the samples up to that time; they begin with the current level. */
static struct ss_sample *reach(struct ss_timeline *t, uint64_t time_ns)
{
	uint64_t past = time_ns > t->begin_ns ? time_ns - t->begin_ns : 0;

	while (past / t->span_ns >= t->room)
		join(t);
	size_t at = (size_t)(past / t->span_ns);
	while (t->count <= at) {
		struct ss_sample *s = &t->sample[t->count++];
		*s = (struct ss_sample){.event = t->now_event,
					.time_ns = t->now_ns,
					.used = t->now.used,
					.reserved = t->now.reserved,
					.in_flight = t->now.in_flight,
					.rest = t->outside.rest};
		memcpy(s->outside, t->outside.bytes, sizeof(s->outside));
	}
	return &t->sample[at];
}

void ss_samples_add(struct ss_timeline *t, const struct ss_level *level, uint64_t event,
		    uint64_t time_ns)
{
	const struct ss_sample now = {.event = event,
				      .time_ns = time_ns,
				      .used = level->used,
				      .reserved = level->reserved,
				      .in_flight = level->in_flight};

	keep_most(reach(t, time_ns), &now);
	t->now = *level;
	t->now_event = event;
	t->now_ns = time_ns;
}

void ss_samples_outside(struct ss_timeline *t, const struct ss_outside *outside, uint64_t time_ns)
{
	struct ss_sample *s = reach(t, time_ns);

	for (int k = 0; k < SS_TRACE_OUTSIDE_KINDS; k++)
		s->outside[k] = outside->bytes[k] > s->outside[k] ? outside->bytes[k] :
								    s->outside[k];
	s->rest = outside->rest > s->rest ? outside->rest : s->rest;
	t->outside = *outside;
}

void ss_samples_end(struct ss_timeline *t, uint64_t end_ns)
{
	reach(t, end_ns);
}
