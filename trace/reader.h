/* SPDX-License-Identifier: MIT */
/*
 * Reads a trace file: its definitions, and its events in the order of time. The file may be damaged
 * or hostile; nothing in it is trusted. Not thread safe: one thread uses a reader at a time.
 * Results of a reader are valid until the reader is closed.
 */
#ifndef SS_TRACE_READER_H
#define SS_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"

struct ss_trace_reader;

/* The end of the recording. */
enum ss_trace_end {
	SS_TRACE_END_CLOSED, /* the process ended in order */
	SS_TRACE_END_FULL,   /* the file could not grow */
	SS_TRACE_END_CUT,    /* the file is shorter than the recording */
	SS_TRACE_END_NONE,   /* the process still writes the file */
	SS_TRACE_END_KILLED, /* the process was killed, or the file was copied while it ran */
	/* One of the last two; unknown, because the filesystem has no locks */
	SS_TRACE_END_UNKNOWN,
	SS_TRACE_END_SNAPSHOT, /* the file is a memory snapshot of PyTorch */
};

/* Texts have no control characters: those in the file are replaced by '?'. */
struct ss_trace_process_def {
	uint32_t pid, ppid;
	uint32_t page_size; /* bytes */
	enum ss_trace_end end;
	uint64_t boottime_ns, realtime_ns; /* both clocks at the start */
	uint64_t lost_events, lost_stacks, lost_names;
	const char *exe, *host, *cwd, *version, *runtime; /* "" if not known */
	const char *launcher, *job;                       /* "" if not known */
	int rank, ranks, local_rank;                      /* -1 if not known */
	char **args;                                      /* ends with NULL */
	char **options;                                   /* SOMASHIM_NAME=value; ends with NULL */
	size_t arg_count, option_count;
};

struct ss_trace_device_def {
	int device;     /* ordinal */
	uint64_t total; /* bytes; 0 if not known */
	char pci[16];   /* "0000:c1:00.0"; "" if not known */
	uint8_t uuid[16];
	char name[64];
};

struct ss_trace_pool_def {
	uint32_t id;
	int device;
	uint64_t handle;
	char name[32]; /* "" if not known */
};

struct ss_trace_stream_def {
	uint32_t id;
	int device;
	enum ss_trace_stream_kind kind;
	uint64_t handle;
};

struct ss_trace_stack_def {
	uint32_t id;
	uint32_t frames;
	bool cut;           /* outer frames are missing */
	uint64_t seen_ns;   /* CLOCK_BOOTTIME when it was seen first */
	const uint64_t *ip; /* return addresses, or SS_TRACE_PYTHON_FRAME, innermost first */
};

struct ss_trace_python_def { /* a function of Python */
	uint32_t id;
	uint32_t first_line;
	const char *name, *file; /* "" if not known */
};

struct ss_trace_thread_def {
	uint32_t tid;
	char name[16]; /* "" if not known */
};

struct ss_trace_module_def {
	uint64_t bias, start, end;
	uint64_t loaded_ns; /* CLOCK_BOOTTIME when it was seen first */
	uint64_t gone_ns;   /* ... and when it was seen to be gone; UINT64_MAX: never */
	const char *path;
	bool program; /* the executable itself */
	uint8_t build_id[SS_TRACE_BUILD_ID_MAX];
	uint8_t build_id_length; /* 0: it has none */
	uint32_t segments;
	uint64_t segment[SS_TRACE_SEGMENTS_MAX][2]; /* vaddr and memsz, as in the file */
};

/* One event. Fields that a kind lacks are 0, or -1 for `device`. */
struct ss_trace_item {
	enum ss_trace_kind kind; /* from SS_TRACE_ALLOC on */
	uint64_t time_ns;        /* CLOCK_BOOTTIME */
	uint64_t real_ns;        /* the same moment since 1970 */
	uint64_t offset;         /* of the record in the file */
	uint32_t tid;
	int device;
	/* Numbers of definitions; 0: none. The definition may be missing */
	uint32_t pool, stream, stack;
	/* SS_TRACE_F_*, SS_TRACE_S_*, the cause of a TRIM or WAIT, the step of a PHASE, the kind
	 * of an OUTSIDE */
	uint32_t flags;
	uint64_t address; /* ptr or base */
	/* Requested bytes; bytes of the segment or range; bytes released by a TRIM */
	uint64_t size;
	uint64_t rounded; /* ALLOC: bytes that the block takes */
	/* ALLOC, IN_FLIGHT with SS_TRACE_F_LIVED: when it was allocated; else 0 */
	uint64_t since_ns;
	uint64_t duration_ns;    /* WAIT */
	uint64_t device_free;    /* OOM: free on the device; LIMIT: the limit */
	uint64_t reserved, used; /* OOM, LIMIT; TRIM: `reserved` is the kept bytes */
	uint64_t range;          /* PHASE: the range of a START or STOP */
	uint32_t phase;          /* PHASE: number of its name, from 1; 0: no name */
};

/* Does this item describe a state before the recording begins, instead of an event in it? */
static inline bool ss_trace_item_lived(const struct ss_trace_item *e)
{
	return (e->kind == SS_TRACE_IN_FLIGHT || e->kind == SS_TRACE_ALLOC ||
		e->kind == SS_TRACE_SEGMENT_ALLOC || e->kind == SS_TRACE_MAP) ?
		       (e->flags & SS_TRACE_F_LIVED) != 0 :
		       e->kind == SS_TRACE_OUTSIDE && (e->flags & SS_TRACE_OUTSIDE_LIVED);
}

/* Opens a file and reads its definitions. NULL and one line in `err`, with path and offset, if the
 * file cannot be used at all. Damage within the file is no error; see ss_trace_reader_problem().
 * The reader shows one state of the file, the current one, also if the file is written or shortened
 * later. The call waits until a ring is whole, and copies a ring that is being written (TMPDIR,
 * /tmp). */
struct ss_trace_reader *ss_trace_reader_open(const char *path, char *err, size_t err_size);
/* The same for a caller that has a ring locked: makes no wait and no copy. */
struct ss_trace_reader *ss_trace_reader_open_held(const char *path, char *err, size_t err_size);
void ss_trace_reader_close(struct ss_trace_reader *r);

/* The first damage in the file, as one line with the offset, and in *count the number of damages.
 * NULL if there is none. */
const char *ss_trace_reader_problem(const struct ss_trace_reader *r, size_t *count);
const char *ss_trace_end_name(enum ss_trace_end end);
/* Number of events, and bytes, for a progress bar. */
uint64_t ss_trace_reader_events(const struct ss_trace_reader *r);
uint64_t ss_trace_reader_bytes(const struct ss_trace_reader *r);

/* The next event in the order of time. False at the end. Times never decrease within a thread. */
bool ss_trace_reader_next(struct ss_trace_reader *r, struct ss_trace_item *out);
/* Starts again from the first event. */
void ss_trace_reader_rewind(struct ss_trace_reader *r);

/* The recording's facts about its process. The reader owns all results of these functions. */
const struct ss_trace_process_def *ss_trace_reader_process(const struct ss_trace_reader *r);
/* Arrays of all definitions, with their number in *count. */
const struct ss_trace_device_def *ss_trace_reader_devices(const struct ss_trace_reader *r,
							  size_t *count);
const struct ss_trace_pool_def *ss_trace_reader_pools(const struct ss_trace_reader *r,
						      size_t *count);
const struct ss_trace_stream_def *ss_trace_reader_streams(const struct ss_trace_reader *r,
							  size_t *count);
const struct ss_trace_stack_def *ss_trace_reader_stacks(const struct ss_trace_reader *r,
							size_t *count);
const struct ss_trace_thread_def *ss_trace_reader_threads(const struct ss_trace_reader *r,
							  size_t *count);
/* In the order in which they were loaded. */
const struct ss_trace_module_def *ss_trace_reader_modules(const struct ss_trace_reader *r,
							  size_t *count);
/* One definition by its number; NULL if there is none. */
const struct ss_trace_pool_def *ss_trace_reader_pool(const struct ss_trace_reader *r, uint32_t id);
const struct ss_trace_stream_def *ss_trace_reader_stream(const struct ss_trace_reader *r,
							 uint32_t id);
const struct ss_trace_stack_def *ss_trace_reader_stack(const struct ss_trace_reader *r,
						       uint32_t id);
/* Does any ALLOC have that stack? */
bool ss_trace_reader_allocates(const struct ss_trace_reader *r, uint32_t stack);
const struct ss_trace_python_def *ss_trace_reader_python(const struct ss_trace_reader *r,
							 uint32_t id);
const struct ss_trace_device_def *ss_trace_reader_device(const struct ss_trace_reader *r,
							 int device);
/* The module that had this address in memory at `time_ns`; NULL if there is none. */
const struct ss_trace_module_def *ss_trace_reader_module_at(const struct ss_trace_reader *r,
							    uint64_t address, uint64_t time_ns);

/* The name of a phase by its number; NULL: there is none. Two phases with one name have one
 * number. */
const char *ss_trace_reader_phase(const struct ss_trace_reader *r, uint32_t phase);

/* Name of a kind, such as "alloc"; "?" for an unknown one. */
const char *ss_trace_kind_name(enum ss_trace_kind kind);

#endif
