/* SPDX-License-Identifier: MIT */
/* The subcommands of `somashim` and what they share. */
#ifndef SS_CLI_H
#define SS_CLI_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Each gets its own name as argv[0] and returns the exit status. */
int ss_cmd_options(int argc, char **argv);
int ss_cmd_run(int argc, char **argv);
/* attend.c: runs a program as a child, as if it were us, and returns its status as
 * waitpid has it. *started: there was something to run. */
int ss_attend(char **argv, bool *started);
/* Ends this process as that one ended; its result is main's. */
int ss_end_as(int status);
/* loader.c: should the auditor be used besides the preload? Not with glibc before 2.35
 * (`version`, NULL: that of this process); then SOMASHIM_API_TABLE=1 is set instead unless it
 * is set already, and unless `quiet` that is said on stderr. */
bool ss_loader_audits(const char *version, bool quiet);
/* Does the loader refuse to preload `library` here? If so, `reason` gets what it says. */
bool ss_loader_refusal(const char *library, char *reason, size_t size);
int ss_cmd_replay(int argc, char **argv);
int ss_cmd_generate(int argc, char **argv);
int ss_cmd_doctor(int argc, char **argv);

/* Prints "somashim: ..." on stderr; returns 2, the status of a wrong call. */
int ss_cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* --help or -h: the usage then goes to stdout and is what was asked for. */
bool ss_cli_help(const char *arg);
/* "--name=VALUE" or "--name VALUE": moves *i on and returns the value, NULL if
 * argv[*i] is another argument. A missing value ends the process. */
const char *ss_cli_value(int argc, char **argv, int *i, const char *name);
/* A number or a size (64M) that is at most `max`; else ends the process. */
uint64_t ss_cli_number(const char *name, const char *text, uint64_t max);

/* ---- logs: events.c ----------------------------------------------------- */

struct ss_event {
	uint64_t time_us;
	uint64_t size;   /* of an allocation; 0 for a free */
	uint32_t block;  /* index of the block, in order of allocation */
	uint32_t stream; /* index into `streams` */
	bool is_free;
};

struct ss_events {
	struct ss_event *list;
	size_t count, space;
	uint32_t blocks;
	uint64_t *streams; /* the log's own handles */
	uint32_t stream_count;
	uint64_t unknown_frees; /* of blocks from before the log began */
	uint64_t peak;          /* live requests, each rounded up to 512 B */
	size_t peak_at;         /* the event that reached it first */
	unsigned long long cut; /* line of the log that ends in its middle; 0: none does */
	void *maps;             /* while reading */
};

/* Reads an RMM CSV or a PyTorch memory snapshot, told apart by their first byte, of
 * a file as ss_input_open has it. False and a message in `err` for anything else. */
bool ss_events_read(struct ss_events *ev, const char *path, int device, char *err,
		    size_t err_size);
void ss_events_finish(struct ss_events *ev);
/* For readers. Add: NULL, or what is wrong. */
const char *ss_events_alloc(struct ss_events *ev, uint64_t pointer, uint64_t size,
			    uint64_t stream, uint64_t time_us);
void ss_events_free(struct ss_events *ev, uint64_t pointer, uint64_t stream,
		    uint64_t time_us);
/* Of a memory snapshot: snapshot.c */
bool ss_snapshot_read(struct ss_events *ev, FILE *file, int device, char *err,
		      size_t err_size);

/* ---- one replay: replay.c ----------------------------------------------- */

struct ss_options;

struct ss_replay_result {
	uint64_t allocations, frees, hits, failed;
	uint64_t reserved_peak, used_peak;
	uint64_t driver_calls;       /* create, map, unmap, release, segment alloc and free */
	uint64_t driver_calls_after; /* ... after the peak was first reached */
	uint64_t allocations_after;
	uint64_t set_access, fences, remaps, released;
	uint64_t host_bytes;         /* of metadata, at the peak */
	uint64_t end_reserved;
	double seconds;
	bool refused; /* it did not begin: the log asks for what there is not */
};

struct ss_replay_config {
	const struct ss_options *options;
	uint64_t vram;
	uint64_t lag;  /* commands each stream is behind; 0 = the device is idle */
	bool classic;  /* hipMalloc and hipFree */
	bool progress; /* draw a bar on stderr */
};

/* False and a message in `err` if a rule was broken: two live blocks overlap, a
 * block is not backed or not aligned, an invariant of the core does not hold. */
bool ss_replay(const struct ss_events *ev, const struct ss_replay_config *config,
	       struct ss_replay_result *out, char *err, size_t err_size);

/* 0 of nothing. */
double ss_ratio(uint64_t a, uint64_t b);
double ss_calls_per_100(const struct ss_replay_result *r);

/* variants.c: replays with one option changed at a time and prints a row for each
 * (all), the best as a line to export (advise), or both. Returns the exit status. */
int ss_try(const char *path, const struct ss_events *ev, const struct ss_replay_config *config,
	   bool all, bool advise);

#endif
