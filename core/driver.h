/* SPDX-License-Identifier: MIT */
/*
 * The only door from the core to a device. driver/ implements it on a real
 * ROCm, tests/fake on a virtual clock, `somashim replay` on nothing at all.
 *
 * Rules of the door:
 *  - the core calls every operation with none of its locks held, from any
 *    thread, and an operation may call back into the exported hip* symbols;
 *  - an operation that fails changes nothing;
 *  - `native` stream handles are the runtime's own (NULL is the null stream of
 *    the given device, SS_NATIVE_PER_THREAD the calling thread's stream).
 */
#ifndef SS_CORE_DRIVER_H
#define SS_CORE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_MAX_DEVICES 64
#define SS_NATIVE_PER_THREAD ((void *)2)

enum ss_status {
	SS_OK = 0,
	SS_ERR_NOMEM,       /* the device (or a cap) has no room */
	SS_ERR_INVALID,     /* bad argument */
	SS_ERR_FOREIGN,     /* the pointer or handle is not ours: pass it on */
	SS_ERR_NOT_READY,   /* a fence has not been reached */
	SS_ERR_UNSUPPORTED, /* this runtime or device cannot do it */
	SS_ERR_NO_DEVICE,
	SS_ERR_CAPTURE,     /* not legal while a capture is live */
	SS_ERR_DEVICE,      /* wrong device for this pool or stream */
	SS_ERR_CLASSIC,     /* a hipMalloc block: free it the way hipFree does */
	SS_ERR_FAILED,      /* the runtime said no for another reason */
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
	static const char *const names[SS_BACKING_COUNT] = { "auto", "hip", "hsa", "vmm" };

	return names[backing];
}

enum ss_fence_kind {
	SS_FENCE_AUTO = 0,
	SS_FENCE_EVENT,  /* a pooled event, timing disabled */
	SS_FENCE_SIGNAL, /* a value written by the stream into an HSA signal */
};

/* A recorded point of a stream. Owned by the core from a successful
 * fence_record to fence_release; opaque to it. */
struct ss_fence {
	void *h;
	uint64_t value;
	uint32_t kind;
	int32_t device;
};

struct ss_device_info {
	char name[64];
	uint64_t total_bytes;
	enum ss_backing best; /* of stream-ordered pools, for SS_BACKING_AUTO */
	/* Smallest chunk VMM should map, a power of two or a multiple of 2 MiB; 0 = no VMM. */
	uint64_t chunk_bytes;
	bool no_hsa;          /* no segments from HSA */
	/* A fence must not be asked for while its stream is captured, or any if it is gone. */
	bool query_spoils;
	bool unmap_at_exit; /* or the runtime crashes then */
	bool access_prefix;   /* access only to ranges that begin with the reservation */
	bool integrated;      /* an APU: host and device share memory */
	bool release_waits[SS_BACKING_COUNT]; /* giving back waits for the device */
};

struct ss_driver {
	void *ctx; /* handed to every operation */

	int (*device_count)(void *ctx);
	enum ss_status (*device_info)(void *ctx, int dev, struct ss_device_info *out);
	/* What the device itself reports, in bytes; NULL outputs allowed. */
	enum ss_status (*mem_info)(void *ctx, int dev, uint64_t *free_bytes,
				   uint64_t *total_bytes);

	/* Whole segments. `size` is a multiple of 2 MiB. `peers` (bit per
	 * device) get access too. Where that fails there may be a segment all the
	 * same, *ptr, which is to be freed; otherwise *ptr stays as it was. */
	enum ss_status (*segment_alloc)(void *ctx, int dev, enum ss_backing backing,
					size_t size, uint64_t peers, void **ptr);
	enum ss_status (*segment_free)(void *ctx, int dev, enum ss_backing backing,
				       void *ptr, size_t size);
	enum ss_status (*segment_access)(void *ctx, int dev, enum ss_backing backing,
					 void *ptr, size_t size, uint64_t peers);

	/* Virtual memory. Sizes and addresses are multiples of chunk_bytes.
	 * `map` covers exactly one chunk; access is given by `set_access`. */
	enum ss_status (*vmm_reserve)(void *ctx, int dev, size_t size, void **va);
	enum ss_status (*vmm_unreserve)(void *ctx, int dev, void *va, size_t size);
	enum ss_status (*chunk_create)(void *ctx, int dev, size_t size, void **chunk);
	enum ss_status (*chunk_release)(void *ctx, int dev, void *chunk, size_t size);
	enum ss_status (*map)(void *ctx, int dev, void *va, size_t size, void *chunk);
	enum ss_status (*unmap)(void *ctx, int dev, void *va, size_t size);
	enum ss_status (*set_access)(void *ctx, int dev, void *va, size_t size,
				     uint64_t peers);
	/* What was mapped and opened this moment is known to be usable when this
	 * returns; its contents are lost. May be NULL. */
	enum ss_status (*settle)(void *ctx, int dev, void *va, size_t size);
	/* The limit of the process, not of the device, that made a call fail with
	 * SS_ERR_NOMEM since the last question; false: none did. May be NULL. */
	bool (*limit)(void *ctx, char *out, size_t size);

	/* Fences. record: everything enqueued on the stream before this call.
	 * SS_ERR_CAPTURE where recording would disturb a live capture. query
	 * never blocks. wait makes a stream (not the host) wait. */
	enum ss_status (*fence_record)(void *ctx, int dev, void *native,
				       struct ss_fence *out);
	enum ss_status (*fence_query)(void *ctx, const struct ss_fence *fence);
	enum ss_status (*fence_wait)(void *ctx, int dev, void *native,
				     const struct ss_fence *fence);
	void (*fence_release)(void *ctx, struct ss_fence *fence);
	/* SS_OK: nothing is left to do on the stream. May be NULL, and may fail to
	 * know it; never blocks. */
	enum ss_status (*stream_idle)(void *ctx, int dev, void *native);

	/* Monotonic milliseconds and a bounded sleep (virtual in tests). */
	uint64_t (*now_ms)(void *ctx);
	bool real_time; /* which the processor's own counter goes with */
	void (*sleep_ms)(void *ctx, unsigned ms);
	/* Lets others run for an instant. NULL where nothing moves meanwhile. */
	void (*pause)(void *ctx);
	/* A short sleep of about `us` microseconds; how many it took. NULL: nobody
	 * waits for less than out of memory. */
	uint64_t (*nap)(void *ctx, unsigned us);
};

#endif
