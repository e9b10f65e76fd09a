/* SPDX-License-Identifier: MIT */
/*
 * On ROCm 6.4 graphs record their packets when they are instantiated. After the next hipMemMap or
 * hipMemUnmap recorded memsets write 0 in place of their value, in any memory.
 *
 * Locks: none.
 */
#include "shim/process/real.h"
#include "shim/process/recorded_memset.h"

hipError_t ss_recorded_memset_make(struct ss_recorded_memset *r, hipStream_t stream, int value,
				   size_t size)
{
	hipError_t err = REAL(hipMalloc, (void **)&r->memory, size), ended;

	r->stream = stream;
	r->size = size;
	if (err != hipSuccess)
		return err;
	err = REAL(hipStreamBeginCapture, stream, hipStreamCaptureModeRelaxed);
	if (err != hipSuccess)
		return err;
	err = REAL(hipMemsetAsync, r->memory, value, size, stream);
	ended = REAL(hipStreamEndCapture, stream, &r->graph);
	if (err == hipSuccess)
		err = ended;
	if (err == hipSuccess)
		err = REAL(hipGraphInstantiate, &r->exec, r->graph, NULL, NULL, 0);
	return err;
}

hipError_t ss_recorded_memset_launch(struct ss_recorded_memset *r)
{
	hipError_t err = REAL(hipMemsetAsync, r->memory, 0, r->size, r->stream);

	return err == hipSuccess ? REAL(hipGraphLaunch, r->exec, r->stream) : err;
}

void ss_recorded_memset_end(struct ss_recorded_memset *r)
{
	(void)REAL(hipStreamSynchronize, r->stream);
	if (r->exec)
		(void)REAL(hipGraphExecDestroy, r->exec);
	if (r->graph)
		(void)REAL(hipGraphDestroy, r->graph);
	if (r->memory)
		(void)REAL(hipFree, r->memory);
}
