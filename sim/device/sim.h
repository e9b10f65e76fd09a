/* SPDX-License-Identifier: MIT */
/*
 * What the two libraries of the software device share: options, per-thread
 * call accounting, device memory and its address map. It all lives in
 * libhsa-runtime64 (as on a real machine, where HIP sits on ROCr).
 *
 * Lock order, whole device, outermost first:
 *   hip handle slot -> capture -> hip device (streams) -> queue
 *   -> vmm -> address map -> device arena -> ipc sweep -> options/calls
 * Nothing is held while a command runs or while user code is called.
 */
#ifndef SIM_H
#define SIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SIM_MAX_CALLS 1024
#define SIM_HSA_FIRST 0
#define SIM_HIP_FIRST 320
#define SIM_MAX_DEVICES 16

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define SIM_ALIGN(x, a) (((x) + (a) - 1) & ~((size_t)(a) - 1))
#define SIM_PAGE 4096UL
#define SIM_BIG (2UL << 20)
#define container_of(p, t, m) ((t *)(void *)((char *)(p) - offsetof(t, m)))

#pragma GCC visibility push(default)

/* ---- options.c: one table of every SOMASIM_ variable ---- */

enum sim_quirk {
	SIM_Q_THRESHOLD_IGNORED,
	SIM_Q_SETACCESS_TAIL,
	SIM_Q_SETACCESS_SOME,
	SIM_Q_SETACCESS_WHOLE,
	SIM_Q_SETACCESS_LOST,
	SIM_Q_SETACCESS_HOST,
	SIM_Q_PHYS_KEPT,
	SIM_Q_RELEASE_LEAKS,
	SIM_Q_UNMAP_PARTIAL,
	SIM_Q_MAP_SETTLE,
	SIM_Q_FD_PER_HANDLE,
	SIM_Q_CREATE_CAP,
	SIM_Q_CREATE_CHUNK,
	SIM_Q_GRANULARITY_2M,
	SIM_Q_PEER_SETACCESS,
	SIM_Q_IPC_VMM,
	SIM_Q_MAP_FAILS,
	SIM_Q_NO_VMM,
	SIM_Q_CAPTURE_SPOILS,
	SIM_Q_IPC_PINNED,
	SIM_Q_POOL_OOM_LEAKS,
	SIM_Q_IMPORT_DEVICE0,
	SIM_Q_LAZY_QUEUES,
	SIM_Q_EXIT_MAPPED,
	SIM_Q_COUNT
};

struct sim_options {
	uint64_t vram;
	int devices;
	bool no_device;
	uint64_t seed;
	bool verbose;
	long delay_us;
	long delay_pct;
	long stall_pct, stall_ms;
	int hip;              /* 52, 57, 64, 72 (0 until libamdhip64 decides) */
	bool poison;
	bool lifo_handles;
	bool integrated;
	long settle_us;
	uint64_t create_cap;
	const char *fail, *cost, *arch;
	bool quirk[SIM_Q_COUNT];
};

extern struct sim_options sim_opt;
void sim_say_seed(void);
uint64_t sim_mix(uint64_t *state);

/* ---- calls.c: who called what, and what must fail ---- */

struct sim_thread {
	_Atomic uint64_t counts[SIM_MAX_CALLS];
	int depth;
	int verdict;          /* result forced on this call, 0 = none */
	bool stops;           /* before it returns from this call (somasim_hold) */
	int device;           /* HIP: current device */
	int last_error, last_command;
	int capture_mode;
	void *hip;            /* HIP: whatever else a thread needs */
	struct sim_thread *next, *prev;
};

extern __thread struct sim_thread *sim_tls __attribute__((tls_model("initial-exec")));
extern _Atomic unsigned char sim_special[SIM_MAX_CALLS];
extern _Atomic int sim_dead;
extern void (*_Atomic sim_thread_gone)(struct sim_thread *t);

struct sim_thread *sim_thread_new(void);
void sim_enter_slow(struct sim_thread *t, int id);
void sim_leave_slow(struct sim_thread *t);
void sim_register_names(int first, const char *const *names, int count);
int sim_call_id(const char *name);

/* Fast by design: a shim calls hipGetDevice on every hit. */
static inline struct sim_thread *sim_enter(int id)
{
	struct sim_thread *t = sim_tls;

	if (unlikely(!t))
		t = sim_thread_new();
	t->verdict = 0;
	if (t->depth++ == 0) {
		uint64_t n = atomic_load_explicit(&t->counts[id], memory_order_relaxed);

		atomic_store_explicit(&t->counts[id], n + 1, memory_order_relaxed);
		if (unlikely(atomic_load_explicit(&sim_special[id], memory_order_relaxed)))
			sim_enter_slow(t, id);
	}
	return t;
}

static inline void sim_leave(struct sim_thread *t)
{
	if (--t->depth == 0 && unlikely(t->stops))
		sim_leave_slow(t);
}

/* Calls that the device makes into its own exports are not the program's. */
static inline struct sim_thread *sim_self(void)
{
	struct sim_thread *t = sim_tls;

	return t ? t : sim_thread_new();
}

/* ---- range.c: address-ordered trees ---- */

struct sim_range {
	uintptr_t base;
	size_t size;
	size_t max;           /* largest size in this subtree */
	uint32_t prio;
	struct sim_range *l, *r;
};

void sim_range_insert(struct sim_range **root, struct sim_range *n);
void sim_range_remove(struct sim_range **root, struct sim_range *n);
struct sim_range *sim_range_floor(struct sim_range *root, uintptr_t addr);
struct sim_range *sim_range_next(struct sim_range *root, uintptr_t addr);
struct sim_range *sim_range_fit(struct sim_range *root, size_t size, size_t align);

/* A heap of address space: free ranges only, coalesced. */
struct sim_space {
	struct sim_range *free;
};

void sim_space_add(struct sim_space *s, uintptr_t base, size_t size);
uintptr_t sim_space_take(struct sim_space *s, size_t size, size_t align);

/* ---- memory.c: devices and the address map ---- */

enum sim_kind {
	SIM_DEVICE = 1,       /* VRAM */
	SIM_HOST,             /* allocated pinned */
	SIM_LOCKED,           /* the program's own memory, registered */
	SIM_MANAGED,
	SIM_SIGNAL,           /* value words of HSA signals */
	SIM_IMPORT,           /* another process's VRAM */
	SIM_MAPPED,           /* one VMM handle mapped into a reservation */
};

struct sim_alloc {
	struct sim_range r;   /* base and reserved span */
	size_t size;          /* as asked */
	enum sim_kind kind;
	int device;
	bool hip;             /* HIP knows it; raw HSA memory otherwise */
	unsigned flags;
	uint64_t id;
	void *userdata;
	uint32_t access;      /* devices that may touch it (VMM: read-write) */
	int sync_memops;
	int refs;             /* imports opened more than once */
	int slot;             /* ipc slot, -1 none */
	void *owner;          /* HIP: pool block, graph allocation, VMM chunk */
	int ownertype;
	void *alias;          /* registered memory: where the program has it */
	uint64_t token;
};

struct sim_device {
	int index;
	int fd;               /* memfd behind the arena, shared with importers */
	char *arena;
	size_t span;
	pthread_mutex_t lock;
	struct sim_space space;
	uint64_t total;
	_Atomic uint64_t used;
	int physfd;           /* memfd behind VMM handles that nobody exports */
	struct sim_space phys;
	uint64_t zombies;     /* exported, freed here, still open elsewhere */
};

extern struct sim_device sim_devices[SIM_MAX_DEVICES];

bool sim_memory_init(void);
bool sim_charge(int device, uint64_t bytes);
void sim_uncharge(int device, uint64_t bytes);
uint64_t sim_free_bytes(int device);
void *sim_device_alloc(int device, size_t size, unsigned flags);
void *sim_host_alloc(size_t size, unsigned flags, enum sim_kind kind, int device);
bool sim_find(const void *p, struct sim_alloc *out);
bool sim_update(const void *p, void (*fn)(struct sim_alloc *a, void *arg), void *arg);
/* Removes the allocation that contains p (or starts at it) and gives its
 * memory back. False: not there. */
bool sim_free(const void *p, bool interior);
bool sim_map_add(const struct sim_alloc *a);
bool sim_map_remove(const void *base, struct sim_alloc *out);
bool sim_map_each(uintptr_t *cursor, struct sim_alloc *out);
uint64_t sim_next_id(void);

/* The HSA pool that HIP allocates a device's memory from. */
uint64_t sim_pool_handle(int device, bool fine);

/* ---- ipc.c ---- */

struct sim_ipc_handle {       /* 32 bytes, as hsa_amd_ipc_memory_t */
	uint32_t magic;
	uint32_t pid;
	uint16_t fd, ctl;
	uint32_t slot;
	uint64_t token;
	uint64_t offset;
};

int sim_ipc_export(const struct sim_alloc *a, struct sim_ipc_handle *h);
void *sim_ipc_import(const struct sim_ipc_handle *h, size_t size, int device, bool share);
bool sim_ipc_close(void *p, bool any);
bool sim_ipc_pinned(int device, int slot);
void sim_ipc_freed(int device, int slot);
void sim_ipc_sweep(int device);
int sim_open_peer_fd(uint32_t pid, int fd);

/* ---- vmm.c: physical handles and reservations ---- */

struct sim_phys;

struct sim_phys *sim_phys_create(int device, size_t size, bool exportable);
struct sim_phys *sim_phys_import(int fd);
int sim_phys_export(struct sim_phys *h);
bool sim_phys_retain(struct sim_phys *h);
bool sim_phys_release(struct sim_phys *h);
bool sim_phys_info(struct sim_phys *h, int *device, size_t *size, bool *exportable);
struct sim_phys *sim_phys_at(const void *p);

int sim_vmm_reserve(void **out, size_t size, size_t align, void *hint);
int sim_vmm_unreserve(void *p, size_t size);
int sim_vmm_map(void *p, size_t size, struct sim_phys *h, bool hip);
int sim_vmm_unmap(void *p, size_t size, bool exact);
/* Before device work: mappings whose time has come (quirk map-settle). */
void sim_vmm_settle(void);
int sim_vmm_access(void *p, size_t size, int device, int prot);
int sim_vmm_get_access(const void *p, int device, int *prot);
bool sim_vmm_reserved(const void *p);
/* The message and the end of the process: a real GPU does no less. */
void sim_fault(const void *addr, const char *who, const char *why) __attribute__((noreturn));
/* Set while a thread executes device work, so that a fault can be named. */
extern __thread const char *sim_device_work __attribute__((tls_model("initial-exec")));

/* ---- signal.c ---- */
uint64_t sim_signal_new(int64_t value);
void *sim_signal_value(uint64_t handle);
void sim_signal_free(uint64_t handle);

#pragma GCC visibility pop

#endif
