/* SPDX-License-Identifier: MIT */
/*
 * The sample that `somashim top` takes of the processes that have a live page, and the three ways
 * to show it.
 */
#ifndef SS_CLI_TOP_H
#define SS_CLI_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "live/directory.h"
#include "live/reader.h"

struct ss_top_process {
	struct ss_live_name name;
	enum ss_live_process state;
	char path[SS_LIVE_PATH];
	enum ss_live_result result; /* the rest is valid for SS_LIVE_OK */
	bool current;               /* a HIP call brought the figures up to date for this sample */
	struct ss_live_page page;
	double age; /* seconds since the figures were those of the process */
	/* Per second since the sample before; negative: unknown. By index of the pool. */
	double allocation_rate[SS_LIVE_POOLS], free_rate[SS_LIVE_POOLS];
};

struct ss_top_sample {
	struct ss_top_process **process; /* by pid */
	size_t count;
};

/* The processes to show; none means all. */
struct ss_top_filter {
	const uint32_t *pid;
	size_t count;
};

/* Takes a sample. Processes are asked for new figures, and those that make a HIP call within
 * `wait_ms` answer. `before` gives the rates; it may be NULL. False with errno set: the directory
 * cannot be read, or host memory is out; *out is empty. */
bool ss_top_take(const char *directory, const struct ss_top_filter *filter, unsigned wait_ms,
		 const struct ss_top_sample *before, struct ss_top_sample *out);
void ss_top_drop(struct ss_top_sample *sample);
/* The device of a pool. NULL: a page that names a device that it does not have. */
const struct ss_live_device *ss_top_device(const struct ss_live_figures *figures, uint32_t ordinal);

/* A device of this machine, with what all processes of the sample hold of it. */
struct ss_top_device {
	char pci[20]; /* or "device N" where the address is unknown */
	size_t processes;
	uint64_t total, used, reserved, in_flight;
	uint64_t asleep;       /* of `reserved`; the device has it */
	uint64_t kernel, rest; /* of processes of which the kernel says it; 0: of none */
};
/* Fills `out` and returns the number of devices. */
size_t ss_top_devices(const struct ss_top_sample *sample, struct ss_top_device *out, size_t room);

/* Bytes of the pools of the process that sleep, of a device of its page. */
uint64_t ss_top_asleep(const struct ss_top_process *p, const struct ss_live_device *d);

/* The reason why a process has no figures, as text. */
const char *ss_top_problem(enum ss_live_result result);

/* Prints it on stdout. They return the exit status. */
int ss_top_print_text(const struct ss_top_sample *sample, const struct ss_top_filter *filter);
int ss_top_print_json(const struct ss_top_sample *sample, const char *directory);
/* Appends samples to a CSV file, one every `delay_ms`, until a signal ends the command, or the
 * processes of the filter have ended; `once`: one. "-" is standard output. Returns the exit
 * status. */
int ss_top_log(const char *directory, const struct ss_top_filter *filter, unsigned delay_ms,
	       unsigned wait_ms, bool once, const char *path);
/* Shows samples on the terminal, one every `delay_ms`, until a key ends it. Returns the exit
 * status. */
int ss_top_screen(const char *directory, const struct ss_top_filter *filter, unsigned delay_ms);

#endif
