/* SPDX-License-Identifier: MIT */
/* `somashim replay --fit`: finds the smallest device on which a log passes. */
#include "cli/replay.h"

#define STEP (2ull << 20) /* bytes; pools grow by no less where they can */

static uint64_t steps(uint64_t bytes)
{
	return (bytes + STEP - 1) / STEP;
}

bool ss_replay_fit(const struct ss_events *ev, struct ss_replay_config *config,
		   struct ss_replay_result *out, char *err, size_t err_size)
{
	/* The bytes in use at the peak have to fit, so a smaller device fails. A device that is
	 * large enough passes. */
	uint64_t fails = steps(ev->peak) - 1, passes;

	for (;; config->vram *= 2) {
		if (!ss_replay(ev, config, out, err, err_size))
			return false;
		if (!out->failed || config->vram > 64 * (ev->peak + STEP))
			break;
	}
	if (out->failed)
		return true;
	passes = steps(config->vram);
	while (passes - fails > 1) {
		struct ss_replay_config tried = *config;
		struct ss_replay_result r;
		uint64_t middle = fails + (passes - fails) / 2, enough = steps(out->reserved_peak);

		/* The limit is most likely near the amount that the pools reserved, so that is
		 * tried first. */
		middle = enough > fails && enough < passes ? enough : middle;
		tried.vram = middle * STEP;
		if (!ss_replay(ev, &tried, &r, err, err_size)) {
			*out = r;
			return false;
		}
		if (r.failed) {
			fails = middle;
		} else {
			passes = middle;
			*out = r;
		}
	}
	config->vram = passes * STEP;
	return true;
}
