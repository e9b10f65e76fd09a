/* SPDX-License-Identifier: MIT */
/*
 * Positions in the table of AMD's builds (6.0 and later, with rocprofiler-register).
 * HipDispatchTable is a size in bytes and then one pointer per function; new functions are only
 * ever appended. Position 0 is the first after the size. scripts/rocm-check.py compares each with
 * the header of every release that has one (hip/amd_detail/hip_api_trace.hpp).
 *
 * The C++ names of 5.x are in no table, and neither is the old name of hipGetDevicePropertiesR0000.
 */
#ifndef SS_SHIM_API_TABLE_H
#define SS_SHIM_API_TABLE_H

#define SS_TABLE(T) \
	T(hipArray3DCreate, 1) T(hipArrayCreate, 3) T(hipArrayDestroy, 4) \
	T(hipBindTexture, 7) T(hipBindTexture2D, 8) \
	T(hipConfigureCall, 13) T(hipCreateTextureObject, 15) T(hipCtxCreate, 16) T(hipCtxDestroy, 17) \
	T(hipCtxDisablePeerAccess, 18) T(hipCtxEnablePeerAccess, 19) \
	T(hipCtxPopCurrent, 26) T(hipCtxPushCurrent, 27) T(hipCtxSetCurrent, 29) \
	T(hipCtxSynchronize, 31) T(hipDeviceDisablePeerAccess, 38) \
	T(hipDeviceEnablePeerAccess, 39) T(hipDeviceGetAttribute, 41) \
	T(hipDeviceGetDefaultMemPool, 44) T(hipDeviceGetMemPool, 47) \
	T(hipDevicePrimaryCtxRelease, 56) T(hipDevicePrimaryCtxReset, 57) \
	T(hipDeviceReset, 60) T(hipDeviceSetLimit, 63) T(hipDeviceSetMemPool, 64) \
	T(hipDeviceSynchronize, 66) T(hipDeviceTotalMem, 67) \
	T(hipDrvGraphAddMemcpyNode, 71) T(hipDrvMemcpy2DUnaligned, 72) \
	T(hipDrvMemcpy3D, 73) T(hipDrvMemcpy3DAsync, 74) T(hipDrvPointerGetAttributes, 75) \
	T(hipEventCreate, 76) T(hipEventCreateWithFlags, 77) T(hipEventDestroy, 78) \
	T(hipEventElapsedTime, 79) T(hipEventQuery, 80) T(hipEventRecord, 81) \
	T(hipEventSynchronize, 82) T(hipExtLaunchKernel, 84) \
	T(hipExtLaunchMultiKernelMultiDevice, 85) T(hipExtMallocWithFlags, 86) \
	T(hipExtStreamCreateWithCUMask, 87) T(hipFree, 90) T(hipFreeArray, 91) \
	T(hipFreeAsync, 92) T(hipFreeHost, 93) T(hipFreeMipmappedArray, 94) \
	T(hipGetDevicePropertiesR0600, 105) T(hipGetDevicePropertiesR0000, 106) \
	T(hipGetLastError, 109) T(hipGraphAddEventRecordNode, 121) \
	T(hipGraphAddHostNode, 123) T(hipGraphAddMemAllocNode, 125) \
	T(hipGraphAddMemFreeNode, 126) T(hipGraphAddMemcpyNode, 127) \
	T(hipGraphAddMemcpyNode1D, 128) T(hipGraphAddMemsetNode, 131) \
	T(hipGraphEventRecordNodeSetEvent, 139) \
	T(hipGraphExecEventRecordNodeSetEvent, 144) \
	T(hipGraphExecMemcpyNodeSetParams, 148) T(hipGraphExecMemcpyNodeSetParams1D, 149) \
	T(hipGraphExecMemsetNodeSetParams, 152) T(hipGraphInstantiate, 159) \
	T(hipGraphInstantiateWithFlags, 160) T(hipGraphLaunch, 166) \
	T(hipGraphMemcpyNodeSetParams, 170) T(hipGraphMemcpyNodeSetParams1D, 171) \
	T(hipGraphMemsetNodeSetParams, 175) T(hipGraphUpload, 185) T(hipHostAlloc, 193) \
	T(hipHostFree, 194) T(hipHostMalloc, 197) T(hipHostRegister, 198) \
	T(hipHostUnregister, 199) T(hipIpcCloseMemHandle, 203) \
	T(hipIpcGetEventHandle, 204) T(hipIpcGetMemHandle, 205) \
	T(hipIpcOpenEventHandle, 206) T(hipIpcOpenMemHandle, 207) \
	T(hipLaunchCooperativeKernel, 211) T(hipLaunchCooperativeKernelMultiDevice, 212) \
	T(hipLaunchHostFunc, 213) T(hipLaunchKernel, 214) T(hipMalloc, 215) \
	T(hipMalloc3D, 216) T(hipMalloc3DArray, 217) T(hipMallocArray, 218) \
	T(hipMallocAsync, 219) T(hipMallocFromPoolAsync, 220) T(hipMallocHost, 221) \
	T(hipMallocManaged, 222) T(hipMallocMipmappedArray, 223) T(hipMallocPitch, 224) \
	T(hipMemAllocHost, 228) T(hipMemAllocPitch, 229) T(hipMemCreate, 230) \
	T(hipMemExportToShareableHandle, 231) T(hipMemGetAddressRange, 233) \
	T(hipMemGetInfo, 236) T(hipMemMap, 238) T(hipMemMapArrayAsync, 239) \
	T(hipMemPoolCreate, 240) T(hipMemPoolDestroy, 241) T(hipMemPoolExportPointer, 242) \
	T(hipMemPoolExportToShareableHandle, 243) T(hipMemPoolGetAccess, 244) \
	T(hipMemPoolGetAttribute, 245) T(hipMemPoolImportFromShareableHandle, 246) \
	T(hipMemPoolImportPointer, 247) T(hipMemPoolSetAccess, 248) \
	T(hipMemPoolSetAttribute, 249) T(hipMemPoolTrimTo, 250) \
	T(hipMemPrefetchAsync, 251) T(hipMemPtrGetInfo, 252) T(hipMemcpy, 259) \
	T(hipMemcpy2D, 260) T(hipMemcpy2DAsync, 261) T(hipMemcpy2DFromArray, 262) \
	T(hipMemcpy2DFromArrayAsync, 263) T(hipMemcpy2DToArray, 264) \
	T(hipMemcpy2DToArrayAsync, 265) T(hipMemcpy3D, 266) T(hipMemcpyFromArray, 274) \
	T(hipLaunchByPtr, 210) T(hipTexObjectCreate, 353) T(hipTexRefSetAddress, 368) \
	T(hipTexRefSetAddress2D, 369) T(hipMemcpyFromSymbol, 275) T(hipMemcpyToArray, 284) T(hipMemcpyToSymbol, 285) \
	T(hipGetChannelDesc, 101) T(hipMemcpy3DAsync, 267) T(hipMemcpyAsync, 268) \
	T(hipMemcpyDtoD, 270) T(hipMemcpyDtoDAsync, 271) T(hipMemcpyDtoH, 272) \
	T(hipMemcpyDtoHAsync, 273) T(hipMemcpyFromSymbolAsync, 276) T(hipMemcpyHtoD, 278) \
	T(hipMemcpyHtoDAsync, 279) T(hipMemcpyParam2D, 280) T(hipMemcpyParam2DAsync, 281) \
	T(hipMemcpyPeer, 282) T(hipMemcpyPeerAsync, 283) T(hipMemcpyToSymbolAsync, 286) \
	T(hipMemcpyWithStream, 287) T(hipMemset, 288) T(hipMemset2D, 289) \
	T(hipMemset2DAsync, 290) T(hipMemset3D, 291) T(hipMemset3DAsync, 292) \
	T(hipMemsetAsync, 293) T(hipMemsetD16, 294) T(hipMemsetD16Async, 295) \
	T(hipMemsetD32, 296) T(hipMemsetD32Async, 297) T(hipMemsetD8, 298) \
	T(hipMemsetD8Async, 299) T(hipMipmappedArrayCreate, 300) \
	T(hipModuleGetGlobal, 304) T(hipModuleLaunchCooperativeKernel, 306) \
	T(hipModuleLaunchCooperativeKernelMultiDevice, 307) T(hipModuleLaunchKernel, 308) \
	T(hipModuleLoad, 309) T(hipModuleLoadData, 310) T(hipModuleLoadDataEx, 311) \
	T(hipPeekAtLastError, 320) T(hipPointerGetAttribute, 321) \
	T(hipPointerGetAttributes, 322) T(hipPointerSetAttribute, 323) \
	T(hipSetDevice, 327) T(hipSignalExternalSemaphoresAsync, 330) \
	T(hipStreamAddCallback, 331) T(hipStreamAttachMemAsync, 332) \
	T(hipStreamBeginCapture, 333) T(hipStreamCreate, 334) \
	T(hipStreamCreateWithFlags, 335) T(hipStreamCreateWithPriority, 336) \
	T(hipStreamDestroy, 337) T(hipStreamEndCapture, 338) T(hipStreamQuery, 345) \
	T(hipStreamSynchronize, 346) T(hipStreamWaitEvent, 348) \
	T(hipStreamWaitValue32, 349) T(hipStreamWaitValue64, 350) \
	T(hipStreamWriteValue32, 351) T(hipStreamWriteValue64, 352) \
	T(hipThreadExchangeStreamCaptureMode, 381) T(hipWaitExternalSemaphoresAsync, 386) \
	T(hipExtModuleLaunchKernel, 388) T(hipHccModuleLaunchKernel, 389) \
	T(hipMemcpy_spt, 390) T(hipMemcpyToSymbol_spt, 391) \
	T(hipMemcpyFromSymbol_spt, 392) T(hipMemcpy2D_spt, 393) \
	T(hipMemcpy2DFromArray_spt, 394) T(hipMemcpy3D_spt, 395) T(hipMemset_spt, 396) \
	T(hipMemsetAsync_spt, 397) T(hipMemset2D_spt, 398) T(hipMemset2DAsync_spt, 399) \
	T(hipMemset3DAsync_spt, 400) T(hipMemset3D_spt, 401) T(hipMemcpyAsync_spt, 402) \
	T(hipMemcpy3DAsync_spt, 403) T(hipMemcpy2DAsync_spt, 404) \
	T(hipMemcpyFromSymbolAsync_spt, 405) T(hipMemcpyToSymbolAsync_spt, 406) \
	T(hipMemcpyFromArray_spt, 407) T(hipMemcpy2DToArray_spt, 408) \
	T(hipMemcpy2DFromArrayAsync_spt, 409) T(hipMemcpy2DToArrayAsync_spt, 410) \
	T(hipStreamQuery_spt, 411) T(hipStreamSynchronize_spt, 412) \
	T(hipStreamWaitEvent_spt, 414) T(hipStreamAddCallback_spt, 416) \
	T(hipEventRecord_spt, 417) T(hipLaunchCooperativeKernel_spt, 418) \
	T(hipLaunchKernel_spt, 419) T(hipGraphLaunch_spt, 420) \
	T(hipStreamBeginCapture_spt, 421) T(hipStreamEndCapture_spt, 422) \
	T(hipLaunchHostFunc_spt, 426) T(hipDrvGraphAddMemsetNode, 428) \
	T(hipGraphAddNode, 437) T(hipGraphInstantiateWithParams, 438) \
	T(hipExtGetLastError, 439) T(hipGetProcAddress, 442) \
	T(hipStreamBeginCaptureToGraph, 443) T(hipMemcpyAtoD, 446) T(hipMemcpyDtoA, 447) \
	T(hipMemcpyAtoHAsync, 449) T(hipMemcpyHtoAAsync, 450) \
	T(hipDrvGraphExecMemcpyNodeSetParams, 453) \
	T(hipDrvGraphExecMemsetNodeSetParams, 454) T(hipGraphNodeSetParams, 456) \
	T(hipGraphExecNodeSetParams, 457) T(hipDrvGraphMemcpyNodeSetParams, 460) \
	T(hipStreamBatchMemOp, 463) T(hipEventRecordWithFlags, 473) \
	T(hipLaunchKernelExC, 474) T(hipDrvLaunchKernelEx, 475) \
	T(hipMemGetHandleForAddressRange, 476) T(hipMemsetD2D8, 478) \
	T(hipMemsetD2D8Async, 479) T(hipMemsetD2D16, 480) T(hipMemsetD2D16Async, 481) \
	T(hipMemsetD2D32, 482) T(hipMemsetD2D32Async, 483) T(hipModuleLoadFatBinary, 486) \
	T(hipMemcpyBatchAsync, 487) T(hipMemcpy3DBatchAsync, 488) \
	T(hipMemcpy3DPeerAsync, 490) T(hipGetDriverEntryPoint, 491) \
	T(hipGetDriverEntryPoint_spt, 492) T(hipMemPrefetchAsync_v2, 493) \
	T(hipLibraryLoadData, 496) T(hipLibraryLoadFromFile, 497) T(hipMemcpy3DPeer, 489) \
	T(hipGetProcAddress_spt, 506) T(hipMemGetMemPool, 512) T(hipMemSetMemPool, 511) \
	T(hipMemPrefetchBatchAsync, 517) T(hipMemDiscardBatchAsync, 537) \
	T(hipDrvMemDiscardBatchAsync, 538) T(hipMemDiscardAndPrefetchBatchAsync, 539) \
	T(hipDrvMemDiscardAndPrefetchBatchAsync, 540) T(hipExecutionCtxStreamCreate, 522) \
	T(hipExecutionCtxDestroy, 521) T(hipExecutionCtxSynchronize, 533) \
	T(hipLibraryGetGlobal, 535) T(hipLibraryGetManaged, 536) \
	T(hipMemGetDefaultMemPool, 541) T(hipInitDevice, 543) \
	T(hipDeviceFlushGPUDirectRDMAWrites, 545) T(hipLibraryGetModule, 546) \
	T(hipExecutionCtxRecordEvent, 532) T(hipExecutionCtxWaitEvent, 534) \
	T(hipGraphCreate, 134) T(hipGraphClone, 133) T(hipGraphDestroy, 136) \
	T(hipGraphExecDestroy, 143) T(hipGraphAddChildGraphNode, 118) \
	T(hipGraphExecChildGraphNodeSetParams, 142) \
	T(hipGraphExecKernelNodeSetParams, 147) T(hipGraphNodeSetEnabled, 181) \
	T(hipGraphAddMemcpyNodeFromSymbol, 129) \
	T(hipGraphMemcpyNodeSetParamsFromSymbol, 172) \
	T(hipGraphExecMemcpyNodeSetParamsFromSymbol, 150) \
	T(hipGraphAddMemcpyNodeToSymbol, 130) T(hipGraphMemcpyNodeSetParamsToSymbol, 173) \
	T(hipGraphExecMemcpyNodeSetParamsToSymbol, 151) \
	T(hipGraphExecUpdate, 153) T(hipGraphicsMapResources, 188) \
	T(hipImportExternalMemory, 200) T(hipMemAdvise, 227) \
	T(hipMemImportFromShareableHandle, 237) T(hipMemRelease, 255) \
	T(hipMemRetainAllocationHandle, 256) \
	T(hipMipmappedArrayDestroy, 301) T(hipDrvGraphAddMemFreeNode, 452) \
	T(hipMemSetAccess, 257) T(hipMemUnmap, 258) T(hipMemAdvise_v2, 494)

#endif
