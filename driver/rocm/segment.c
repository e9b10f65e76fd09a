/* SPDX-License-Identifier: MIT */
/*
 * Whole segments. Segments of HIP come from hipExtMallocWithFlags(.., 0), which hipMalloc calls
 * inside, and which is legal while a stream captures (observed). HIP knows such memory fully,
 * so the memory can be exported and opened to peers. No locks.
 */
#include "driver/rocm/calls.h"
#include "driver/rocm/hsa.h"
#include "driver/rocm/segment.h"

enum ss_status ss_rocm_segment_alloc(void *ctx, int dev, enum ss_backing backing, size_t size,
				     uint64_t peers, void **ptr)
{
	enum ss_status status;
	struct ss_scope s;
	void *p = NULL;

	if (backing == SS_BACKING_HSA)
		return ss_rocm_hsa_alloc(dev, size, peers, ptr);
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	status = ss_rocm_status(SS_HIP(hipExtMallocWithFlags, &p, size, hipDeviceMallocDefault));
	ss_scope_close(&s);
	if (status != SS_OK)
		return status;
	*ptr = p;
	if (peers & ~(1ull << dev))
		status = ss_rocm_segment_access(ctx, dev, backing, p, size, peers);
	return status;
}

enum ss_status ss_rocm_segment_free(void *ctx, int dev, enum ss_backing backing, void *ptr,
				    size_t size)
{
	hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
	enum ss_status status;
	struct ss_scope s;
	bool relaxed;

	(void)ctx;
	(void)size;
	if (backing == SS_BACKING_HSA)
		return ss_rocm_hsa_free(ptr);
	/* hipFree waits for the device and would end a capture. Relaxed mode protects a
	 * capture that begins between this check and the call. */
	if (ss_capture_live())
		return SS_ERR_CAPTURE;
	if (!ss_scope_open(&s, dev))
		return SS_ERR_NO_DEVICE;
	relaxed = SS_HIP(hipThreadExchangeStreamCaptureMode, &mode) == hipSuccess;
	status = ss_rocm_status(SS_HIP(hipFree, ptr));
	if (relaxed)
		(void)SS_HIP(hipThreadExchangeStreamCaptureMode, &mode);
	ss_scope_close(&s);
	return status;
}

/* HIP gives a peer access to all memory of a device or to none, so the access list of a pool
 * is set through ROCr, as HIP's own pools do. Without ROCr the peer gets access to all. */
enum ss_status ss_rocm_segment_access(void *ctx, int dev, enum ss_backing backing, void *ptr,
				      size_t size, uint64_t peers)
{
	enum ss_status status = ss_rocm_hsa_access(dev, ptr, peers);

	(void)ctx;
	(void)backing;
	(void)size;
	if (status != SS_ERR_UNSUPPORTED)
		return status;
	for (int i = 0; i < ss_rocm_devices; i++) {
		struct ss_scope s;
		hipError_t err;

		if (i == dev || !(peers >> i & 1))
			continue;
		if (!ss_scope_open(&s, i))
			return SS_ERR_NO_DEVICE;
		err = SS_HIP(hipDeviceEnablePeerAccess, dev, 0);
		ss_scope_close(&s);
		if (err != hipSuccess && err != hipErrorPeerAccessAlreadyEnabled)
			return ss_rocm_status(err);
	}
	return SS_OK;
}
