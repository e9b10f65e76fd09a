/* SPDX-License-Identifier: MIT */
/*
 * The one table of every intercepted symbol. From it come the pointers to the real
 * functions (process/real.h), the prototypes (handlers.h) and the exported entry points
 * (route/exports.c), and scripts/rocm-check.py compares it with every ROCm release.
 *
 *   E(kind, extra, name, node, since, (parameters), (arguments))
 *
 * kind   How the export treats the call. Kinds with a handler have a hand-written do_<name>:
 *        SERVE     the handler answers if it can
 *        HOT       as SERVE, but the handler is the export and asks ss_pass() itself
 *        ALWAYS    as SERVE, also after exit() has begun
 *        GUARD     as SERVE; after exit() has begun after_exit_<name> answers, because the call may
 *                  bring a pool or a block of ours that must not reach the runtime, or because it
 *                  destroys streams
 *        SUBMIT    as SERVE, for a call that puts work on a device, begins a capture, or makes or
 *                  changes a node of a graph with pointers (process/submit_gate.h)
 *        WATCH     the handler makes the real call and does something before and after it
 *        ERROR     the handler reports the last error; the call is too harmless to start the shim
 *        Kinds without one make the real call after something that `extra` parameterizes:
 *        PASS      nothing; the call is listed because its meaning matters to ordering
 *        (The six below, GRAPH and UPLOAD put work on a device, as SUBMIT does. NODE and INSTANTIATE
 *        need the memory of their pointers mapped, and pass the same gate.)
 *        QUEUE     makes the stream `extra` known
 *        QUEUE_ANY as QUEUE, for a command that may use memory of any device
 *        COPY      as QUEUE, and refuses `size` bytes from src to dst that leave a block
 *        FILL      refuses `count` values of `extra` bytes at dst that leave a block; uses `stream`
 *        CHECK     refuses the call if the expression `extra` is true
 *        COPY_CHECK  as COPY, on the stream that is the first of `extra`; the second is such an
 *                  expression
 *        QUEUE_WAIT  as QUEUE_ANY, for a command that may need the host
 *        OBSERVER  adds the observer `extra` (alloc/observers.h)
 *        PINNED    as OBSERVER, for pinned memory of `size` bytes, which is at `extra` after the
 *                  call
 *        MAP       as OBSERVER, for a call that one thread makes at a time on some releases
 *        QUERY     pays the waits that hipFree skipped; if the call succeeds `extra` tells
 *                  the checker
 *        RETRY     nothing; if the call finds no memory on device `extra` (HERE: the current one),
 *                  our pools release idle memory and the call is repeated
 *        TAKE      as RETRY, and the allocated bytes count against SOMASHIM_LIMIT and as memory
 *                  outside of our pools: `extra` is (device, bytes, key, kind)
 *        GIVE      frees such memory: `extra` is the key
 *        GRAPH     QUEUE and RETRY, on the device of the stream `extra`
 *        UPLOAD    the same for a call that launches nothing
 *        INSTANTIATE  as RETRY here; then `extra` tells the checker what it made
 *        NODE      refuses the call if the first expression of `extra` is true; if the call
 *                  succeeds the second one tells the checker
 * node   the version node of the symbol in libamdhip64 (402 = hip_4.2)
 * since  the first release seen to export it (502 = 5.2.3, 507 = 5.7.1, 604 = 6.4.3, 702 = 7.2.4,
 *        714 = ROCm 7.14, 715 to 717 = ROCm 10.0 to 10.2; 718 = after these. Numbers above 702
 *        come from sources and notes; 715 if only the sources of July 2026 were read)
 *
 * All functions return hipError_t. Types that a release's header lacks are void there.
 */
#ifndef SS_SHIM_ENTRIES_H
#define SS_SHIM_ENTRIES_H

#if HIP_VERSION_MAJOR > 7 || (HIP_VERSION_MAJOR == 7 && HIP_VERSION_MINOR >= 1)
#define SS_ENTRY_STATUS hipDriverEntryPointQueryResult
#else
#define SS_ENTRY_STATUS void
#endif
#if HIP_VERSION_MAJOR > 6 || (HIP_VERSION_MAJOR == 6 && HIP_VERSION_MINOR >= 2)
#define SS_NODE_PARAMS hipGraphNodeParams
#define SS_EDGE_DATA hipGraphEdgeData
#define SS_PROC_STATUS hipDriverProcAddressQueryResult
#else
#define SS_NODE_PARAMS void
#define SS_EDGE_DATA void
#define SS_PROC_STATUS void
#endif

#if HIP_VERSION_MAJOR > 7 || (HIP_VERSION_MAJOR == 7 && HIP_VERSION_MINOR >= 2)
#define SS_LIBRARY hipLibrary_t
#define SS_LIBRARY_OPTION hipLibraryOption
#else
#define SS_LIBRARY void *
#define SS_LIBRARY_OPTION void
#endif
#if HIP_VERSION_MAJOR > 6 || (HIP_VERSION_MAJOR == 6 && HIP_VERSION_MINOR >= 1)
#define SS_GRAPH_PARAMS hipGraphInstantiateParams
#else
#define SS_GRAPH_PARAMS void
#endif
#if HIP_VERSION_MAJOR > 5 || (HIP_VERSION_MAJOR == 5 && HIP_VERSION_MINOR >= 5)
#define SS_ALLOC_PARAMS hipMemAllocNodeParams
#else
#define SS_ALLOC_PARAMS void
#endif

/* Since 6.0 the headers make the old name the new function, but the old symbol is still there. */
#if HIP_VERSION_MAJOR >= 6
#undef hipGetDeviceProperties
#define SS_OLD_PROPERTIES void
#define SS_PROPERTIES hipDeviceProp_tR0600
#else
#define SS_OLD_PROPERTIES hipDeviceProp_t
#define SS_PROPERTIES void
#endif
#if HIP_VERSION_MAJOR == 6
#define SS_DRV_FILL HIP_MEMSET_NODE_PARAMS
#else
#define SS_DRV_FILL hipMemsetParams
#endif
#if HIP_VERSION_MAJOR >= 7
#define SS_RANGE_TYPE hipMemRangeHandleType
#define SS_HTOD_SOURCE const void
#define SS_LAUNCH_CONFIG hipLaunchConfig_t
#define SS_DRV_LAUNCH_CONFIG HIP_LAUNCH_CONFIG
#else
#define SS_RANGE_TYPE int
#define SS_HTOD_SOURCE void
#define SS_LAUNCH_CONFIG void
#define SS_DRV_LAUNCH_CONFIG void
#endif
#if HIP_VERSION_MAJOR > 7 || (HIP_VERSION_MAJOR == 7 && HIP_VERSION_MINOR >= 1)
#define SS_COPY_ATTRIBUTES hipMemcpyAttributes
#define SS_COPY_OPS struct hipMemcpy3DBatchOp
#define SS_PEER_COPY hipMemcpy3DPeerParms
#else
#define SS_COPY_ATTRIBUTES void
#define SS_COPY_OPS void
#define SS_PEER_COPY void
#endif
#if HIP_VERSION_MAJOR > 6 || (HIP_VERSION_MAJOR == 6 && HIP_VERSION_MINOR >= 4)
#define SS_MEM_OPS hipStreamBatchMemOpParams
#else
#define SS_MEM_OPS void
#endif
#if HIP_VERSION_MAJOR > 5 || (HIP_VERSION_MAJOR == 5 && HIP_VERSION_MINOR >= 5)
#define SS_LAUNCH_LIST hipFunctionLaunchParams
#else
#define SS_LAUNCH_LIST void
#endif

/* hipExtModuleLaunchKernel has C++ linkage in 5.x; later releases have both. */
#define SS_EXT_MODULE_LAUNCH \
	_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j
#define SS_HCC_MODULE_LAUNCH \
	_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_

#define SS_ENTRIES(E) \
	/* ---- memory: intercept.c, alloc/ ---- */ \
	E(HOT, 0, hipMalloc, 402, 502, (void **ptr, size_t size), (ptr, size)) \
	E(HOT, 0, hipFree, 402, 502, (void *ptr), (ptr)) \
	E(HOT, 0, hipMallocAsync, 501, 502, \
	  (void **ptr, size_t size, hipStream_t stream), (ptr, size, stream)) \
	E(HOT, 0, hipFreeAsync, 501, 502, (void *ptr, hipStream_t stream), (ptr, stream)) \
	E(GUARD, 0, hipMallocFromPoolAsync, 501, 502, \
	  (void **ptr, size_t size, hipMemPool_t pool, hipStream_t stream), \
	  (ptr, size, pool, stream)) \
	E(SERVE, 0, hipExtMallocWithFlags, 402, 502, \
	  (void **ptr, size_t size, unsigned int flags), (ptr, size, flags)) \
	/* After a failure this call calls hipMemGetInfo, which is passed on then. */ \
	E(TAKE, (ss_device_of_prop(prop), size, *handle, DEVICE), hipMemCreate, 501, 502, \
	  (hipMemGenericAllocationHandle_t *handle, size_t size, \
	   const hipMemAllocationProp *prop, unsigned long long flags), \
	  (handle, size, prop, flags)) \
	/* ---- other memory of the device: alloc/retry.c ---- */ \
	E(SERVE, 0, hipMallocManaged, 402, 502, \
	  (void **ptr, size_t size, unsigned int flags), (ptr, size, flags)) \
	E(TAKE, (HERE, ss_limit_array(desc, width, height, 1, 1), *array, ARRAY), hipMallocArray, 402, 502, \
	  (hipArray_t *array, const hipChannelFormatDesc *desc, size_t width, size_t height, \
	   unsigned int flags), \
	  (array, desc, width, height, flags)) \
	E(TAKE, (HERE, ss_limit_array(desc, extent.width, extent.height, extent.depth, 1), *array, ARRAY), \
	  hipMalloc3DArray, 402, 502, \
	  (hipArray_t *array, const struct hipChannelFormatDesc *desc, \
	   struct hipExtent extent, unsigned int flags), \
	  (array, desc, extent, flags)) \
	E(TAKE, (HERE, desc ? ss_limit_driver_array(desc->Format, desc->NumChannels, desc->Width, \
						    desc->Height, 1, 1) : 0, *array, ARRAY), hipArrayCreate, 402, 502, \
	  (hipArray_t *array, const HIP_ARRAY_DESCRIPTOR *desc), (array, desc)) \
	E(TAKE, (HERE, desc ? ss_limit_driver_array(desc->Format, desc->NumChannels, desc->Width, \
						    desc->Height, desc->Depth, 1) : 0, *array, ARRAY), hipArray3DCreate, 402, 502, \
	  (hipArray_t *array, const HIP_ARRAY3D_DESCRIPTOR *desc), (array, desc)) \
	E(TAKE, (HERE, ss_limit_array(desc, extent.width, extent.height, extent.depth, levels), *array, ARRAY), \
	  hipMallocMipmappedArray, 402, 502, \
	  (hipMipmappedArray_t *array, const struct hipChannelFormatDesc *desc, \
	   struct hipExtent extent, unsigned int levels, unsigned int flags), \
	  (array, desc, extent, levels, flags)) \
	E(TAKE, (HERE, desc ? ss_limit_driver_array(desc->Format, desc->NumChannels, desc->Width, \
						    desc->Height, desc->Depth, levels) : 0, *array, ARRAY), hipMipmappedArrayCreate, 402, 502, \
	  (hipMipmappedArray_t *array, HIP_ARRAY3D_DESCRIPTOR *desc, unsigned int levels), \
	  (array, desc, levels)) \
	/* These calls free memory that counts against a limit: alloc/limit.c. */ \
	E(GIVE, handle, hipMemRelease, 501, 502, (hipMemGenericAllocationHandle_t handle), (handle)) \
	E(GIVE, array, hipFreeArray, 402, 502, (hipArray_t array), (array)) \
	E(GIVE, array, hipArrayDestroy, 403, 502, (hipArray_t array), (array)) \
	E(GIVE, array, hipFreeMipmappedArray, 402, 502, (hipMipmappedArray_t array), (array)) \
	E(GIVE, array, hipMipmappedArrayDestroy, 402, 502, (hipMipmappedArray_t array), (array)) \
	E(GIVE, ptr, hipGraphAddMemFreeNode, 505, 507, \
	  (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps, size_t count, void *ptr), \
	  (node, graph, deps, count, ptr)) \
	E(GIVE, ptr, hipDrvGraphAddMemFreeNode, 602, 604, \
	  (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps, size_t count, \
	   hipDeviceptr_t ptr), \
	  (node, graph, deps, count, ptr)) \
	/* Code and its variables take device memory, too. */ \
	E(RETRY, ss_code_device(NULL, path), hipModuleLoad, 402, 502, (hipModule_t *module, const char *path), \
	  (module, path)) \
	E(RETRY, ss_code_device(image, NULL), hipModuleLoadData, 402, 502, (hipModule_t *module, const void *image), \
	  (module, image)) \
	E(RETRY, ss_code_device(image, NULL), hipModuleLoadDataEx, 402, 502, \
	  (hipModule_t *module, const void *image, unsigned int count, \
	   hipJitOption *options, void **values), \
	  (module, image, count, options, values)) \
	E(RETRY, ss_code_device(image, NULL), hipModuleLoadFatBinary, 701, 702, \
	  (hipModule_t *module, const void *image), (module, image)) \
	E(RETRY, ss_code_device(code, NULL), hipLibraryLoadData, 702, 702, \
	  (SS_LIBRARY *library, const void *code, hipJitOption *jit, void **jit_values, \
	   unsigned int jit_count, SS_LIBRARY_OPTION *options, void **values, \
	   unsigned int count), \
	  (library, code, jit, jit_values, jit_count, options, values, count)) \
	E(RETRY, ss_code_device(NULL, path), hipLibraryLoadFromFile, 702, 702, \
	  (SS_LIBRARY *library, const char *path, hipJitOption *jit, void **jit_values, \
	   unsigned int jit_count, SS_LIBRARY_OPTION *options, void **values, \
	   unsigned int count), \
	  (library, path, jit, jit_values, jit_count, options, values, count)) \
	/* Loads the code if it is not loaded yet. */ \
	E(RETRY, HERE, hipLibraryGetModule, 718, 718, \
	  (hipModule_t *module, SS_LIBRARY library), (module, library)) \
	/* Sets the size of the heap of kernels that call malloc(). */ \
	E(WATCH, 0, hipDeviceSetLimit, 503, 507, (enum hipLimit_t which, size_t size), (which, size)) \
	/* Graphs take memory when they are made or when they run. */ \
	E(WATCH, 0, hipGraphAddMemAllocNode, 505, 507, \
	  (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps, size_t count, \
	   SS_ALLOC_PARAMS *params), \
	  (node, graph, deps, count, params)) \
	E(INSTANTIATE, ss_check_exec_made(*exec, graph), hipGraphInstantiate, 403, 502, \
	  (hipGraphExec_t *exec, hipGraph_t graph, hipGraphNode_t *bad, char *log, \
	   size_t size), \
	  (exec, graph, bad, log, size)) \
	E(INSTANTIATE, ss_check_exec_made(*exec, graph), hipGraphInstantiateWithFlags, 405, 502, \
	  (hipGraphExec_t *exec, hipGraph_t graph, unsigned long long flags), \
	  (exec, graph, flags)) \
	E(INSTANTIATE, ss_check_exec_made(*exec, graph), hipGraphInstantiateWithParams, 601, 604, \
	  (hipGraphExec_t *exec, hipGraph_t graph, SS_GRAPH_PARAMS *params), \
	  (exec, graph, params)) \
	E(UPLOAD, stream, hipGraphUpload, 503, 507, \
	  (hipGraphExec_t exec, hipStream_t stream), (exec, stream)) \
	E(GRAPH, stream, hipGraphLaunch, 403, 502, \
	  (hipGraphExec_t exec, hipStream_t stream), (exec, stream)) \
	E(GRAPH, ss_spt_stream(stream), hipGraphLaunch_spt, 503, 507, \
	  (hipGraphExec_t exec, hipStream_t stream), (exec, stream)) \
	/* ---- host memory calls with a block of ours: intercept.c ---- */ \
	E(ALWAYS, 0, hipHostFree, 402, 502, (void *ptr), (ptr)) \
	E(ALWAYS, 0, hipFreeHost, 402, 502, (void *ptr), (ptr)) \
	E(ALWAYS, 0, hipHostUnregister, 402, 502, (void *ptr), (ptr)) \
	/* ---- pitched: alloc/pitched.c ---- */ \
	E(SERVE, 0, hipMallocPitch, 402, 502, \
	  (void **ptr, size_t *pitch, size_t width, size_t height), \
	  (ptr, pitch, width, height)) \
	E(SERVE, 0, hipMemAllocPitch, 402, 502, \
	  (hipDeviceptr_t *ptr, size_t *pitch, size_t width, size_t height, \
	   unsigned int element), \
	  (ptr, pitch, width, height, element)) \
	E(SERVE, 0, hipMalloc3D, 402, 502, (hipPitchedPtr *ptr, hipExtent extent), (ptr, extent)) \
	E(SERVE, 0, hipMemGetInfo, 402, 502, (size_t *free_bytes, size_t *total), \
	  (free_bytes, total)) \
	/* ---- pools: alloc/, share/ ---- */ \
	E(SERVE, 0, hipMemPoolCreate, 501, 502, \
	  (hipMemPool_t *pool, const hipMemPoolProps *props), (pool, props)) \
	E(GUARD, 0, hipMemPoolDestroy, 501, 502, (hipMemPool_t pool), (pool)) \
	E(GUARD, 0, hipMemPoolSetAttribute, 501, 502, \
	  (hipMemPool_t pool, hipMemPoolAttr attr, void *value), (pool, attr, value)) \
	E(GUARD, 0, hipMemPoolGetAttribute, 501, 502, \
	  (hipMemPool_t pool, hipMemPoolAttr attr, void *value), (pool, attr, value)) \
	E(GUARD, 0, hipMemPoolTrimTo, 501, 502, (hipMemPool_t pool, size_t keep), (pool, keep)) \
	E(GUARD, 0, hipMemPoolSetAccess, 501, 502, \
	  (hipMemPool_t pool, const hipMemAccessDesc *list, size_t count), \
	  (pool, list, count)) \
	E(GUARD, 0, hipMemPoolGetAccess, 501, 502, \
	  (hipMemAccessFlags *flags, hipMemPool_t pool, hipMemLocation *location), \
	  (flags, pool, location)) \
	E(SERVE, 0, hipDeviceGetDefaultMemPool, 501, 502, (hipMemPool_t *pool, int dev), \
	  (pool, dev)) \
	E(SERVE, 0, hipDeviceGetMemPool, 501, 502, (hipMemPool_t *pool, int dev), (pool, dev)) \
	E(GUARD, 0, hipDeviceSetMemPool, 501, 502, (int dev, hipMemPool_t pool), (dev, pool)) \
	E(SERVE, 0, hipMemGetDefaultMemPool, 715, 715, \
	  (hipMemPool_t *pool, hipMemLocation *where, hipMemAllocationType type), \
	  (pool, where, type)) \
	E(SERVE, 0, hipMemGetMemPool, 702, 715, \
	  (hipMemPool_t *pool, hipMemLocation *where, hipMemAllocationType type), \
	  (pool, where, type)) \
	E(GUARD, 0, hipMemSetMemPool, 702, 715, \
	  (hipMemLocation *where, hipMemAllocationType type, hipMemPool_t pool), \
	  (where, type, pool)) \
	E(GUARD, 0, hipMemPoolExportToShareableHandle, 501, 502, \
	  (void *handle, hipMemPool_t pool, hipMemAllocationHandleType type, \
	   unsigned int flags), \
	  (handle, pool, type, flags)) \
	E(GUARD, 0, hipMemPoolImportFromShareableHandle, 501, 502, \
	  (hipMemPool_t *pool, void *handle, hipMemAllocationHandleType type, \
	   unsigned int flags), \
	  (pool, handle, type, flags)) \
	E(GUARD, 0, hipMemPoolExportPointer, 501, 502, \
	  (hipMemPoolPtrExportData *data, void *ptr), (data, ptr)) \
	E(GUARD, 0, hipMemPoolImportPointer, 501, 502, \
	  (void **ptr, hipMemPool_t pool, hipMemPoolPtrExportData *data), (ptr, pool, data)) \
	/* The amount of memory of a device. */ \
	E(SERVE, 0, hipDeviceTotalMem, 402, 502, (size_t *bytes, hipDevice_t dev), (bytes, dev)) \
	E(SERVE, 0, hipGetDeviceProperties, 402, 502, (SS_OLD_PROPERTIES *prop, int dev), (prop, dev)) \
	E(SERVE, 0, hipGetDevicePropertiesR0000, 402, 604, (void *prop, int dev), (prop, dev)) \
	E(SERVE, 0, hipGetDevicePropertiesR0600, 600, 604, (SS_PROPERTIES *prop, int dev), (prop, dev)) \
	E(SERVE, 0, hipDeviceGetAttribute, 402, 502, \
	  (int *value, hipDeviceAttribute_t attr, int dev), (value, attr, dev)) \
	/* ---- what a pointer is: bounds/pointer.c ---- */ \
	E(ALWAYS, 0, hipPointerGetAttributes, 402, 502, \
	  (hipPointerAttribute_t *out, const void *ptr), (out, ptr)) \
	E(ALWAYS, 0, hipPointerGetAttribute, 500, 502, \
	  (void *data, hipPointer_attribute attr, hipDeviceptr_t ptr), (data, attr, ptr)) \
	E(ALWAYS, 0, hipDrvPointerGetAttributes, 500, 502, \
	  (unsigned int count, hipPointer_attribute *attrs, void **data, hipDeviceptr_t ptr), \
	  (count, attrs, data, ptr)) \
	E(ALWAYS, 0, hipPointerSetAttribute, 402, 507, \
	  (const void *value, hipPointer_attribute attr, hipDeviceptr_t ptr), \
	  (value, attr, ptr)) \
	E(ALWAYS, 0, hipMemGetAddressRange, 402, 502, \
	  (hipDeviceptr_t *base, size_t *size, hipDeviceptr_t ptr), (base, size, ptr)) \
	E(ALWAYS, 0, hipMemPtrGetInfo, 402, 502, (void *ptr, size_t *size), (ptr, size)) \
	/* ---- sharing between processes: share/ ---- */ \
	E(GUARD, 0, hipIpcGetMemHandle, 402, 502, (hipIpcMemHandle_t *handle, void *ptr), \
	  (handle, ptr)) \
	E(SERVE, 0, hipIpcOpenMemHandle, 402, 502, \
	  (void **ptr, hipIpcMemHandle_t handle, unsigned int flags), (ptr, handle, flags)) \
	E(ALWAYS, 0, hipIpcCloseMemHandle, 402, 502, (void *ptr), (ptr)) \
	/* ---- memsets: bounds/memset.c ---- */ \
	E(SUBMIT, 0, hipMemset, 402, 502, (void *dst, int value, size_t size), (dst, value, size)) \
	E(SUBMIT, 0, hipMemset_spt, 502, 502, (void *dst, int value, size_t size), \
	  (dst, value, size)) \
	E(SUBMIT, 0, hipMemsetD8, 402, 502, \
	  (hipDeviceptr_t dst, unsigned char value, size_t count), (dst, value, count)) \
	E(SUBMIT, 0, hipMemsetD16, 402, 502, \
	  (hipDeviceptr_t dst, unsigned short value, size_t count), (dst, value, count)) \
	E(SUBMIT, 0, hipMemsetD32, 402, 502, (hipDeviceptr_t dst, int value, size_t count), \
	  (dst, value, count)) \
	E(SUBMIT, 0, hipMemset2D, 402, 502, \
	  (void *dst, size_t pitch, int value, size_t width, size_t height), \
	  (dst, pitch, value, width, height)) \
	E(SUBMIT, 0, hipMemset2D_spt, 502, 502, \
	  (void *dst, size_t pitch, int value, size_t width, size_t height), \
	  (dst, pitch, value, width, height)) \
	E(SUBMIT, 0, hipMemset3D, 402, 502, (hipPitchedPtr dst, int value, hipExtent extent), \
	  (dst, value, extent)) \
	E(SUBMIT, 0, hipMemset3D_spt, 502, 502, (hipPitchedPtr dst, int value, hipExtent extent), \
	  (dst, value, extent)) \
	E(SUBMIT, 0, hipMemsetD2D8, 701, 702, \
	  (hipDeviceptr_t dst, size_t pitch, unsigned char value, size_t width, \
	   size_t height), \
	  (dst, pitch, value, width, height)) \
	E(SUBMIT, 0, hipMemsetD2D16, 701, 702, \
	  (hipDeviceptr_t dst, size_t pitch, unsigned short value, size_t width, \
	   size_t height), \
	  (dst, pitch, value, width, height)) \
	E(SUBMIT, 0, hipMemsetD2D32, 701, 702, \
	  (hipDeviceptr_t dst, size_t pitch, unsigned int value, size_t width, \
	   size_t height), \
	  (dst, pitch, value, width, height)) \
	/* ---- the last error: alloc/last_error.c ---- */ \
	E(ERROR, 0, hipGetLastError, 402, 502, (void), ()) \
	E(ERROR, 0, hipPeekAtLastError, 402, 502, (void), ()) \
	E(ERROR, 0, hipExtGetLastError, 600, 604, (void), ()) \
	/* ---- streams: stream/streams.c, stream/sync.c ---- */ \
	E(WATCH, 0, hipStreamCreate, 402, 502, (hipStream_t *stream), (stream)) \
	E(WATCH, 0, hipStreamCreateWithFlags, 402, 502, \
	  (hipStream_t *stream, unsigned int flags), (stream, flags)) \
	E(WATCH, 0, hipStreamCreateWithPriority, 402, 502, \
	  (hipStream_t *stream, unsigned int flags, int priority), (stream, flags, priority)) \
	E(WATCH, 0, hipExtStreamCreateWithCUMask, 402, 502, \
	  (hipStream_t *stream, uint32_t words, const uint32_t *mask), (stream, words, mask)) \
	E(GUARD, 0, hipStreamDestroy, 402, 502, (hipStream_t stream), (stream)) \
	E(HOT, 0, hipStreamSynchronize, 402, 502, (hipStream_t stream), (stream)) \
	E(WATCH, 0, hipStreamSynchronize_spt, 502, 502, (hipStream_t stream), (stream)) \
	E(WATCH, 0, hipStreamQuery, 402, 502, (hipStream_t stream), (stream)) \
	E(WATCH, 0, hipStreamQuery_spt, 502, 502, (hipStream_t stream), (stream)) \
	E(HOT, 0, hipStreamWaitEvent, 402, 502, \
	  (hipStream_t stream, hipEvent_t event, unsigned int flags), (stream, event, flags)) \
	E(SUBMIT, 0, hipStreamWaitEvent_spt, 502, 502, \
	  (hipStream_t stream, hipEvent_t event, unsigned int flags), (stream, event, flags)) \
	/* ---- streams of contexts: stream/execution_context.c ---- */ \
	E(WATCH, 0, hipExecutionCtxStreamCreate, 714, 715, \
	  (hipStream_t *stream, void *context, unsigned int flags, int priority), \
	  (stream, context, flags, priority)) \
	E(GUARD, 0, hipExecutionCtxDestroy, 714, 715, (void *context), (context)) \
	E(WATCH, 0, hipExecutionCtxSynchronize, 714, 715, (void *context), (context)) \
	E(WATCH, 0, hipExecutionCtxRecordEvent, 714, 715, (void *context, hipEvent_t event), \
	  (context, event)) \
	E(PASS, 0, hipExecutionCtxWaitEvent, 714, 715, (void *context, hipEvent_t event), \
	  (context, event)) \
	/* ---- events: stream/events.c, stream/sync.c ---- */ \
	E(WATCH, 0, hipEventCreate, 402, 502, (hipEvent_t *event), (event)) \
	E(WATCH, 0, hipEventCreateWithFlags, 402, 502, (hipEvent_t *event, unsigned flags), \
	  (event, flags)) \
	E(WATCH, 0, hipEventDestroy, 402, 502, (hipEvent_t event), (event)) \
	E(HOT, 0, hipEventRecord, 402, 502, (hipEvent_t event, hipStream_t stream), \
	  (event, stream)) \
	E(WATCH, 0, hipEventRecord_spt, 502, 507, (hipEvent_t event, hipStream_t stream), \
	  (event, stream)) \
	E(WATCH, 0, hipEventRecordWithFlags, 604, 604, \
	  (hipEvent_t event, hipStream_t stream, unsigned int flags), (event, stream, flags)) \
	E(HOT, 0, hipEventQuery, 402, 502, (hipEvent_t event), (event)) \
	E(HOT, 0, hipEventSynchronize, 402, 502, (hipEvent_t event), (event)) \
	E(QUERY, (ss_check_event_reached(start), ss_check_event_reached(stop)), hipEventElapsedTime, 402, 502, \
	  (float *ms, hipEvent_t start, hipEvent_t stop), (ms, start, stop)) \
	E(WATCH, 0, hipIpcGetEventHandle, 402, 502, \
	  (hipIpcEventHandle_t *handle, hipEvent_t event), (handle, event)) \
	E(WATCH, 0, hipIpcOpenEventHandle, 402, 502, \
	  (hipEvent_t *event, hipIpcEventHandle_t handle), (event, handle)) \
	/* ---- launches and graph nodes: stream/, bounds/graph_node.c ---- */ \
	E(SUBMIT, 0, hipExtLaunchKernel, 402, 502, \
	  (const void *function, dim3 grid, dim3 block, void **args, size_t shared, \
	   hipStream_t stream, hipEvent_t start, hipEvent_t stop, int flags), \
	  (function, grid, block, args, shared, stream, start, stop, flags)) \
	E(SUBMIT, 0, hipExtModuleLaunchKernel, 402, 604, \
	  (hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t lx, uint32_t ly, \
	   uint32_t lz, size_t shared, hipStream_t stream, void **params, void **extra, \
	   hipEvent_t start, hipEvent_t stop, uint32_t flags), \
	  (f, gx, gy, gz, lx, ly, lz, shared, stream, params, extra, start, stop, flags)) \
	E(SUBMIT, 0, SS_EXT_MODULE_LAUNCH, 402, 502, \
	  (hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t lx, uint32_t ly, \
	   uint32_t lz, size_t shared, hipStream_t stream, void **params, void **extra, \
	   hipEvent_t start, hipEvent_t stop, uint32_t flags), \
	  (f, gx, gy, gz, lx, ly, lz, shared, stream, params, extra, start, stop, flags)) \
	E(SUBMIT, 0, hipHccModuleLaunchKernel, 402, 604, \
	  (hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t lx, uint32_t ly, \
	   uint32_t lz, size_t shared, hipStream_t stream, void **params, void **extra, \
	   hipEvent_t start, hipEvent_t stop), \
	  (f, gx, gy, gz, lx, ly, lz, shared, stream, params, extra, start, stop)) \
	E(SUBMIT, 0, SS_HCC_MODULE_LAUNCH, 402, 502, \
	  (hipFunction_t f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t lx, uint32_t ly, \
	   uint32_t lz, size_t shared, hipStream_t stream, void **params, void **extra, \
	   hipEvent_t start, hipEvent_t stop), \
	  (f, gx, gy, gz, lx, ly, lz, shared, stream, params, extra, start, stop)) \
	E(WATCH, 0, hipGraphAddEventRecordNode, 405, 502, \
	  (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps, size_t count, \
	   hipEvent_t event), \
	  (node, graph, deps, count, event)) \
	E(WATCH, 0, hipGraphEventRecordNodeSetEvent, 405, 502, \
	  (hipGraphNode_t node, hipEvent_t event), (node, event)) \
	E(WATCH, 0, hipGraphExecEventRecordNodeSetEvent, 405, 502, \
	  (hipGraphExec_t exec, hipGraphNode_t node, hipEvent_t event), (exec, node, event)) \
	E(OBSERVER, SS_OBSERVER_HOSTNODE, hipGraphAddHostNode, 405, 502, \
	  (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps, size_t count, \
	   const hipHostNodeParams *params), \
	  (node, graph, deps, count, params)) \
	E(SUBMIT, 0, hipGraphAddNode, 505, 604, \
	  (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps, size_t count, \
	   SS_NODE_PARAMS *params), \
	  (node, graph, deps, count, params)) \
	E(SUBMIT, 0, hipGraphNodeSetParams, 602, 604, \
	  (hipGraphNode_t node, SS_NODE_PARAMS *params), (node, params)) \
	E(SUBMIT, 0, hipGraphExecNodeSetParams, 602, 604, \
	  (hipGraphExec_t exec, hipGraphNode_t node, SS_NODE_PARAMS *params), \
	  (exec, node, params)) \
	/* ---- devices and contexts: stream/device.c ---- */ \
	E(WATCH, 0, hipDeviceSynchronize, 402, 502, (void), ()) \
	E(WATCH, 0, hipCtxSynchronize, 402, 502, (void), ()) \
	E(GUARD, 0, hipDeviceReset, 402, 502, (void), ()) \
	/* These two return success and do nothing (hip_context.cpp), so blocks live on. */ \
	E(PASS, 0, hipDevicePrimaryCtxReset, 402, 502, (hipDevice_t dev), (dev)) \
	E(PASS, 0, hipDevicePrimaryCtxRelease, 402, 502, (hipDevice_t dev), (dev)) \
	E(WATCH, 0, hipSetDevice, 402, 502, (int dev), (dev)) \
	/* Initializes the device without making it current. */ \
	E(PASS, 0, hipInitDevice, 716, 716, \
	  (int dev, unsigned int device_flags, unsigned int flags), (dev, device_flags, flags)) \
	E(WATCH, 0, hipCtxCreate, 402, 502, (hipCtx_t *ctx, unsigned int flags, hipDevice_t dev), \
	  (ctx, flags, dev)) \
	E(PASS, 0, hipCtxDestroy, 402, 502, (hipCtx_t ctx), (ctx)) \
	E(WATCH, 0, hipCtxPopCurrent, 402, 502, (hipCtx_t *ctx), (ctx)) \
	E(WATCH, 0, hipCtxPushCurrent, 402, 502, (hipCtx_t ctx), (ctx)) \
	E(WATCH, 0, hipCtxSetCurrent, 402, 502, (hipCtx_t ctx), (ctx)) \
	E(WATCH, 0, hipDeviceEnablePeerAccess, 402, 502, (int peer, unsigned int flags), \
	  (peer, flags)) \
	E(PASS, 0, hipDeviceDisablePeerAccess, 402, 502, (int peer), (peer)) \
	E(OBSERVER, SS_OBSERVER_PEER, hipCtxEnablePeerAccess, 402, 502, \
	  (hipCtx_t peer, unsigned int flags), (peer, flags)) \
	E(PASS, 0, hipCtxDisablePeerAccess, 402, 502, (hipCtx_t peer), (peer)) \
	/* ---- stream capture: stream/capture.c ---- */ \
	E(SUBMIT, 0, hipStreamBeginCapture, 403, 502, \
	  (hipStream_t stream, hipStreamCaptureMode mode), (stream, mode)) \
	E(SUBMIT, 0, hipStreamBeginCapture_spt, 503, 507, \
	  (hipStream_t stream, hipStreamCaptureMode mode), (stream, mode)) \
	E(SUBMIT, 0, hipStreamBeginCaptureToGraph, 601, 604, \
	  (hipStream_t stream, hipGraph_t graph, const hipGraphNode_t *deps, \
	   const SS_EDGE_DATA *data, size_t count, hipStreamCaptureMode mode), \
	  (stream, graph, deps, data, count, mode)) \
	E(WATCH, 0, hipStreamEndCapture, 403, 502, (hipStream_t stream, hipGraph_t *graph), \
	  (stream, graph)) \
	E(WATCH, 0, hipStreamEndCapture_spt, 503, 507, (hipStream_t stream, hipGraph_t *graph), \
	  (stream, graph)) \
	E(PASS, 0, hipThreadExchangeStreamCaptureMode, 500, 502, (hipStreamCaptureMode *mode), \
	  (mode)) \
	/* ---- who else may observe the device: alloc/observers.h ---- */ \
	E(PINNED, *ptr, hipHostMalloc, 402, 502, \
	  (void **ptr, size_t size, unsigned int flags), (ptr, size, flags)) \
	E(PINNED, *ptr, hipHostAlloc, 402, 502, \
	  (void **ptr, size_t size, unsigned int flags), (ptr, size, flags)) \
	E(PINNED, *ptr, hipMallocHost, 402, 502, (void **ptr, size_t size), (ptr, size)) \
	E(PINNED, *ptr, hipMemAllocHost, 402, 502, (void **ptr, size_t size), (ptr, size)) \
	E(PINNED, ptr, hipHostRegister, 402, 502, \
	  (void *ptr, size_t size, unsigned int flags), (ptr, size, flags)) \
	E(SUBMIT, 0, hipLaunchHostFunc, 503, 507, \
	  (hipStream_t stream, hipHostFn_t fn, void *data), (stream, fn, data)) \
	E(SUBMIT, 0, hipLaunchHostFunc_spt, 503, 507, \
	  (hipStream_t stream, hipHostFn_t fn, void *data), (stream, fn, data)) \
	E(SUBMIT, 0, hipStreamAddCallback, 402, 502, \
	  (hipStream_t stream, hipStreamCallback_t fn, void *data, unsigned int flags), \
	  (stream, fn, data, flags)) \
	E(SUBMIT, 0, hipStreamAddCallback_spt, 503, 507, \
	  (hipStream_t stream, hipStreamCallback_t fn, void *data, unsigned int flags), \
	  (stream, fn, data, flags)) \
	E(OBSERVER, SS_OBSERVER_IPC, hipMemExportToShareableHandle, 501, 502, \
	  (void *handle, hipMemGenericAllocationHandle_t memory, \
	   hipMemAllocationHandleType type, unsigned long long flags), \
	  (handle, memory, type, flags)) \
	E(OBSERVER, SS_OBSERVER_IPC, hipMemImportFromShareableHandle, 501, 502, \
	  (hipMemGenericAllocationHandle_t *memory, void *handle, hipMemAllocationHandleType type), \
	  (memory, handle, type)) \
	E(OBSERVER, SS_OBSERVER_IPC, hipImportExternalMemory, 403, 502, \
	  (hipExternalMemory_t *memory, const hipExternalMemoryHandleDesc *desc), (memory, desc)) \
	E(OBSERVER, SS_OBSERVER_IPC, hipGraphicsMapResources, 403, 502, \
	  (int count, hipGraphicsResource_t *resources, hipStream_t stream), \
	  (count, resources, stream)) \
	E(MAP, 0, hipMemMap, 501, 502, \
	  (void *ptr, size_t size, size_t offset, hipMemGenericAllocationHandle_t handle, \
	   unsigned long long flags), \
	  (ptr, size, offset, handle, flags)) \
	E(MAP, 0, hipMemUnmap, 501, 502, (void *ptr, size_t size), (ptr, size)) \
	E(MAP, ss_access_observers(desc, count), hipMemSetAccess, 501, 502, \
	  (void *ptr, size_t size, const hipMemAccessDesc *desc, size_t count), \
	  (ptr, size, desc, count)) \
	E(WATCH, 0, hipMemRetainAllocationHandle, 501, 502, \
	  (hipMemGenericAllocationHandle_t *handle, void *ptr), (handle, ptr)) \
	E(WATCH, 0, hipMemGetHandleForAddressRange, 605, 702, \
	  (void *handle, hipDeviceptr_t ptr, size_t size, SS_RANGE_TYPE type, \
	   unsigned long long flags), \
	  (handle, ptr, size, type, flags)) \
	E(WATCH, 0, hipModuleGetGlobal, 402, 502, \
	  (hipDeviceptr_t *ptr, size_t *size, hipModule_t module, const char *name), \
	  (ptr, size, module, name)) \
	E(WATCH, 0, hipLibraryGetGlobal, 702, 714, \
	  (void **ptr, size_t *size, SS_LIBRARY library, const char *name), \
	  (ptr, size, library, name)) \
	E(WATCH, 0, hipLibraryGetManaged, 702, 714, \
	  (void **ptr, size_t *size, SS_LIBRARY library, const char *name), \
	  (ptr, size, library, name)) \
	/* A wait for writes of other devices, such as network cards. */ \
	E(PASS, 0, hipDeviceFlushGPUDirectRDMAWrites, 718, 718, (int target, int scope), \
	  (target, scope)) \
	/* ---- work on a stream that may be unknown yet ---- */ \
	E(QUEUE, ss_launch(stream, function, true, args, NULL), hipLaunchKernel, 402, 502, \
	  (const void *function, dim3 grid, dim3 block, void **args, size_t shared, \
	   hipStream_t stream), \
	  (function, grid, block, args, shared, stream)) \
	E(QUEUE, ss_launch(ss_spt_stream(stream), function, true, args, NULL), hipLaunchKernel_spt, 502, 502, \
	  (const void *function, dim3 grid, dim3 block, void **args, size_t shared, \
	   hipStream_t stream), \
	  (function, grid, block, args, shared, stream)) \
	E(QUEUE, ss_launch(stream, function, true, args, NULL), hipLaunchCooperativeKernel, 402, 502, \
	  (const void *function, dim3 grid, dim3 block, void **args, unsigned int shared, \
	   hipStream_t stream), \
	  (function, grid, block, args, shared, stream)) \
	E(QUEUE, ss_launch(ss_spt_stream(stream), function, true, args, NULL), hipLaunchCooperativeKernel_spt, 502, 502, \
	  (const void *function, dim3 grid, dim3 block, void **args, uint32_t shared, \
	   hipStream_t stream), \
	  (function, grid, block, args, shared, stream)) \
	E(QUEUE, ss_launch(stream, f, false, params, extra), hipModuleLaunchKernel, 402, 502, \
	  (hipFunction_t f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int lx, \
	   unsigned int ly, unsigned int lz, unsigned int shared, hipStream_t stream, \
	   void **params, void **extra), \
	  (f, gx, gy, gz, lx, ly, lz, shared, stream, params, extra)) \
	E(COPY, stream, hipMemcpyAsync, 402, 502, \
	  (void *dst, const void *src, size_t size, hipMemcpyKind kind, hipStream_t stream), \
	  (dst, src, size, kind, stream)) \
	E(SUBMIT, 0, hipMemcpy2DAsync, 402, 502, \
	  (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, \
	   size_t height, hipMemcpyKind kind, hipStream_t stream), \
	  (dst, dpitch, src, spitch, width, height, kind, stream)) \
	E(COPY_CHECK, (stream, ss_box_exceeds(p, stream)), hipMemcpy3DAsync, 402, 502, \
	  (const hipMemcpy3DParms *p, hipStream_t stream), \
	  (p, stream)) \
	E(FILL, 1, hipMemsetAsync, 402, 502, \
	  (void *dst, int value, size_t count, hipStream_t stream), \
	  (dst, value, count, stream)) \
	E(SUBMIT, 0, hipMemset2DAsync, 402, 502, \
	  (void *dst, size_t pitch, int value, size_t width, size_t height, \
	   hipStream_t stream), \
	  (dst, pitch, value, width, height, stream)) \
	E(SUBMIT, 0, hipMemset3DAsync, 402, 502, \
	  (hipPitchedPtr dst, int value, hipExtent extent, hipStream_t stream), \
	  (dst, value, extent, stream)) \
	E(COPY, ss_spt_stream(stream), hipMemcpyAsync_spt, 502, 502, \
	  (void *dst, const void *src, size_t size, hipMemcpyKind kind, hipStream_t stream), \
	  (dst, src, size, kind, stream)) \
	E(SUBMIT, 0, hipMemcpy2DAsync_spt, 503, 507, \
	  (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, \
	   size_t height, hipMemcpyKind kind, hipStream_t stream), \
	  (dst, dpitch, src, spitch, width, height, kind, stream)) \
	E(COPY_CHECK, (ss_spt_stream(stream), ss_box_exceeds(p, ss_spt_stream(stream))), hipMemcpy3DAsync_spt, 503, 507, \
	  (const hipMemcpy3DParms *p, hipStream_t stream), \
	  (p, stream)) \
	E(CHECK, ss_range_exceeds(ss_spt_stream(stream), SS_WRITES, dst, size), hipMemsetAsync_spt, 503, 507, \
	  (void *dst, int value, size_t size, hipStream_t stream), \
	  (dst, value, size, stream)) \
	E(SUBMIT, 0, hipMemset2DAsync_spt, 503, 507, \
	  (void *dst, size_t pitch, int value, size_t width, size_t height, \
	   hipStream_t stream), \
	  (dst, pitch, value, width, height, stream)) \
	E(SUBMIT, 0, hipMemset3DAsync_spt, 503, 507, \
	  (hipPitchedPtr dst, int value, hipExtent extent, hipStream_t stream), \
	  (dst, value, extent, stream)) \
	E(COPY, stream, hipMemcpyWithStream, 402, 502, \
	  (void *dst, const void *src, size_t size, hipMemcpyKind kind, hipStream_t stream), \
	  (dst, src, size, kind, stream)) \
	E(COPY, stream, hipMemcpyHtoDAsync, 402, 502, \
	  (hipDeviceptr_t dst, SS_HTOD_SOURCE *src, size_t size, hipStream_t stream), \
	  (dst, src, size, stream)) \
	E(COPY, stream, hipMemcpyDtoHAsync, 402, 502, \
	  (void *dst, hipDeviceptr_t src, size_t size, hipStream_t stream), \
	  (dst, src, size, stream)) \
	E(COPY, stream, hipMemcpyDtoDAsync, 402, 502, \
	  (hipDeviceptr_t dst, hipDeviceptr_t src, size_t size, hipStream_t stream), \
	  (dst, src, size, stream)) \
	E(COPY, stream, hipMemcpyPeerAsync, 402, 502, \
	  (void *dst, int dst_dev, const void *src, int src_dev, size_t size, \
	   hipStream_t stream), \
	  (dst, dst_dev, src, src_dev, size, stream)) \
	E(FILL, 1, hipMemsetD8Async, 402, 502, \
	  (hipDeviceptr_t dst, unsigned char value, size_t count, hipStream_t stream), \
	  (dst, value, count, stream)) \
	E(FILL, 2, hipMemsetD16Async, 402, 502, \
	  (hipDeviceptr_t dst, unsigned short value, size_t count, hipStream_t stream), \
	  (dst, value, count, stream)) \
	E(FILL, 4, hipMemsetD32Async, 402, 502, \
	  (hipDeviceptr_t dst, int value, size_t count, hipStream_t stream), \
	  (dst, value, count, stream)) \
	E(COPY, SS_PER_THREAD, hipMemcpy_spt, 502, 502, \
	  (void *dst, const void *src, size_t size, hipMemcpyKind kind), \
	  (dst, src, size, kind)) \
	E(QUEUE_WAIT, ss_value(stream, ptr, 4), hipStreamWaitValue32, 404, 502, \
	  (hipStream_t stream, void *ptr, uint32_t value, unsigned int flags, uint32_t mask), \
	  (stream, ptr, value, flags, mask)) \
	E(QUEUE_WAIT, ss_value(stream, ptr, 8), hipStreamWaitValue64, 404, 502, \
	  (hipStream_t stream, void *ptr, uint64_t value, unsigned int flags, uint64_t mask), \
	  (stream, ptr, value, flags, mask)) \
	E(QUEUE_ANY, ss_value(stream, ptr, 4), hipStreamWriteValue32, 404, 502, \
	  (hipStream_t stream, void *ptr, uint32_t value, unsigned int flags), \
	  (stream, ptr, value, flags)) \
	E(QUEUE_ANY, ss_value(stream, ptr, 8), hipStreamWriteValue64, 404, 502, \
	  (hipStream_t stream, void *ptr, uint64_t value, unsigned int flags), \
	  (stream, ptr, value, flags)) \
	E(QUEUE_WAIT, ss_values(stream, ops, count), hipStreamBatchMemOp, 604, 604, \
	  (hipStream_t stream, unsigned int count, SS_MEM_OPS *ops, unsigned int flags), \
	  (stream, count, ops, flags)) \
	E(QUEUE_ANY, stream, hipSignalExternalSemaphoresAsync, 403, 502, \
	  (const hipExternalSemaphore_t *list, \
	   const hipExternalSemaphoreSignalParams *params, unsigned int count, hipStream_t stream), \
	  (list, params, count, stream)) \
	E(QUEUE_WAIT, stream, hipWaitExternalSemaphoresAsync, 403, 502, \
	  (const hipExternalSemaphore_t *list, \
	   const hipExternalSemaphoreWaitParams *params, unsigned int count, hipStream_t stream), \
	  (list, params, count, stream)) \
	E(CHECK, ss_range_exceeds(stream, SS_MAY_WRITE, ptr, size), hipMemPrefetchAsync, 402, 502, \
	  (const void *ptr, size_t size, int dev, hipStream_t stream), \
	  (ptr, size, dev, stream)) \
	E(CHECK, ss_range_exceeds(stream, SS_MAY_WRITE, ptr, size), hipMemPrefetchAsync_v2, 701, 702, \
	  (const void *ptr, size_t size, hipMemLocation where, unsigned int flags, \
	   hipStream_t stream), \
	  (ptr, size, where, flags, stream)) \
	E(CHECK, ss_exceeds(ptr, size), hipMemAdvise, 402, 502, \
	  (const void *ptr, size_t size, hipMemoryAdvise advice, int dev), (ptr, size, advice, dev)) \
	E(CHECK, ss_exceeds(ptr, size), hipMemAdvise_v2, 701, 702, \
	  (const void *ptr, size_t size, hipMemoryAdvise advice, hipMemLocation where), \
	  (ptr, size, advice, where)) \
	E(CHECK, ss_list_exceeds(stream, list, sizes, count), hipMemPrefetchBatchAsync, 702, 715, \
	  (void **list, size_t *sizes, size_t count, hipMemLocation *where, size_t *which, \
	   size_t places, unsigned long long flags, hipStream_t stream), \
	  (list, sizes, count, where, which, places, flags, stream)) \
	E(CHECK, ss_list_exceeds(stream, list, sizes, count), hipMemDiscardBatchAsync, 702, 715, \
	  (void **list, size_t *sizes, size_t count, unsigned long long flags, hipStream_t stream), \
	  (list, sizes, count, flags, stream)) \
	E(CHECK, ss_list_exceeds(stream, list, sizes, count), hipDrvMemDiscardBatchAsync, 702, 715, \
	  (hipDeviceptr_t *list, size_t *sizes, size_t count, unsigned long long flags, \
	   hipStream_t stream), \
	  (list, sizes, count, flags, stream)) \
	E(CHECK, ss_list_exceeds(stream, list, sizes, count), \
	  hipMemDiscardAndPrefetchBatchAsync, 702, 715, \
	  (void **list, size_t *sizes, size_t count, hipMemLocation *where, size_t *which, \
	   size_t places, unsigned long long flags, hipStream_t stream), \
	  (list, sizes, count, where, which, places, flags, stream)) \
	E(CHECK, ss_list_exceeds(stream, list, sizes, count), \
	  hipDrvMemDiscardAndPrefetchBatchAsync, 702, 715, \
	  (hipDeviceptr_t *list, size_t *sizes, size_t count, hipMemLocation *where, size_t *which, \
	   size_t places, unsigned long long flags, hipStream_t stream), \
	  (list, sizes, count, where, which, places, flags, stream)) \
	E(QUEUE, stream, hipStreamAttachMemAsync, 402, 502, \
	  (hipStream_t stream, void *ptr, size_t size, unsigned int flags), \
	  (stream, ptr, size, flags)) \
	E(QUEUE, stream, hipMemMapArrayAsync, 501, 502, \
	  (hipArrayMapInfo *list, unsigned int count, hipStream_t stream), \
	  (list, count, stream)) \
	E(COPY_CHECK, (stream, ss_range_exceeds(stream, SS_WRITES, dst, size)), \
	  hipMemcpyAtoHAsync, 602, 604, \
	  (void *dst, hipArray_t src, size_t offset, size_t size, hipStream_t stream), \
	  (dst, src, offset, size, stream)) \
	E(COPY_CHECK, (stream, ss_range_exceeds(stream, SS_READS, src, size)), \
	  hipMemcpyHtoAAsync, 602, 604, \
	  (hipArray_t dst, size_t offset, const void *src, size_t size, hipStream_t stream), \
	  (dst, offset, src, size, stream)) \
	E(COPY_CHECK, (stream, ss_range_exceeds(stream, SS_READS, src, size)), \
	  hipMemcpyToSymbolAsync, 402, 502, \
	  (const void *symbol, const void *src, size_t size, size_t offset, hipMemcpyKind kind, \
	   hipStream_t stream), \
	  (symbol, src, size, offset, kind, stream)) \
	E(COPY_CHECK, (stream, ss_range_exceeds(stream, SS_WRITES, dst, size)), \
	  hipMemcpyFromSymbolAsync, 402, 502, \
	  (void *dst, const void *symbol, size_t size, size_t offset, hipMemcpyKind kind, \
	   hipStream_t stream), \
	  (dst, symbol, size, offset, kind, stream)) \
	E(COPY_CHECK, (ss_spt_stream(stream), ss_range_exceeds(ss_spt_stream(stream), SS_READS, src, size)), \
	  hipMemcpyToSymbolAsync_spt, 503, 507, \
	  (const void *symbol, const void *src, size_t size, size_t offset, hipMemcpyKind kind, \
	   hipStream_t stream), \
	  (symbol, src, size, offset, kind, stream)) \
	E(COPY_CHECK, (ss_spt_stream(stream), ss_range_exceeds(ss_spt_stream(stream), SS_WRITES, dst, size)), \
	  hipMemcpyFromSymbolAsync_spt, 503, 507, \
	  (void *dst, const void *symbol, size_t size, size_t offset, hipMemcpyKind kind, \
	   hipStream_t stream), \
	  (dst, symbol, size, offset, kind, stream)) \
	E(COPY_CHECK, (SS_PER_THREAD, ss_range_exceeds(SS_PER_THREAD, SS_READS, src, size)), \
	  hipMemcpyToSymbol_spt, 502, 502, \
	  (const void *symbol, const void *src, size_t size, size_t offset, hipMemcpyKind kind), \
	  (symbol, src, size, offset, kind)) \
	E(COPY_CHECK, (SS_PER_THREAD, ss_range_exceeds(SS_PER_THREAD, SS_WRITES, dst, size)), \
	  hipMemcpyFromSymbol_spt, 502, 502, \
	  (void *dst, const void *symbol, size_t size, size_t offset, hipMemcpyKind kind), \
	  (dst, symbol, size, offset, kind)) \
	E(COPY_CHECK, (stream, ss_2d_exceeds(p, stream)), hipMemcpyParam2DAsync, 402, 502, \
	  (const hip_Memcpy2D *p, hipStream_t stream), \
	  (p, stream)) \
	E(COPY_CHECK, (stream, ss_3d_exceeds(p, stream)), hipDrvMemcpy3DAsync, 402, 502, \
	  (const HIP_MEMCPY3D *p, hipStream_t stream), \
	  (p, stream)) \
	E(COPY_CHECK, (NULL, ss_peer_copy_exceeds(p, NULL)), hipMemcpy3DPeer, 701, 702, (SS_PEER_COPY *p), (p)) \
	E(COPY_CHECK, (stream, ss_peer_copy_exceeds(p, stream)), hipMemcpy3DPeerAsync, 701, 702, \
	  (SS_PEER_COPY *p, hipStream_t stream), \
	  (p, stream)) \
	E(SUBMIT, 0, hipMemcpyBatchAsync, 701, 702, \
	  (void **dst, void **src, size_t *sizes, size_t count, SS_COPY_ATTRIBUTES *attrs, \
	   size_t *which, size_t attr_count, size_t *failed, hipStream_t stream), \
	  (dst, src, sizes, count, attrs, which, attr_count, failed, stream)) \
	E(SUBMIT, 0, hipMemcpy3DBatchAsync, 701, 702, \
	  (size_t count, SS_COPY_OPS *ops, size_t *failed, unsigned long long flags, \
	   hipStream_t stream), \
	  (count, ops, failed, flags, stream)) \
	E(COPY_CHECK, (stream, ss_rows_exceed(stream, SS_READS, src, pitch, width, height)), \
	  hipMemcpy2DToArrayAsync, 403, 502, \
	  (hipArray_t dst, size_t x, size_t y, const void *src, size_t pitch, size_t width, \
	   size_t height, hipMemcpyKind kind, hipStream_t stream), \
	  (dst, x, y, src, pitch, width, height, kind, stream)) \
	E(COPY_CHECK, (stream, ss_rows_exceed(stream, SS_WRITES, dst, pitch, width, height)), \
	  hipMemcpy2DFromArrayAsync, 402, 502, \
	  (void *dst, size_t pitch, hipArray_const_t src, size_t x, size_t y, size_t width, \
	   size_t height, hipMemcpyKind kind, hipStream_t stream), \
	  (dst, pitch, src, x, y, width, height, kind, stream)) \
	E(COPY_CHECK, (ss_spt_stream(stream), ss_rows_exceed(ss_spt_stream(stream), SS_READS, src, pitch, width, height)), \
	  hipMemcpy2DToArrayAsync_spt, 503, 507, \
	  (hipArray_t dst, size_t x, size_t y, const void *src, size_t pitch, size_t width, \
	   size_t height, hipMemcpyKind kind, hipStream_t stream), \
	  (dst, x, y, src, pitch, width, height, kind, stream)) \
	E(COPY_CHECK, (ss_spt_stream(stream), ss_rows_exceed(ss_spt_stream(stream), SS_WRITES, dst, pitch, width, height)), \
	  hipMemcpy2DFromArrayAsync_spt, 503, 507, \
	  (void *dst, size_t pitch, hipArray_const_t src, size_t x, size_t y, size_t width, \
	   size_t height, hipMemcpyKind kind, hipStream_t stream), \
	  (dst, pitch, src, x, y, width, height, kind, stream)) \
	E(COPY_CHECK, (SS_PER_THREAD, ss_rows_exceed(SS_PER_THREAD, SS_READS, src, pitch, width, height)), \
	  hipMemcpy2DToArray_spt, 502, 502, \
	  (hipArray_t dst, size_t x, size_t y, const void *src, size_t pitch, size_t width, \
	   size_t height, hipMemcpyKind kind), \
	  (dst, x, y, src, pitch, width, height, kind)) \
	E(COPY_CHECK, (SS_PER_THREAD, ss_rows_exceed(SS_PER_THREAD, SS_WRITES, dst, pitch, width, height)), \
	  hipMemcpy2DFromArray_spt, 502, 502, \
	  (void *dst, size_t pitch, hipArray_const_t src, size_t x, size_t y, size_t width, \
	   size_t height, hipMemcpyKind kind), \
	  (dst, pitch, src, x, y, width, height, kind)) \
	E(COPY_CHECK, (SS_PER_THREAD, ss_range_exceeds(SS_PER_THREAD, SS_WRITES, dst, size)), \
	  hipMemcpyFromArray_spt, 503, 507, \
	  (void *dst, hipArray_const_t src, size_t x, size_t y, size_t size, hipMemcpyKind kind), \
	  (dst, src, x, y, size, kind)) \
	E(SUBMIT, 0, hipMemcpy2D_spt, 502, 502, \
	  (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, \
	   size_t height, hipMemcpyKind kind), \
	  (dst, dpitch, src, spitch, width, height, kind)) \
	E(COPY_CHECK, (SS_PER_THREAD, ss_box_exceeds(p, SS_PER_THREAD)), hipMemcpy3D_spt, 502, 502, \
	  (const struct hipMemcpy3DParms *p), \
	  (p)) \
	E(SUBMIT, 0, hipMemsetD2D8Async, 701, 702, \
	  (hipDeviceptr_t dst, size_t pitch, unsigned char value, size_t width, size_t height, \
	   hipStream_t stream), \
	  (dst, pitch, value, width, height, stream)) \
	E(SUBMIT, 0, hipMemsetD2D16Async, 701, 702, \
	  (hipDeviceptr_t dst, size_t pitch, unsigned short value, size_t width, size_t height, \
	   hipStream_t stream), \
	  (dst, pitch, value, width, height, stream)) \
	E(SUBMIT, 0, hipMemsetD2D32Async, 701, 702, \
	  (hipDeviceptr_t dst, size_t pitch, unsigned int value, size_t width, size_t height, \
	   hipStream_t stream), \
	  (dst, pitch, value, width, height, stream)) \
	E(COPY_CHECK, (NULL, ss_rows_exceed(NULL, SS_READS, src, pitch, width, height)), \
	  hipMemcpy2DToArray, 402, 502, \
	  (hipArray_t dst, size_t x, size_t y, const void *src, size_t pitch, size_t width, \
	   size_t height, hipMemcpyKind kind), \
	  (dst, x, y, src, pitch, width, height, kind)) \
	E(COPY_CHECK, (NULL, ss_rows_exceed(NULL, SS_WRITES, dst, pitch, width, height)), \
	  hipMemcpy2DFromArray, 402, 502, \
	  (void *dst, size_t pitch, hipArray_const_t src, size_t x, size_t y, size_t width, \
	   size_t height, hipMemcpyKind kind), \
	  (dst, pitch, src, x, y, width, height, kind)) \
	E(COPY_CHECK, (NULL, ss_range_exceeds(NULL, SS_READS, src, size)), hipMemcpyToArray, 402, 502, \
	  (hipArray_t dst, size_t x, size_t y, const void *src, size_t size, hipMemcpyKind kind), \
	  (dst, x, y, src, size, kind)) \
	E(COPY_CHECK, (NULL, ss_range_exceeds(NULL, SS_WRITES, dst, size)), hipMemcpyFromArray, 402, 502, \
	  (void *dst, hipArray_const_t src, size_t x, size_t y, size_t size, hipMemcpyKind kind), \
	  (dst, src, x, y, size, kind)) \
	E(COPY_CHECK, (NULL, ss_range_exceeds(NULL, SS_READS, src, size)), hipMemcpyDtoA, 602, 604, \
	  (hipArray_t dst, size_t offset, hipDeviceptr_t src, size_t size), \
	  (dst, offset, src, size)) \
	E(COPY_CHECK, (NULL, ss_range_exceeds(NULL, SS_WRITES, dst, size)), hipMemcpyAtoD, 602, 604, \
	  (hipDeviceptr_t dst, hipArray_t src, size_t offset, size_t size), \
	  (dst, src, offset, size)) \
	E(COPY_CHECK, (NULL, ss_range_exceeds(NULL, SS_READS, src, size)), hipMemcpyToSymbol, 402, 502, \
	  (const void *symbol, const void *src, size_t size, size_t offset, hipMemcpyKind kind), \
	  (symbol, src, size, offset, kind)) \
	E(COPY_CHECK, (NULL, ss_range_exceeds(NULL, SS_WRITES, dst, size)), hipMemcpyFromSymbol, 402, 502, \
	  (void *dst, const void *symbol, size_t size, size_t offset, hipMemcpyKind kind), \
	  (dst, symbol, size, offset, kind)) \
	E(PASS, 0, hipGetChannelDesc, 402, 502, \
	  (hipChannelFormatDesc *desc, hipArray_const_t array), (desc, array)) \
	E(QUEUE, stream, hipConfigureCall, 402, 502, \
	  (dim3 grid, dim3 block, size_t shared, hipStream_t stream), \
	  (grid, block, shared, stream)) \
	/* hipLaunchByPtr puts work on the stream of hipConfigureCall. Calls that make textures look \
	 * up what a pointer is, so its memory must be mapped. */ \
	E(CHECK, false, hipLaunchByPtr, 402, 502, (const void *func), (func)) \
	E(CHECK, false, hipBindTexture, 402, 502, \
	  (size_t *offset, const textureReference *texture, const void *ptr, \
	   const hipChannelFormatDesc *desc, size_t size), \
	  (offset, texture, ptr, desc, size)) \
	E(CHECK, false, hipBindTexture2D, 402, 502, \
	  (size_t *offset, const textureReference *texture, const void *ptr, \
	   const hipChannelFormatDesc *desc, size_t width, size_t height, size_t pitch), \
	  (offset, texture, ptr, desc, width, height, pitch)) \
	E(CHECK, false, hipCreateTextureObject, 402, 502, \
	  (hipTextureObject_t *object, const hipResourceDesc *resource, \
	   const hipTextureDesc *desc, const struct hipResourceViewDesc *view), \
	  (object, resource, desc, view)) \
	E(CHECK, false, hipTexObjectCreate, 402, 502, \
	  (hipTextureObject_t *object, const HIP_RESOURCE_DESC *resource, \
	   const HIP_TEXTURE_DESC *desc, const HIP_RESOURCE_VIEW_DESC *view), \
	  (object, resource, desc, view)) \
	E(CHECK, false, hipTexRefSetAddress, 402, 502, \
	  (size_t *offset, textureReference *texture, hipDeviceptr_t ptr, size_t size), \
	  (offset, texture, ptr, size)) \
	E(CHECK, false, hipTexRefSetAddress2D, 402, 502, \
	  (textureReference *texture, const HIP_ARRAY_DESCRIPTOR *desc, hipDeviceptr_t ptr, \
	   size_t pitch), \
	  (texture, desc, ptr, pitch)) \
	E(QUEUE, ss_launch(stream, f, false, params, NULL), hipModuleLaunchCooperativeKernel, 505, 507, \
	  (hipFunction_t f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int lx, \
	   unsigned int ly, unsigned int lz, unsigned int shared, hipStream_t stream, \
	   void **params), \
	  (f, gx, gy, gz, lx, ly, lz, shared, stream, params)) \
	E(QUEUE, ss_launch(ss_stream_in(config, 32), function, true, args, NULL), hipLaunchKernelExC, 605, 702, \
	  (const SS_LAUNCH_CONFIG *config, const void *function, void **args), \
	  (config, function, args)) \
	E(QUEUE, ss_launch(ss_stream_in(config, 32), f, false, params, extra), hipDrvLaunchKernelEx, 605, 702, \
	  (const SS_DRV_LAUNCH_CONFIG *config, hipFunction_t f, void **params, void **extra), \
	  (config, f, params, extra)) \
	E(QUEUE, ss_launches(list, (unsigned)count, flags, true), hipExtLaunchMultiKernelMultiDevice, 402, 502, \
	  (hipLaunchParams *list, int count, unsigned int flags), \
	  (list, count, flags)) \
	E(QUEUE, ss_launches(list, (unsigned)count, flags, true), hipLaunchCooperativeKernelMultiDevice, 402, 502, \
	  (hipLaunchParams *list, int count, unsigned int flags), \
	  (list, count, flags)) \
	E(QUEUE, ss_launches(list, count, flags, false), hipModuleLaunchCooperativeKernelMultiDevice, 505, 507, \
	  (SS_LAUNCH_LIST *list, unsigned int count, unsigned int flags), \
	  (list, count, flags)) \
	/* ---- copies that wait, or that graphs make ---- */ \
	E(COPY, NULL, hipMemcpy, 402, 502, \
	  (void *dst, const void *src, size_t size, hipMemcpyKind kind), \
	  (dst, src, size, kind)) \
	E(COPY, NULL, hipMemcpyHtoD, 402, 502, \
	  (hipDeviceptr_t dst, SS_HTOD_SOURCE *src, size_t size), \
	  (dst, src, size)) \
	E(COPY, NULL, hipMemcpyDtoH, 402, 502, \
	  (void *dst, hipDeviceptr_t src, size_t size), \
	  (dst, src, size)) \
	E(COPY, NULL, hipMemcpyDtoD, 402, 502, \
	  (hipDeviceptr_t dst, hipDeviceptr_t src, size_t size), \
	  (dst, src, size)) \
	E(COPY, NULL, hipMemcpyPeer, 402, 502, \
	  (void *dst, int dst_dev, const void *src, int src_dev, size_t size), \
	  (dst, dst_dev, src, src_dev, size)) \
	E(SUBMIT, 0, hipMemcpy2D, 402, 502, \
	  (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, \
	   size_t height, hipMemcpyKind kind), \
	  (dst, dpitch, src, spitch, width, height, kind)) \
	E(COPY_CHECK, (NULL, ss_box_exceeds(p, NULL)), hipMemcpy3D, 402, 502, \
	  (const struct hipMemcpy3DParms *p), (p)) \
	E(NODE, (ss_box_exceeds(p, NULL), ss_check_node(graph, *node)), hipGraphAddMemcpyNode, 403, 502, \
	  (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps, size_t count, \
	   const hipMemcpy3DParms *p), \
	  (node, graph, deps, count, p)) \
	E(NODE, (ss_box_exceeds(p, NULL), ss_check_node(NULL, node)), hipGraphMemcpyNodeSetParams, 404, 502, \
	  (hipGraphNode_t node, const hipMemcpy3DParms *p), (node, p)) \
	E(SUBMIT, 0, hipGraphExecMemcpyNodeSetParams, 405, 502, \
	  (hipGraphExec_t exec, hipGraphNode_t node, hipMemcpy3DParms *p), (exec, node, p)) \
	E(SUBMIT, 0, hipGraphExecUpdate, 405, 502, \
	  (hipGraphExec_t exec, hipGraph_t graph, hipGraphNode_t *node, hipGraphExecUpdateResult *result), \
	  (exec, graph, node, result)) \
	E(CHECK, ss_memset_exceeds(p), hipGraphAddMemsetNode, 403, 502, \
	  (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps, size_t count, \
	   const hipMemsetParams *p), \
	  (node, graph, deps, count, p)) \
	E(CHECK, ss_memset_exceeds(p), hipGraphMemsetNodeSetParams, 404, 502, \
	  (hipGraphNode_t node, const hipMemsetParams *p), (node, p)) \
	E(NODE, (ss_memset_exceeds(p), ss_check_exec_node(exec, node)), hipGraphExecMemsetNodeSetParams, 405, 502, \
	  (hipGraphExec_t exec, hipGraphNode_t node, const hipMemsetParams *p), (exec, node, p)) \
	E(COPY_CHECK, (NULL, ss_2d_exceeds(p, NULL)), hipMemcpyParam2D, 402, 502, \
	  (const hip_Memcpy2D *p), (p)) \
	E(COPY_CHECK, (NULL, ss_2d_exceeds(p, NULL)), hipDrvMemcpy2DUnaligned, 403, 502, \
	  (const hip_Memcpy2D *p), (p)) \
	E(COPY_CHECK, (NULL, ss_3d_exceeds(p, NULL)), hipDrvMemcpy3D, 402, 502, (const HIP_MEMCPY3D *p), (p)) \
	E(NODE, (ss_3d_exceeds(p, NULL), ss_check_node(graph, *node)), hipDrvGraphAddMemcpyNode, 506, 604, \
	  (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps, size_t count, \
	   const HIP_MEMCPY3D *p, hipCtx_t ctx), \
	  (node, graph, deps, count, p, ctx)) \
	E(NODE, (ss_3d_exceeds(p, NULL), ss_check_node(NULL, node)), hipDrvGraphMemcpyNodeSetParams, 600, 604, \
	  (hipGraphNode_t node, const HIP_MEMCPY3D *p), (node, p)) \
	E(NODE, (ss_3d_exceeds(p, NULL), ss_check_exec_node(exec, node)), hipDrvGraphExecMemcpyNodeSetParams, 602, 604, \
	  (hipGraphExec_t exec, hipGraphNode_t node, const HIP_MEMCPY3D *p, hipCtx_t ctx), \
	  (exec, node, p, ctx)) \
	E(CHECK, ss_drv_memset_exceeds(p), hipDrvGraphAddMemsetNode, 506, 604, \
	  (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps, size_t count, \
	   const SS_DRV_FILL *p, hipCtx_t ctx), \
	  (node, graph, deps, count, p, ctx)) \
	E(NODE, (ss_drv_memset_exceeds(p), ss_check_exec_node(exec, node)), hipDrvGraphExecMemsetNodeSetParams, 602, 604, \
	  (hipGraphExec_t exec, hipGraphNode_t node, const SS_DRV_FILL *p, hipCtx_t ctx), \
	  (exec, node, p, ctx)) \
	E(NODE, (COPY_EXCEEDS(NULL), ss_check_node(graph, *node)), hipGraphAddMemcpyNode1D, 403, 502, \
	  (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps, size_t count, \
	   void *dst, const void *src, size_t size, hipMemcpyKind kind), \
	  (node, graph, deps, count, dst, src, size, kind)) \
	E(NODE, (COPY_EXCEEDS(NULL), ss_check_node(NULL, node)), hipGraphMemcpyNodeSetParams1D, 405, 502, \
	  (hipGraphNode_t node, void *dst, const void *src, size_t size, hipMemcpyKind kind), \
	  (node, dst, src, size, kind)) \
	E(NODE, (COPY_EXCEEDS(NULL), ss_check_exec_node(exec, node)), hipGraphExecMemcpyNodeSetParams1D, 405, 502, \
	  (hipGraphExec_t exec, hipGraphNode_t node, void *dst, const void *src, size_t size, \
	   hipMemcpyKind kind), \
	  (exec, node, dst, src, size, kind)) \
	/* ---- the rest of what the checker has to know of graphs: check/graph.c ---- */ \
	E(NODE, (false, ss_check_graph_new(*graph)), hipGraphCreate, 403, 502, \
	  (hipGraph_t *graph, unsigned int flags), (graph, flags)) \
	E(NODE, (false, ss_check_graph_copied(graph, *copy)), hipGraphClone, 405, 502, \
	  (hipGraph_t *copy, hipGraph_t graph), (copy, graph)) \
	E(NODE, (false, ss_check_graph_gone(graph)), hipGraphDestroy, 403, 502, \
	  (hipGraph_t graph), (graph)) \
	E(NODE, (false, ss_check_exec_gone(exec)), hipGraphExecDestroy, 403, 502, \
	  (hipGraphExec_t exec), (exec)) \
	E(NODE, (false, ss_check_child_added(*node, child)), hipGraphAddChildGraphNode, 405, 502, \
	  (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps, size_t count, \
	   hipGraph_t child), \
	  (node, graph, deps, count, child)) \
	E(NODE, (false, ss_check_exec_unknown(exec)), hipGraphExecChildGraphNodeSetParams, 405, 502, \
	  (hipGraphExec_t exec, hipGraphNode_t node, hipGraph_t child), (exec, node, child)) \
	E(NODE, (false, ss_check_exec_kernel(exec, node, p)), hipGraphExecKernelNodeSetParams, 404, 502, \
	  (hipGraphExec_t exec, hipGraphNode_t node, const hipKernelNodeParams *p), (exec, node, p)) \
	E(NODE, (false, ss_check_exec_enabled(exec, node, enabled)), hipGraphNodeSetEnabled, 503, 507, \
	  (hipGraphExec_t exec, hipGraphNode_t node, unsigned int enabled), (exec, node, enabled)) \
	E(NODE, (ss_exceeds_on(NULL, SS_WRITES, dst, size), ss_check_node(graph, *node)), hipGraphAddMemcpyNodeFromSymbol, 405, 502, \
	  (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps, size_t count, \
	   void *dst, const void *symbol, size_t size, size_t offset, hipMemcpyKind kind), \
	  (node, graph, deps, count, dst, symbol, size, offset, kind)) \
	E(NODE, (ss_exceeds_on(NULL, SS_WRITES, dst, size), ss_check_node(NULL, node)), hipGraphMemcpyNodeSetParamsFromSymbol, 405, 502, \
	  (hipGraphNode_t node, void *dst, const void *symbol, size_t size, size_t offset, hipMemcpyKind kind), \
	  (node, dst, symbol, size, offset, kind)) \
	E(NODE, (ss_exceeds_on(NULL, SS_WRITES, dst, size), ss_check_exec_node(exec, node)), hipGraphExecMemcpyNodeSetParamsFromSymbol, 405, 502, \
	  (hipGraphExec_t exec, hipGraphNode_t node, \
	   void *dst, const void *symbol, size_t size, size_t offset, hipMemcpyKind kind), \
	  (exec, node, dst, symbol, size, offset, kind)) \
	E(NODE, (ss_exceeds_on(NULL, SS_READS, src, size), ss_check_node(graph, *node)), hipGraphAddMemcpyNodeToSymbol, 405, 502, \
	  (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *deps, size_t count, \
	   const void *symbol, const void *src, size_t size, size_t offset, hipMemcpyKind kind), \
	  (node, graph, deps, count, symbol, src, size, offset, kind)) \
	E(NODE, (ss_exceeds_on(NULL, SS_READS, src, size), ss_check_node(NULL, node)), hipGraphMemcpyNodeSetParamsToSymbol, 405, 502, \
	  (hipGraphNode_t node, const void *symbol, const void *src, size_t size, size_t offset, hipMemcpyKind kind), \
	  (node, symbol, src, size, offset, kind)) \
	E(NODE, (ss_exceeds_on(NULL, SS_READS, src, size), ss_check_exec_node(exec, node)), hipGraphExecMemcpyNodeSetParamsToSymbol, 405, 502, \
	  (hipGraphExec_t exec, hipGraphNode_t node, \
	   const void *symbol, const void *src, size_t size, size_t offset, hipMemcpyKind kind), \
	  (exec, node, symbol, src, size, offset, kind)) \
	/* ---- other ways to the same functions: route/proc_address.c ---- */ \
	E(WATCH, 0, hipGetProcAddress, 601, 604, \
	  (const char *symbol, void **fn, int version, uint64_t flags, SS_PROC_STATUS *status), \
	  (symbol, fn, version, flags, status)) \
	E(WATCH, 0, hipGetProcAddress_spt, 702, 715, \
	  (const char *symbol, void **fn, int version, uint64_t flags, SS_PROC_STATUS *status), \
	  (symbol, fn, version, flags, status)) \
	E(WATCH, 0, hipGetDriverEntryPoint, 701, 702, \
	  (const char *symbol, void **fn, unsigned long long flags, \
	   SS_ENTRY_STATUS *status), \
	  (symbol, fn, flags, status)) \
	E(WATCH, 0, hipGetDriverEntryPoint_spt, 701, 702, \
	  (const char *symbol, void **fn, unsigned long long flags, \
	   SS_ENTRY_STATUS *status), \
	  (symbol, fn, flags, status))

/* Functions that the shim calls for itself and does not intercept. */
#define SS_HELPERS(H) \
	H(const char *, hipGetErrorName, (hipError_t err)) \
	H(const char *, hipGetErrorString, (hipError_t err)) \
	H(hipError_t, hipGetDevice, (int *dev)) \
	H(hipError_t, hipDeviceCanAccessPeer, (int *can, int dev, int peer)) \
	H(hipError_t, hipDeviceGetUuid, (hipUUID *uuid, hipDevice_t dev)) \
	H(hipError_t, hipDeviceGetPCIBusId, (char *id, int size, int dev)) \
	H(hipError_t, hipGraphGetNodes, (hipGraph_t graph, hipGraphNode_t *nodes, size_t *count)) \
	H(hipError_t, hipGraphNodeGetType, (hipGraphNode_t node, hipGraphNodeType *type)) \
	H(hipError_t, hipGraphMemcpyNodeGetParams, (hipGraphNode_t node, hipMemcpy3DParms *p)) \
	H(hipError_t, hipGraphMemsetNodeGetParams, (hipGraphNode_t node, hipMemsetParams *p)) \
	H(hipError_t, hipGraphKernelNodeGetParams, (hipGraphNode_t node, hipKernelNodeParams *p)) \
	H(hipError_t, hipGraphChildGraphNodeGetGraph, (hipGraphNode_t node, hipGraph_t *graph)) \
	H(hipError_t, hipStreamGetCaptureInfo_v2, \
	  (hipStream_t stream, hipStreamCaptureStatus *status, unsigned long long *id, \
	   hipGraph_t *graph, const hipGraphNode_t **last, size_t *count)) \
	H(hipError_t, hipStreamGetFlags, (hipStream_t stream, unsigned int *flags)) \
	H(hipError_t, hipStreamGetDevice, (hipStream_t stream, hipDevice_t *dev)) \
	H(const char *, hipKernelNameRef, (hipFunction_t f)) \
	H(const char *, hipKernelNameRefByPtr, (const void *host, hipStream_t stream)) \
	H(int, hipGetStreamDeviceId, (hipStream_t stream)) \
	H(hipError_t, hipExecutionCtxGetDevice, (int *dev, void *context)) \
	H(hipError_t, hipStreamIsCapturing, (hipStream_t stream, hipStreamCaptureStatus *status))

#endif
