/* SPDX-License-Identifier: MIT */
/*
 * The exports that the software device has and this one has not. They return hipErrorNotSupported,
 * as do the rows of hip/hip_unsupported.h. An export without a row here and without a function does
 * not link.
 */
#include <hip/hip_runtime_api.h>

/* The parameters are not looked at, so they are not declared. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define U(name) \
	hipError_t i_##name(void) \
	{ \
		return hipErrorNotSupported; \
	}

/* clang-format off */
U(__hipPopCallConfiguration)
U(__hipPushCallConfiguration)
U(hipConfigureCall)
U(hipDeviceGetExecutionCtx)
U(hipDrvLaunchKernelEx)
U(hipExecutionCtxDestroy)
U(hipExecutionCtxGetDevice)
U(hipExecutionCtxRecordEvent)
U(hipExecutionCtxStreamCreate)
U(hipExecutionCtxSynchronize)
U(hipExecutionCtxWaitEvent)
U(hipExtGetLinkTypeAndHopCount)
U(hipExtLaunchKernel)
U(hipExtLaunchMultiKernelMultiDevice)
U(hipFuncGetAttribute)
U(hipFuncGetAttributes)
U(hipFuncSetAttribute)
U(hipFuncSetCacheConfig)
U(hipGetSymbolAddress)
U(hipGetSymbolSize)
U(hipGraphAddKernelNode)
U(hipGraphAddMemcpyNodeFromSymbol)
U(hipGraphAddMemcpyNodeToSymbol)
U(hipGraphEventRecordNodeSetEvent)
U(hipGraphExecEventRecordNodeSetEvent)
U(hipGraphExecKernelNodeSetParams)
U(hipGraphKernelNodeGetParams)
U(hipGraphKernelNodeSetParams)
U(hipGreenCtxCreate)
U(hipHccModuleLaunchKernel)
U(hipLaunchByPtr)
U(hipLaunchCooperativeKernel)
U(hipLaunchCooperativeKernelMultiDevice)
U(hipLaunchKernelExC)
U(hipLibraryGetGlobal)
U(hipLibraryGetManaged)
U(hipLibraryGetModule)
U(hipLibraryLoadData)
U(hipLibraryLoadFromFile)
U(hipLibraryUnload)
U(hipMemGetDefaultMemPool)
U(hipMemGetMemPool)
U(hipMemRangeGetAttribute)
U(hipMemSetMemPool)
U(hipMemcpy2DFromArray_spt)
U(hipMemcpy2DToArray_spt)
U(hipMemcpyBatchAsync)
U(hipMemcpyFromArray_spt)
U(hipMemcpyFromSymbol)
U(hipMemcpyFromSymbolAsync)
U(hipMemcpyFromSymbol_spt)
U(hipMemcpyToSymbol)
U(hipMemcpyToSymbolAsync)
U(hipMemcpyToSymbol_spt)
U(hipModuleLaunchCooperativeKernel)
U(hipModuleLaunchCooperativeKernelMultiDevice)
U(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor)
U(hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
U(hipModuleOccupancyMaxPotentialBlockSize)
U(hipModuleOccupancyMaxPotentialBlockSizeWithFlags)
U(hipOccupancyMaxActiveBlocksPerMultiprocessor)
U(hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
U(hipOccupancyMaxPotentialBlockSize)
U(hipStreamBatchMemOp)
U(hipStreamBeginCaptureToGraph)
U(hipUserObjectCreate)
U(hipUserObjectRelease)
U(hipUserObjectRetain)
