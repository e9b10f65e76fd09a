/* SPDX-License-Identifier: MIT */
/*
 * The layout of a trace file, byte for byte. The preload writes it, the command line tool reads
 * it. docs/trace-format.md explains it in words.
 *
 * All numbers are little endian and every record starts at a multiple of 8 bytes. A file is a
 * header, then blocks of one size. A block holds records of one thread at a time, oldest first.
 */
#ifndef SS_TRACE_FORMAT_H
#define SS_TRACE_FORMAT_H

#include <stdint.h>

#define SS_TRACE_MAGIC "SMSTRACE"  /* 8 bytes, without the terminating 0 */
#define SS_TRACE_MAJOR 1           /* a reader refuses a file of another major version */
#define SS_TRACE_MINOR 2           /* new kinds of records and longer records raise only this */
#define SS_TRACE_ENDIAN 0x01020304u
#define SS_TRACE_BLOCK_MAGIC 0x4b425353u /* "SSBK" */
#define SS_TRACE_BLOCK_SIZE 65536u
#define SS_TRACE_RECORD_MAX 2040u  /* bytes; the longest record that `words` can express */
#define SS_TRACE_TEXT_MAX 1024u    /* bytes of a text; the end of a longer text is cut off */
#define SS_TRACE_FRAMES_MAX 128u   /* of one stack */
#define SS_TRACE_SEGMENTS_MAX 16u  /* loaded segments of one module */
#define SS_TRACE_BUILD_ID_MAX 32u

/* The end of the recording. */
enum ss_trace_state {
	SS_TRACE_RUNNING,  /* the process runs, or it was killed */
	SS_TRACE_CLOSED,   /* the process ended in order */
	SS_TRACE_FULL,     /* the disk was full, or the file could not grow for another reason */
	SS_TRACE_SNAPSHOT, /* the file was made from a memory snapshot of PyTorch */
};

/* At offset 0. The writer stores `magic` last, so a file that has it has all of this. */
struct ss_trace_header {
	char magic[8];
	uint16_t major, minor;
	uint32_t endian;      /* SS_TRACE_ENDIAN */
	uint32_t header_size; /* bytes; the first block starts here */
	uint32_t block_size;  /* bytes */
	uint32_t pid, ppid;
	uint32_t page_size;   /* bytes */
	uint32_t state;       /* enum ss_trace_state */
	uint64_t boottime_ns; /* CLOCK_BOOTTIME, the clock of every record ... */
	uint64_t realtime_ns; /* ... and CLOCK_REALTIME at the same moment */
	uint64_t lost_events; /* events that could not be written */
	uint64_t lost_stacks; /* events whose stack could not be written: the table was full */
	uint64_t begin_ns;    /* events before this moment do not count; 0: all do */
	uint32_t ring_blocks; /* most blocks that the file may have; 0: it is no ring */
	uint32_t reserved32;
	uint64_t size; /* bytes that the file has at least; 0: not known */
	/* Of a ring with a beginning: the number of blocks of its base. `base_for_ns` is the
	 * beginning that this number is for; for another beginning the number is unknown */
	uint64_t base_for_ns;
	uint64_t base_blocks;
	uint64_t lost_names; /* frames of Python without a name: the table was full */
};

/* A ring (somashim record --ring) has this after its header. The program takes free blocks, or new
 * ones, as long as it has less than `limit`; another process (cli/ring/) frees blocks. All fields
 * are atomic. */
struct ss_trace_ring {
	uint32_t next;  /* blocks that were ever taken */
	uint32_t used;  /* blocks that the program has */
	uint32_t limit; /* most of these */
	uint32_t reserved;
	uint64_t free[]; /* a bit for each block: the block is free, and all its bytes are 0 */
};
#define SS_TRACE_RING_LEAST 64u      /* blocks of the program: 4 MiB */
#define SS_TRACE_RING_MOST (1u << 20) /* ... 64 GiB */
#define SS_TRACE_RING_SIZE(blocks) (sizeof(struct ss_trace_ring) + ((uint64_t)(blocks) + 63) / 64 * 8)

/* In a ring a block of the program that is full has another magic, and in its last 8 bytes the time
 * of its last record. */
#define SS_TRACE_BLOCK_DONE 0x4e445353u /* "SSDN" */
/* The state at the beginning of a ring, from earlier events: definitions, and events with
 * SS_TRACE_F_LIVED. The last 8 bytes are the beginning that the block is for; a block for another
 * beginning does not count. */
#define SS_TRACE_BLOCK_BASE 0x53425353u /* "SSBS" */

/* At header_size + n * block_size. The writer stores `magic` last. A block without it was
 * reserved and never used. */
struct ss_trace_block {
	uint32_t magic;   /* SS_TRACE_BLOCK_MAGIC */
	uint32_t tid;     /* of the thread that writes the first records */
	uint64_t base_ns; /* CLOCK_BOOTTIME; the times of the records count from here */
};

/* Records. Every kind from KIND_ALLOC on is an event; the kinds before it define objects that
 * events name by number. A definition may lie in another block than the events that use it, and
 * after them in the file, so a reader collects all definitions first. */
enum ss_trace_kind {
	SS_TRACE_NONE = 0, /* the rest of the block is empty */
	SS_TRACE_TIME = 1,
	SS_TRACE_THREAD = 2,
	SS_TRACE_INFO = 3,
	SS_TRACE_MODULE = 4,
	SS_TRACE_MODULE_GONE = 5,
	SS_TRACE_STACK = 6,
	SS_TRACE_STREAM = 7,
	SS_TRACE_DEVICE = 8,
	SS_TRACE_POOL = 9,    /* a pool that was not seen being created */
	SS_TRACE_PYTHON = 10, /* a function of Python */

	SS_TRACE_ALLOC = 16,
	SS_TRACE_FREE = 17,
	SS_TRACE_REUSABLE = 18,
	SS_TRACE_SEGMENT_ALLOC = 19, /* physical memory was taken from the runtime */
	SS_TRACE_SEGMENT_FREE = 20,  /* ... and released */
	SS_TRACE_MAP = 21,           /* a chunk was mapped into a reserved address range */
	SS_TRACE_UNMAP = 22,
	SS_TRACE_TRIM = 23,  /* idle memory was released */
	SS_TRACE_OOM = 24,   /* an allocation failed */
	SS_TRACE_LIMIT = 25, /* a limit that the user set was reached */
	SS_TRACE_WAIT = 26,  /* a synchronization, a wait or a call of the driver ended */
	SS_TRACE_POOL_CREATE = 27,
	SS_TRACE_POOL_DESTROY = 28,
	/* A block that was freed before the beginning, and was not reusable yet */
	SS_TRACE_IN_FLIGHT = 29,
	SS_TRACE_PHASE = 30,   /* the program names its current phase */
	SS_TRACE_OUTSIDE = 31, /* memory outside of the pools was allocated, or freed */
};

/* The start of every record. The writer stores `kind` last, so a record with a kind is whole. */
struct ss_trace_record {
	uint8_t kind;  /* enum ss_trace_kind */
	uint8_t words; /* length of the record, this included, in units of 8 bytes */
	uint16_t pool; /* number of the pool; 0: none, or not known */
	uint32_t dt;   /* ns since the base time of the block */
};

/* ---- definitions -------------------------------------------------------- */

struct ss_trace_time {            /* a new base time, as `dt` would overflow */
	struct ss_trace_record r; /* dt is 0 */
	uint64_t base_ns;
};

struct ss_trace_thread { /* the records that follow in this block are of this thread */
	struct ss_trace_record r;
	uint32_t tid;
	uint32_t reserved;
	char name[16]; /* 0-terminated */
};

enum ss_trace_info_key {
	SS_TRACE_INFO_EXE = 1, /* path of the program */
	SS_TRACE_INFO_ARG = 2, /* one argument; as many records as arguments, argv[0] first */
	SS_TRACE_INFO_HOST = 3,
	SS_TRACE_INFO_LAUNCHER = 4, /* "slurm", "openmpi", "mpich", "flux" */
	SS_TRACE_INFO_JOB = 5,      /* id of the job */
	SS_TRACE_INFO_RANK = 6,     /* decimal */
	SS_TRACE_INFO_RANKS = 7,    /* decimal; number of ranks */
	SS_TRACE_INFO_LOCAL_RANK = 8,
	SS_TRACE_INFO_OPTION = 9,   /* SOMASHIM_NAME=value */
	SS_TRACE_INFO_VERSION = 10, /* of somashim */
	SS_TRACE_INFO_RUNTIME = 11, /* version of the HIP runtime */
	SS_TRACE_INFO_CWD = 12,
};

struct ss_trace_info {
	struct ss_trace_record r;
	uint16_t key;    /* enum ss_trace_info_key */
	uint16_t length; /* bytes of text */
	uint32_t cut;    /* 1: the text was longer */
	char text[];     /* not terminated; padded with 0 to 8 bytes */
};

struct ss_trace_module { /* an executable or shared library was loaded */
	struct ss_trace_record r;
	uint64_t bias;           /* address in memory minus address in the file's program headers */
	uint64_t start, end;     /* addresses in memory that it covers */
	uint8_t build_id_length; /* bytes; 0: it has none */
	uint8_t segments;        /* number of loaded segments */
	uint16_t path_length;    /* bytes; 0: the program itself has no known path */
	uint32_t flags;          /* SS_TRACE_MODULE_EXE */
	uint8_t build_id[SS_TRACE_BUILD_ID_MAX];
	uint64_t tail[]; /* segments * { vaddr, memsz }, then the path, padded with 0 */
};
#define SS_TRACE_MODULE_EXE 1u  /* the program, not a library */

struct ss_trace_module_gone {
	struct ss_trace_record r;
	uint64_t start;
};

struct ss_trace_stack { /* a call stack that no earlier record has */
	struct ss_trace_record r;
	uint32_t id; /* from 1 */
	uint16_t frames;
	uint16_t flags; /* SS_TRACE_STACK_CUT */
	uint64_t ip[];  /* return addresses, innermost first */
};
#define SS_TRACE_STACK_CUT 1u  /* outer frames are missing */
/* A frame of Python has this bit instead of an address; bits 32 to 62 are the number of its PYTHON
 * record (0: not known), the lower 32 bits its line. The frames of the interpreter itself are left
 * out of such a stack. */
#define SS_TRACE_PYTHON_FRAME (1ull << 63)

struct ss_trace_python { /* a function of Python */
	struct ss_trace_record r;
	uint32_t id; /* from 1 */
	uint32_t first_line;
	uint16_t name_length; /* bytes */
	uint16_t file_length; /* bytes */
	uint32_t reserved;
	/* UTF-8: the qualified name, then the file; padded with 0 to 8 bytes */
	char text[];
};

enum ss_trace_stream_kind {
	SS_TRACE_STREAM_NULL, /* the null stream of a device */
	SS_TRACE_STREAM_BLOCKING,
	SS_TRACE_STREAM_NONBLOCKING,
	SS_TRACE_STREAM_THREAD, /* hipStreamPerThread */
	SS_TRACE_STREAM_UNKNOWN,
};

struct ss_trace_stream {
	struct ss_trace_record r;
	uint32_t id;    /* from 1 */
	uint8_t device; /* ordinal */
	uint8_t kind;   /* enum ss_trace_stream_kind */
	uint16_t reserved;
	uint64_t handle; /* the hipStream_t; a handle that is used again keeps its number */
};

struct ss_trace_device {
	struct ss_trace_record r;
	uint64_t total; /* bytes of memory */
	uint32_t pci_domain;
	uint8_t pci_bus, pci_device, pci_function;
	uint8_t device;   /* ordinal in this process */
	uint8_t uuid[16]; /* all 0: not known */
	char name[64];    /* 0-terminated */
};

struct ss_trace_pool { /* r.pool is its number. POOL, POOL_CREATE and POOL_DESTROY */
	struct ss_trace_record r;
	uint64_t handle; /* the hipMemPool_t, or an address that is unique to the pool */
	uint8_t device;  /* ordinal */
	uint8_t reserved[7];
	char name[32]; /* 0-terminated, such as "default", "classic", "pool 3" */
};

/* ---- events ------------------------------------------------------------- */

/* Two numbers share 32 bits: the lower 24 bits and the upper 8 bits. */
#define SS_TRACE_LOW24(v) ((uint32_t)(v) & 0xffffffu)
#define SS_TRACE_HIGH8(v) ((uint32_t)(v) >> 24)
#define SS_TRACE_PACK(low24, high8) (((uint32_t)(low24) & 0xffffffu) | (uint32_t)(high8) << 24)
/* The device number of an event that belongs to no device. */
#define SS_TRACE_NO_DEVICE 0xffu

/* Flags of ALLOC and FREE. */
#define SS_TRACE_F_CLASSIC 1u   /* hipMalloc and hipFree */
/* Served from the stream's own free blocks: narrower than `hits` of SOMASHIM_STATS, which counts
 * every allocation that needed no new memory. */
#define SS_TRACE_F_HIT 2u
/* The object existed before the beginning of a ring. Also for SEGMENT_ALLOC and MAP. */
#define SS_TRACE_F_LIVED 8u
#define SS_TRACE_F_REUSABLE 4u  /* FREE: the bytes may be reused at once; no REUSABLE follows */

/* All events start with these 16 bytes. */
struct ss_trace_event {
	struct ss_trace_record r;
	/* 24 bits: number of the stream, 0: none; 8 bits: flags or cause */
	uint32_t stream_flags;
	uint32_t stack_device; /* 24 bits: number of the stack, 0: none; 8 bits: device */
};

/* Sizes of blocks: 48 bits are the requested bytes. 16 bits give the extra size: the block takes
 * the size rounded up to 256, plus this number times 256. 0xffff: that, or more. */
#define SS_TRACE_SIZE(v) ((uint64_t)(v) & 0xffffffffffffull)
#define SS_TRACE_ROUNDED(v) (((SS_TRACE_SIZE(v) + 255) & ~255ull) + ((uint64_t)(v) >> 48) * 256)

struct ss_trace_alloc { /* the call is about to return the block */
	struct ss_trace_event e;
	uint64_t ptr;
	uint64_t size; /* see SS_TRACE_SIZE */
};

struct ss_trace_lived { /* ALLOC with SS_TRACE_F_LIVED, and IN_FLIGHT */
	struct ss_trace_alloc a;
	uint64_t since_ns; /* when it was allocated */
	uint64_t rounded;  /* bytes that the block takes */
};

struct ss_trace_free { /* the free was called; REUSABLE marks when it takes effect */
	struct ss_trace_event e;
	uint64_t ptr;
};

/* Every use of this free range has completed. The range covers one or several freed blocks:
 * neighbours are merged while they are pending. */
struct ss_trace_reusable {
	struct ss_trace_record r;
	uint64_t base;
	uint64_t size; /* bytes */
};

struct ss_trace_segment {        /* SEGMENT_ALLOC, SEGMENT_FREE, MAP, UNMAP */
	struct ss_trace_event e; /* flags: SS_TRACE_S_* */
	uint64_t base;
	uint64_t size; /* bytes */
};
/* SEGMENT_ALLOC of a reserved address range has no physical memory of its own. */
#define SS_TRACE_S_RESERVED 1u /* only addresses: MAP and UNMAP give the memory at them */

enum ss_trace_trim_cause {
	SS_TRACE_TRIM_CALL,  /* hipMemPoolTrimTo */
	SS_TRACE_TRIM_DECAY, /* idle for too long */
	/* A synchronization, and the pool had more idle memory than it may keep */
	SS_TRACE_TRIM_THRESHOLD,
	SS_TRACE_TRIM_OOM,   /* another allocation needed it */
	SS_TRACE_TRIM_RESET, /* hipDeviceReset, or the pool was destroyed */
};

struct ss_trace_trim {
	struct ss_trace_event e; /* flags: enum ss_trace_trim_cause */
	uint64_t released;       /* bytes that were released */
	uint64_t kept;           /* bytes that the pool still has */
};

struct ss_trace_oom { /* OOM and LIMIT */
	struct ss_trace_event e;
	uint64_t size;        /* requested bytes */
	uint64_t device_free; /* OOM: bytes that the device has free; LIMIT: the limit */
	uint64_t reserved;    /* bytes that the pool has; 0 if not known */
	uint64_t used;        /* bytes of the pool that the program holds */
};

enum ss_trace_wait_cause {
	SS_TRACE_WAIT_FREE,         /* hipFree waits for the device */
	SS_TRACE_WAIT_MEMORY,       /* an allocation waits until freed memory may be reused */
	SS_TRACE_WAIT_STREAM,       /* the program: hipStreamSynchronize */
	SS_TRACE_WAIT_EVENT,        /* the program: hipEventSynchronize */
	SS_TRACE_WAIT_DEVICE,       /* the program: hipDeviceSynchronize */
	SS_TRACE_WAIT_DRIVER_ALLOC, /* the real runtime: memory is allocated */
	SS_TRACE_WAIT_DRIVER_FREE,  /* ... and released */
	SS_TRACE_WAIT_DRIVER_MAP,   /* memory is mapped, unmapped, or its access is set */
	SS_TRACE_WAIT_DRIVER_OTHER,
};

struct ss_trace_wait {           /* the record's time is the end of the wait */
	struct ss_trace_event e; /* flags: enum ss_trace_wait_cause */
	uint64_t ns;             /* duration in ns */
};

/* Ranges and marks of roctx. PUSH and POP nest in a thread; START and STOP need not. */
enum ss_trace_phase_step {
	SS_TRACE_PHASE_PUSH,
	SS_TRACE_PHASE_POP,
	SS_TRACE_PHASE_START,
	SS_TRACE_PHASE_STOP,
	SS_TRACE_PHASE_MARK, /* a moment */
	SS_TRACE_PHASE_STEPS,
};

struct ss_trace_phase {
	struct ss_trace_event e; /* flags: enum ss_trace_phase_step; no stack */
	uint64_t id;             /* of START and STOP: the range */
	uint32_t length;         /* bytes of text; POP and STOP have none */
	uint32_t reserved;
	char text[]; /* not terminated; padded with 0 to 8 bytes */
};

enum ss_trace_outside_kind {
	SS_TRACE_OUTSIDE_MANAGED, /* hipMallocManaged */
	SS_TRACE_OUTSIDE_HOST,    /* host memory that the device can reach: hipHostMalloc */
	SS_TRACE_OUTSIDE_ARRAY,   /* arrays and mipmapped arrays */
	SS_TRACE_OUTSIDE_DEVICE,  /* device memory that the runtime served itself */
	/* All bytes of the device that the process has, from the kernel: a level, not a change */
	SS_TRACE_OUTSIDE_KERNEL,
	SS_TRACE_OUTSIDE_KINDS,
};
/* Flags beside the kind: the memory was freed; the record is the sum of the memory before a
 * beginning */
#define SS_TRACE_OUTSIDE_FREE 0x80u
#define SS_TRACE_OUTSIDE_LIVED 0x40u
#define SS_TRACE_OUTSIDE_KIND 0x3fu /* a mask */

struct ss_trace_outside {
	struct ss_trace_event e; /* flags: enum ss_trace_outside_kind, SS_TRACE_OUTSIDE_FREE */
	uint64_t ptr;            /* or the handle */
	uint64_t size;           /* bytes */
};

#endif
