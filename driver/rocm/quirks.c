/* SPDX-License-Identifier: MIT */
/*
 * The one table of known runtime defects; `somashim doctor` prints it. Releases are HIP's: 714 is
 * ROCm 7.14, 715 to 717 are ROCm 10.0 to 10.2 (releases.c). A row without an end is a defect that
 * is open in the newest release, or whose end is unknown. A row for which a trial exists (V1, V3,
 * V7, and any mapping that loses stores) ends with the last reported release: for later releases
 * the trial decides.
 */
#include <string.h>

#include "driver/rocm/quirks.h"

static const struct ss_quirk table[] = {
	/* native pools */
	{"C1", "rocm-systems#10943", 700, 0, NULL, SS_Q_NOTE,
	 "hipMallocAsync buffers come back zeroed", "no memory of a live block is unmapped"},
	{"C2", "rocm-systems#11693", 700, 0, "gfx120", SS_Q_SETTLE,
	 "a fresh mapping loses stores for about 2 ms",
	 "every mapping is written and read back before it is used"},
	{"C3", "rocm-systems#11690", 604, 0, NULL, SS_Q_NOTE,
	 "ReleaseThreshold is ignored under pressure", "thresholds are exact"},
	{"C4", "rocm-systems#11642", 700, 0, NULL, SS_Q_NOTE,
	 "a failed hipMallocAsync keeps what it committed, and frees it twice at exit",
	 "failure changes nothing"},
	{"C5", "rocm-systems#10529", 0, 0, NULL, SS_Q_NOTE,
	 "hipMallocAsync and hipEventSynchronize deadlock",
	 "no lock is held during a call into the runtime"},
	{"C6", "hip#3370", 506, 507, NULL, SS_Q_NOTE, "hipFreeAsync from many threads hangs",
	 "a free makes no HIP call"},
	{"C7", "hip#3775", 0, 603, NULL, SS_Q_NOTE, "out of memory where hipMalloc fits",
	 "free ranges coalesce, idle memory is released first"},
	{"C9", "rocm-libraries#1705", 700, 0, NULL, SS_Q_NOTE,
	 "hipFree of pool memory no longer waits", "SOMASHIM_FREE_SYNC decides"},
	{"C10", "AMDGPU.jl#901", 700, 0, NULL, SS_Q_NOTE,
	 "hipMallocAsync of 64 B fails without VMM in the kernel",
	 "whole segments from hipExtMallocWithFlags"},
	{"C13", "legacy-rocm-build#6681", 604, 0, NULL, SS_Q_NOTE,
	 "hipMallocAsync returns 900 while another stream captures", "the pools serve it"},
	{"C20", "rocm-systems#3649", 700, 0, NULL, SS_Q_NOTE,
	 "a signal leaks with each hipFreeAsync", "events are pooled"},
	{"C21", "alpaka#2197", 0, 507, NULL, SS_Q_CHECK_FREE_ASYNC,
	 "hipFreeAsync crashes on an unknown pointer, or returns success",
	 "pointers are checked before they are passed on"},
	/* virtual memory */
	{"B7", "hip_vm.cpp of 5.x", 0, 600, NULL, SS_Q_NO_VMM,
	 "the hipMem* calls are stubs that report success", "no VMM"},
	{"V4", "ROCR-Runtime#285", 600, 604, NULL, SS_Q_NOTE,
	 "unmapping several handles at once is incomplete", "one chunk per call"},
	{"V6", "hip#3781", 600, 603, NULL, SS_Q_NO_VMM, "hipMemRelease does not free", "no VMM"},
	{"V8", "torch_memory_saver#14", 603, 604, NULL, SS_Q_NOTE,
	 "one handle cannot exceed host memory", "chunks stay small"},
	{"B7b", "hip_vm.cpp:264", 600, 713, NULL, SS_Q_MAP_JOINS, "a map waits on the null stream",
	 "the hot path maps nothing, and hipMalloc maps only while nothing has to be waited for"},
	{"B7d", "hip_vm.cpp:264", 600, 604, NULL, SS_Q_MAP_IN_CAPTURE,
	 "a map joins a blocking stream that captures", "no map beside such a capture"},
	{"O5", "observed on 6.4.3", 600, 604, NULL, SS_Q_EXIT_MAPPED,
	 "at exit the runtime uses mappings whose device is gone",
	 "the memory of idle devices is unmapped before"},
	{"O7", "observed on 6.4.3", 600, 604, NULL, SS_Q_KEEP_UNOPENED,
	 "hipMemUnmap crashes on memory to which nobody has access",
	 "if SetAccess fails that memory is set aside, and pools go on with hip"},
	{"V1", "rocm-systems#2516", 700, 713, NULL, SS_Q_ACCESS_PREFIX,
	 "SetAccess on a later part of a range fails",
	 "access is set from the start of the range on, for the owner last"},
	{"V3", "rocm-systems#6977", 700, 713, NULL, SS_Q_ACCESS_PREFIX,
	 "SetAccess on the end of a range sometimes fails", "as V1"},
	{"V1b", "rocm-systems#2516", 714, 0, NULL, SS_Q_ACCESS_TRY,
	 "SetAccess on a later part of a range may fail, as in V1",
	 "it is tried before virtual memory is used, and if it fails it is done as in V1"},
	{"V7", "legacy-rocm-build#6021", 700, 713, NULL, SS_Q_NOTE,
	 "an unmap leaves the device's file mapped, and with it the memory taken",
	 "addresses that show the file after an unmap are mapped anew; where hipMemGetInfo shows "
	 "the "
	 "memory taken all the same, only whole idle pools are released"},
	{"B7c", "hip_memory.cpp: ValidateMemAccess", 600, 0, NULL, SS_Q_NOTE,
	 "copies and memsets of mapped memory fail while a device without access is current",
	 "every device that is used gets access; no VMM where one cannot have it"},
	{"V10", "clr#265", 600, 0, NULL, SS_Q_NOTE, "IPC export of a VMM address is a kernel BUG",
	 "somashim refuses the export"},
	{"V13", "xla#46576", 714, 714, NULL, SS_Q_PEER_SPOILS,
	 "SetAccess on a peer after the owner corrupts the mapping",
	 "the owner comes last; no VMM with several devices"},
	{"V15", "llamacpp-rocm#87", 700, 0, "gfx1201", SS_Q_NO_VMM, "VMM hangs the GPU",
	 "no VMM on this architecture"},
	{"V17", "mori#455", 700, 0, NULL, SS_Q_MAP_ALONE,
	 "threads that map, unmap or set access at the same time crash the runtime",
	 "one thread at a time does"},
	{"V18", "legacy-rocm-build#6661", 714, 714, NULL, SS_Q_NOTE,
	 "every handle of physical memory is a file descriptor",
	 "chunks grow with their pool; a soft limit of descriptors is raised, a hard one is named"},
	{"V19", "rocm-systems#4363", 700, 702, NULL, SS_Q_NO_HOST,
	 "an unmap leaks a file descriptor if the host has access",
	 "access is given to devices only"},
	{"V20", "pytorch#192814", 600, 714, NULL, SS_Q_NO_HOST,
	 "after virtual memory ran out, the host reads old data in device memory",
	 "access is given to devices only"},
	{"V22", "vllm#51369", 600, 0, NULL, SS_Q_NOTE,
	 "the host crashes if it loads from mapped memory, as PyTorch does",
	 "the host gets access where that is safe; elsewhere auto takes hip if PyTorch is loaded"},
	{"V21", "rocm-systems#6982", 714, 0, NULL, SS_Q_UNMAP_WAITS,
	 "an unmap waits for every stream that may use the memory",
	 "memory is released in large pieces, while every device is idle"},
	/* capture, IPC */
	{"O2", "observed on 7.2.4", 700, 0, NULL, SS_Q_QUERY_IN_CAPTURE,
	 "hipEventQuery on an unrelated stream ends a capture",
	 "queries run inside a relaxed mode exchange"},
	{"O4", "observed on 6.4.3", 600, 701, NULL, SS_Q_QUERY_BEFORE,
	 "hipEventQuery ends a capture on the stream where the event was recorded before it, or "
	 "on another of the same handle",
	 "a fence is not queried while its stream captures, or, if that is gone, any stream"},
	{"O3", "observed on 7.2.4", 700, 0, NULL, SS_Q_NOTE,
	 "an invalid stream handle crashes the process",
	 "handles are checked before they are passed on"},
	{"O8", "observed on 7.2.4", 702, 0, NULL, SS_Q_NOTE,
	 "hipStreamQuery and hipEventRecord last as long as another thread waits for the stream",
	 "no stream is queried while a thread waits for it"},
	{"O1", "observed on 6.4.3 and 7.2.4", 0, 0, NULL, SS_Q_NOTE,
	 "hipIpcOpenMemHandle ignores the offset of a sub-allocation",
	 "interior blocks are refused, never opened at the wrong place"},
	{"O9", "observed on 6.4.3", 604, 604, NULL, SS_Q_NOTE,
	 "a map spoils memsets of graphs that were made before it",
	 "the self-test tries it, and auto takes hip then; "
	 "DEBUG_CLR_GRAPH_PACKET_CAPTURE=0 avoids it"},
};

const struct ss_quirk *ss_quirks(size_t *count)
{
	*count = sizeof(table) / sizeof(table[0]);
	return table;
}

bool ss_quirk_applies(const struct ss_quirk *q, int major, int minor, const char *arch)
{
	int v = 100 * major + minor;

	if ((q->from && v < q->from) || (q->to && v > q->to))
		return false;
	return !q->arch || (arch && !strncmp(arch, q->arch, strlen(q->arch)));
}

unsigned ss_quirk_flags(int major, int minor, const char *arch)
{
	unsigned flags = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (ss_quirk_applies(&table[i], major, minor, arch))
			flags |= table[i].flags;
	return flags;
}
