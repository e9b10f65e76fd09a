/* SPDX-License-Identifier: MIT */
/*
 * The layout of a live page: a file of fixed size in which one process shows the memory that it
 * holds. The process maps the file and writes it; `somashim top` and `somashim dump` read it.
 *
 * The figures are guarded by a sequence number (seqlock): it is odd while they are written. The
 * identity of the process does not change after the magic number was written. Readers write the
 * requests.
 *
 * Sleep (`somashim sleep`) has a part of its own, behind all that version 2 had. So a reader that
 * does not know sleep reads the page as before, and a page without this part has zeros there.
 *
 * A reader does not trust the page: reader.h checks and repairs the bytes that it read.
 */
#ifndef SS_LIVE_PAGE_H
#define SS_LIVE_PAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define SS_LIVE_MAGIC 0x3147504c4d485353ull /* "SSHMLPG1" */
#define SS_LIVE_VERSION 2u                  /* grows when the layout changes */
#define SS_LIVE_BYTES 32768u
#define SS_LIVE_DEVICES 64u /* devices of a process; SS_MAX_DEVICES of config/limits.h */
#define SS_LIVE_POOLS 128u  /* pools that are shown one by one */

/* Counts since the start. All sizes are bytes. */
struct ss_live_counts {
	uint64_t allocations, frees, misses, out_of_memory;
};

struct ss_live_pool {
	uint32_t device; /* ordinal in the process */
	uint32_t reserved_for_later;
	char name[32]; /* "default", "classic", "pool 3" */
	char backing[8];
	uint64_t used, used_high, reserved, reserved_high;
	uint64_t in_flight; /* freed, and not yet known to have completed on the device */
	struct ss_live_counts counts;
};

/* The sums are over all pools, also over pools that are not shown. */
struct ss_live_device {
	uint32_t ordinal;
	uint32_t ended_pools;        /* pools that were destroyed or reset, */
	struct ss_live_counts ended; /* and their counts */
	char pci[16];                /* "0000:c1:00.0"; "" if the runtime reported none */
	char name[40];
	uint64_t total; /* memory of the device */
	uint64_t limit; /* SOMASHIM_LIMIT; 0: none */
	uint64_t used, reserved, in_flight;
	/* Outside of the pools: managed memory, host memory that the device reaches, arrays, and
	 * device memory that the runtime served itself */
	uint64_t managed, host, arrays, runtime;
	uint64_t kernel; /* the kernel's count for the process; 0: not known */
	uint64_t rest;   /* the part of `kernel` that pools, arrays and runtime do not explain */
};

struct ss_live_figures {
	uint64_t updated_ns; /* CLOCK_BOOTTIME */
	uint64_t driver_calls, driver_ns, fences, host_bytes;
	uint32_t device_count, pool_count;
	uint32_t pools_left_out; /* number of pools for which there was no room */
	uint32_t reserved_for_later;
	struct ss_live_device device[SS_LIVE_DEVICES];
	struct ss_live_pool pool[SS_LIVE_POOLS];
};

struct ss_live_identity {
	uint32_t pid;
	int32_t rank, ranks, local_rank; /* -1: unknown */
	uint64_t started_ns;             /* CLOCK_REALTIME of the first HIP call */
	char command[16];                /* as in /proc/PID/comm */
	char launcher[16];               /* "" outside of a job */
	char job[64];
	char pod[40]; /* uid of the pod under Kubernetes */
	char host[64];
	char version[16];     /* of somashim */
	char executable[256]; /* path; cut if it is longer */
};

/* ---- sleep ---------------------------------------------------------------- */

/* Grows when the layout changes; 0: the process has no such part */
#define SS_LIVE_SLEEP_VERSION 1u
#define SS_LIVE_STORE 512        /* bytes of the path of a directory */

enum ss_live_sleep_command {
	SS_LIVE_WITHDRAW, /* the request before is not wanted any more */
	SS_LIVE_NAP,      /* sleeps; the next call that needs the device wakes it */
	SS_LIVE_HOLD,     /* sleeps until SS_LIVE_WAKE; calls that need the device wait */
	SS_LIVE_WAKE,
};
#define SS_LIVE_COMMANDS 4u /* a request is a serial number times this, plus the command */

/* The state of the process between awake and asleep. */
enum ss_live_sleep_state {
	SS_LIVE_AWAKE,
	SS_LIVE_SETTLING, /* calls are held, and the devices finish what they have */
	SS_LIVE_COPYING,
	SS_LIVE_ASLEEP,
	SS_LIVE_WAKING,
};

/* The answer to a request. All sizes are bytes. */
struct ss_live_slept {
	uint32_t error; /* 1: refused or failed, see `why` */
	uint32_t chunks, ranges;
	uint32_t settle_ms, sleep_ms; /* until the devices were idle; in all */
	uint32_t reserved_for_later;
	uint64_t idle;     /* not in use, and released for good */
	uint64_t held;     /* that the pools had of the devices after that */
	uint64_t live;     /* of them in use and kept elsewhere meanwhile */
	uint64_t gone;     /* that the runtime said it took back */
	uint64_t seen;     /* by which the devices' own free figures rose */
	uint64_t stays;    /* of `held` */
	uint64_t exported; /* of `stays`: held by others, because of the call `by` */
	char by[48];
	char why[192]; /* text; "" if there is nothing to say */
};

/* (Readers take a part with another version for one that is not there.)
 *
 * Nobody trusts what the other side wrote. The words `bell` and `done` are futexes that work across
 * processes. */
struct ss_live_sleep {
	/* The process writes it before anybody reads. */
	_Atomic uint32_t version;
	_Atomic uint32_t able; /* 1: the process answers requests */
	char unable[120];      /* why not */
	/* Clients write these, under a lock on these bytes of the file; `wanted` last. Then the
	 * bell changes and is woken. */
	_Alignas(64) _Atomic uint32_t wanted;
	_Atomic uint32_t bell;
	uint32_t patience_ms;      /* the time after which the process gives up */
	char store[SS_LIVE_STORE]; /* directory for contents; "": they stay in memory */
	/* The process writes these; `done` after `slept`. */
	_Alignas(64) _Atomic uint32_t done; /* the last request that was answered */
	_Atomic uint32_t state;             /* enum ss_live_sleep_state */
	_Atomic uint32_t held;              /* 1: asleep until SS_LIVE_WAKE */
	_Atomic uint32_t naps;              /* how often the process fell asleep */
	_Atomic uint32_t last_ms;           /* how long it slept last; valid when awake again */
	_Atomic uint64_t asleep[SS_LIVE_DEVICES]; /* bytes that sleep, by ordinal */
	struct ss_live_slept slept;
};

/* Values of dump_error are errno values; 0: the dump is complete. */
struct ss_live_page {
	_Atomic uint64_t magic; /* written last */
	uint32_t version, size; /* the size is SS_LIVE_SIZE */
	struct ss_live_identity who;
	/* Readers write these two: any value that differs from the answer is a request. */
	_Alignas(64) _Atomic uint32_t refresh_wanted;
	_Atomic uint32_t dump_wanted;
	/* The process writes these. */
	_Alignas(64) _Atomic uint32_t refresh_done;
	_Atomic uint32_t dump_done;
	_Atomic uint32_t dump_error;
	_Atomic uint32_t sequence;
	_Alignas(64) struct ss_live_figures figures;
	_Alignas(64) struct ss_live_sleep sleep;
};

/* The size of a page in version 2: the part before `sleep`. */
#define SS_LIVE_SIZE offsetof(struct ss_live_page, sleep)

_Static_assert(sizeof(struct ss_live_page) <= SS_LIVE_BYTES, "a live page is bounded");

#endif
