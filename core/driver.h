/* SPDX-License-Identifier: MIT */
/*
 * The operations through which the core uses a device. driver/rocm implements them on the real
 * runtime, driver/fake on a device of bookkeeping for tests and `somashim replay`, and tests/oracle
 * on its model.
 *
 * Rules:
 *  - the core calls every operation from any thread and with none of its locks held, because an
 *    operation may call back into the exported hip* symbols;
 *  - an operation that fails changes nothing, unless it says otherwise;
 *  - sizes are bytes; a set of devices is a uint64_t with one bit per device number;
 *  - `native` is a stream handle of the runtime: NULL is the null stream of the given device,
 *    SS_NATIVE_PER_THREAD the calling thread's stream.
 */
#ifndef SS_CORE_DRIVER_H
#define SS_CORE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/limits.h"

#define SS_NATIVE_PER_THREAD ((void *)2)

enum ss_status {
	SS_OK = 0,
	SS_ERR_NOMEM,       /* the device, or a limit, has no room */
	SS_ERR_INVALID,     /* bad argument */
	SS_ERR_FOREIGN,     /* the pointer or handle is not ours: pass it on */
	SS_ERR_NOT_READY,   /* a fence has not been reached */
	SS_ERR_UNSUPPORTED, /* this runtime or device cannot do it */
	SS_ERR_NO_DEVICE,
	SS_ERR_CAPTURE,    /* not legal while a capture is live */
	SS_ERR_DEVICE,     /* wrong device for this pool or stream */
	SS_ERR_CLASSIC,    /* a hipMalloc block: free it the way hipFree does */
	SS_ERR_WOULD_WAIT, /* of the core alone: a map would wait for work, and must not */
	SS_ERR_FAILED,     /* the runtime refused for another reason */
};

enum ss_backing {
	SS_BACKING_AUTO = 0,
	SS_BACKING_HIP, /* segments from hipExtMallocWithFlags(.., 0) */
	SS_BACKING_HSA, /* segments from hsa_amd_memory_pool_allocate */
	SS_BACKING_VMM, /* hipMemCreate chunks mapped into one reservation */
	SS_BACKING_COUNT,
};

static inline const char *ss_backing_name(enum ss_backing backing)
{
	static const char *const names[SS_BACKING_COUNT] = {"auto", "hip", "hsa", "vmm"};

	return names[backing];
}

enum ss_fence_kind {
	SS_FENCE_AUTO = 0,
	SS_FENCE_EVENT,  /* a pooled event, timing disabled */
	SS_FENCE_SIGNAL, /* a value written by the stream into an HSA signal */
};

/* A recorded point of a stream. The core owns it from a successful fence_record to fence_release,
 * but does not look into it. */
struct ss_fence {
	void *h;
	uint64_t value;
	uint32_t kind;
	int32_t device;
};

struct ss_device_info {
	char name[64];
	/* All that can be had, as far as is known: what the runtime calls the total or, where that
	 * is more, what it says is free (APUs). No limit: more may come to be free. */
	uint64_t total_bytes;
	uint64_t most_bytes;  /* nobody can have more; 0: total_bytes */
	enum ss_backing best; /* what SS_BACKING_AUTO means for stream-ordered pools */
	/* Smallest chunk that VMM should map, a power of two or a multiple of 2 MiB; 0: no VMM. */
	uint64_t chunk_bytes;
	bool no_hsa; /* SS_BACKING_HSA does not work */
	/* Querying a fence of a stream that is being captured would end the capture. If the stream
	 * has been destroyed, this holds while any stream is captured. */
	bool query_spoils;
	bool unmap_at_exit; /* the runtime crashes at exit if mappings are left */
	/* An unmap waits for the work of every device, not only of this one, and a map for none.
	 * So nothing is unmapped before the devices were found idle, not even after a failure. */
	bool unmap_waits_all;
	/* A map waits for the work of the null stream, and of the streams that join it, of its
	 * device */
	bool map_waits;
	/* The runtime crashes if memory to which nobody has access is unmapped */
	bool keep_unopened;
	bool access_prefix; /* set_access works only on ranges that start with the reservation */
	bool integrated;    /* an APU: host and device share memory */
	bool release_waits[SS_BACKING_COUNT]; /* a release waits for the device */
};

struct ss_driver {
	void *ctx; /* handed to every operation */

	int (*device_count)(void *ctx);
	enum ss_status (*device_info)(void *ctx, int dev, struct ss_device_info *out);
	/* The device's own figures, in bytes; NULL outputs allowed. */
	enum ss_status (*mem_info)(void *ctx, int dev, uint64_t *free_bytes, uint64_t *total_bytes);

	/* Whole segments. `size` is a multiple of 2 MiB. The devices in `peers` get access, too. If
	 * the devices get no access, *ptr may be set in spite of the error: then there is a
	 * segment, which the caller must free. Otherwise *ptr is unchanged on failure. */
	enum ss_status (*segment_alloc)(void *ctx, int dev, enum ss_backing backing, size_t size,
					uint64_t peers, void **ptr);
	enum ss_status (*segment_free)(void *ctx, int dev, enum ss_backing backing, void *ptr,
				       size_t size);
	enum ss_status (*segment_access)(void *ctx, int dev, enum ss_backing backing, void *ptr,
					 size_t size, uint64_t peers);

	/* Virtual memory. Sizes and addresses are multiples of chunk_bytes. `map` maps exactly one
	 * whole chunk, which cannot be used before set_access has given access to it. */
	enum ss_status (*vmm_reserve)(void *ctx, int dev, size_t size, void **va);
	enum ss_status (*vmm_unreserve)(void *ctx, int dev, void *va, size_t size);
	enum ss_status (*chunk_create)(void *ctx, int dev, size_t size, void **chunk);
	enum ss_status (*chunk_release)(void *ctx, int dev, void *chunk, size_t size);
	enum ss_status (*map)(void *ctx, int dev, void *va, size_t size, void *chunk);
	enum ss_status (*unmap)(void *ctx, int dev, void *va, size_t size);
	enum ss_status (*set_access)(void *ctx, int dev, void *va, size_t size, uint64_t peers);
	/* Returns when memory that was just mapped and given access to can really be used.
	 * Overwrites its contents. NULL: it always can. */
	enum ss_status (*settle)(void *ctx, int dev, void *va, size_t size);
	/* Describes the limit of the process, not of the device, that made a call fail with
	 * SS_ERR_NOMEM since this was last asked. False: there was none. May be NULL. */
	bool (*limit)(void *ctx, char *out, size_t size);

	/* Fences. fence_record covers everything enqueued on the stream before the call;
	 * SS_ERR_CAPTURE: recording would disturb a live capture. fence_query never blocks:
	 * SS_ERR_NOT_READY. fence_wait makes the stream wait, not the host. */
	enum ss_status (*fence_record)(void *ctx, int dev, void *native, struct ss_fence *out);
	enum ss_status (*fence_query)(void *ctx, const struct ss_fence *fence);
	enum ss_status (*fence_wait)(void *ctx, int dev, void *native,
				     const struct ss_fence *fence);
	void (*fence_release)(void *ctx, struct ss_fence *fence);
	/* SS_OK: the stream has nothing left to do. An error does not mean that it has. Never
	 * blocks. */
	enum ss_status (*stream_idle)(void *ctx, int dev, void *native);

	/* A monotonic clock in milliseconds, and a sleep. Tests make both virtual. */
	uint64_t (*now_ms)(void *ctx);
	void (*sleep_ms)(void *ctx, unsigned ms);
	/* Lets other threads run for an instant. NULL if nothing changes in the meantime. */
	void (*pause)(void *ctx);
	/* Sleeps for about `us` microseconds and returns how many it took, at least as many, so
	 * that naps add up though the clock may stand still. NULL: an allocation
	 * waits for pending frees only when memory is out (pool/growth_wait.c). */
	uint64_t (*nap)(void *ctx, unsigned us);
};

#endif
