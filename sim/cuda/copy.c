/* SPDX-License-Identifier: MIT */
/* Copies of lines. Addresses are unified, so the driver needs no direction. */
#include "cuda/context.h"
#include "cuda/copy.h"

hipError_t i_hipMemcpy(void *dst, const void *src, size_t n, hipMemcpyKind kind)
{
	ENTER();
	if (!copy_kind_known(kind))
		return hipErrorInvalidMemcpyDirection;
	if (!n)
		return hipSuccess;
	if (!dst || !src)
		return hipErrorInvalidValue;
	return to_hip(CU(cuMemcpy, address(dst), address(src), n));
}

hipError_t i_hipMemcpyAsync(void *dst, const void *src, size_t n, hipMemcpyKind kind, hipStream_t s)
{
	ENTER_STREAM(s);
	if (!copy_kind_known(kind))
		return hipErrorInvalidMemcpyDirection;
	if (!n)
		return hipSuccess;
	if (!dst || !src)
		return hipErrorInvalidValue;
	return to_hip(CU(cuMemcpyAsync, address(dst), address(src), n, (CUstream)s));
}

hipError_t i_hipMemcpyWithStream(void *dst, const void *src, size_t n, hipMemcpyKind kind,
				 hipStream_t s)
{
	hipError_t e = i_hipMemcpyAsync(dst, src, n, kind, s);

	return e || !n ? e : to_hip(CU(cuStreamSynchronize, (CUstream)s));
}

hipError_t i_hipMemcpy_spt(void *dst, const void *src, size_t n, hipMemcpyKind kind)
{
	return i_hipMemcpyWithStream(dst, src, n, kind, hipStreamPerThread);
}

hipError_t i_hipMemcpyHtoD(hipDeviceptr_t dst, void *src, size_t n)
{
	return i_hipMemcpy(dst, src, n, hipMemcpyHostToDevice);
}

hipError_t i_hipMemcpyDtoH(void *dst, hipDeviceptr_t src, size_t n)
{
	return i_hipMemcpy(dst, src, n, hipMemcpyDeviceToHost);
}

hipError_t i_hipMemcpyDtoD(hipDeviceptr_t dst, hipDeviceptr_t src, size_t n)
{
	return i_hipMemcpy(dst, src, n, hipMemcpyDeviceToDevice);
}

hipError_t i_hipMemcpyHtoDAsync(hipDeviceptr_t dst, void *src, size_t n, hipStream_t s)
{
	return i_hipMemcpyAsync(dst, src, n, hipMemcpyHostToDevice, s);
}

hipError_t i_hipMemcpyDtoHAsync(void *dst, hipDeviceptr_t src, size_t n, hipStream_t s)
{
	return i_hipMemcpyAsync(dst, src, n, hipMemcpyDeviceToHost, s);
}

hipError_t i_hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t n, hipStream_t s)
{
	return i_hipMemcpyAsync(dst, src, n, hipMemcpyDeviceToDevice, s);
}

hipError_t i_hipMemcpyPeer(void *dst, int to, const void *src, int from, size_t n)
{
	STARTED();
	if (check_device(to) || check_device(from))
		return hipErrorInvalidDevice;
	return i_hipMemcpy(dst, src, n, hipMemcpyDeviceToDevice);
}

hipError_t i_hipMemcpyPeerAsync(void *dst, int to, const void *src, int from, size_t n,
				hipStream_t s)
{
	STARTED();
	if (check_device(to) || check_device(from))
		return hipErrorInvalidDevice;
	return i_hipMemcpyAsync(dst, src, n, hipMemcpyDeviceToDevice, s);
}
