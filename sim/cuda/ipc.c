/* SPDX-License-Identifier: MIT */
/* Memory and events that other processes open. */
#include <string.h>

#include "cuda/context.h"

_Static_assert(sizeof(hipIpcMemHandle_t) == sizeof(CUipcMemHandle), "IPC handles");
_Static_assert(sizeof(hipIpcEventHandle_t) == sizeof(CUipcEventHandle), "IPC handles");

hipError_t i_hipIpcGetMemHandle(hipIpcMemHandle_t *h, void *p)
{
	ENTER();
	if (!h || !p)
		return hipErrorInvalidValue;
	return to_hip(RELAXED(CU(cuIpcGetMemHandle, (CUipcMemHandle *)h, address(p))));
}

hipError_t i_hipIpcOpenMemHandle(void **p, hipIpcMemHandle_t h, unsigned flags)
{
	CUipcMemHandle c;
	CUdeviceptr d = 0;
	CUresult r;

	ENTER();
	/* hipIpcMemLazyEnablePeerAccess was 0 in 5.2 and is 1 now; nothing else is legal. */
	if (!p || flags > 1 || (V6 && !flags))
		return hipErrorInvalidValue;
	memcpy(&c, &h, sizeof(c));
	r = CU(cuIpcOpenMemHandle, &d, c, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	if (r == CUDA_ERROR_INVALID_HANDLE || r == CUDA_ERROR_MAP_FAILED || r == CUDA_ERROR_UNKNOWN)
		return hipErrorInvalidDevicePointer; /* what is behind the handle is gone */
	return given(p, &d, r);
}

hipError_t i_hipIpcCloseMemHandle(void *p)
{
	ENTER();
	if (!p)
		return hipErrorInvalidValue;
	return to_hip(CU(cuIpcCloseMemHandle, address(p)));
}

hipError_t i_hipIpcGetEventHandle(hipIpcEventHandle_t *h, hipEvent_t ev)
{
	ENTER();
	if (!h || !handle_known(HANDLE_EVENT, ev))
		return hipErrorInvalidValue;
	return to_hip(CU(cuIpcGetEventHandle, (CUipcEventHandle *)h, (CUevent)ev));
}

hipError_t i_hipIpcOpenEventHandle(hipEvent_t *ev, hipIpcEventHandle_t h)
{
	CUipcEventHandle c;
	CUresult r;

	ENTER();
	if (!ev)
		return hipErrorInvalidValue;
	memcpy(&c, &h, sizeof(c));
	r = CU(cuIpcOpenEventHandle, (CUevent *)ev, c);
	if (!r)
		handle_add(HANDLE_EVENT, *ev, current_device());
	return to_hip(r);
}
