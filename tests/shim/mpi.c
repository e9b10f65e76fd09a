/* SPDX-License-Identifier: MIT */
/*
 * Ranks of an MPI program share device memory. Each has a block for every other rank, which
 * reads what the owner wrote and writes an answer. Handles and pointers travel by MPI,
 * which knows nothing of the device.
 */
#include <mpi.h>

#define BYTES 70000
#include "test.h"

#define MOST 16
#define ROUNDS 3

static int me, ranks;

static int question(int owner, int reader, int round)
{
	return 1 + owner * 7 + reader * 31 + round;
}

static int answer(int owner, int reader, int round)
{
	return 255 - question(owner, reader, round);
}

/* Blocks of hipMalloc by hipIpcMemHandle_t, every second round with a gap before. */
static void classic(int round)
{
	hipIpcMemHandle_t out[MOST], in[MOST];
	void *own[MOST], *theirs[MOST], *gap = NULL;

	if (round % 2)
		OK(hipMalloc(&gap, 3000));
	for (int i = 0; i < ranks; i++) {
		OK(hipMalloc(&own[i], BYTES));
		fill(own[i], question(me, i, round));
		OK(hipIpcGetMemHandle(&out[i], own[i]));
	}
	MPI_Alltoall(out, sizeof(out[0]), MPI_BYTE, in, sizeof(in[0]), MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++) {
		if (i == me)
			continue;
		OK(hipIpcOpenMemHandle(&theirs[i], in[i], 1));
		CHECK(holds(theirs[i], question(i, me, round)));
		fill(theirs[i], answer(i, me, round));
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++)
		CHECK(i == me || holds(own[i], answer(me, i, round)));
	/* Even ranks free what they own while the others still have it open. */
	if (me % 2 == 0)
		for (int i = 0; i < ranks; i++)
			OK(hipFree(own[i]));
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++)
		if (i != me) {
			CHECK(holds(theirs[i], answer(i, me, round)));
			OK(hipIpcCloseMemHandle(theirs[i]));
		}
	MPI_Barrier(MPI_COMM_WORLD);
	if (me % 2)
		for (int i = 0; i < ranks; i++)
			OK(hipFree(own[i]));
	if (gap)
		OK(hipFree(gap));
}

/* Blocks of a pool by hipMemPoolPtrExportData, into a pool that was made here. */
static void pooled(int round)
{
	hipMemPoolPtrExportData out[MOST], in[MOST];
	void *own[MOST], *theirs[MOST];
	hipMemPool_t pool = make_pool(0, hipMemHandleTypePosixFileDescriptor);
	hipStream_t s;

	OK(hipStreamCreateWithFlags(&s, hipStreamNonBlocking));
	for (int i = 0; i < ranks; i++) {
		OK(hipMallocFromPoolAsync(&own[i], BYTES, pool, s));
		OK(hipMemsetAsync(own[i], question(me, i, round), BYTES, s));
		OK(hipMemPoolExportPointer(&out[i], own[i]));
	}
	OK(hipStreamSynchronize(s));
	MPI_Alltoall(out, sizeof(out[0]), MPI_BYTE, in, sizeof(in[0]), MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++) {
		OK(hipMemPoolImportPointer(&theirs[i], pool, &in[i])); /* our own too */
		CHECK(holds(theirs[i], question(i, me, round)));
		OK(hipMemsetAsync(theirs[i], answer(i, me, round), BYTES, s));
	}
	for (int i = 0; i < ranks; i++)
		OK(hipFreeAsync(theirs[i], s));
	OK(hipStreamSynchronize(s));
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++) {
		CHECK(holds(own[i], answer(me, i, round)));
		OK(i % 2 ? hipFree(own[i]) : hipFreeAsync(own[i], s));
	}
	OK(hipDeviceSynchronize());
	OK(hipStreamDestroy(s));
	OK(hipMemPoolDestroy(pool));
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	CHECK(ranks > 1 && ranks <= MOST && preloaded());
	for (int round = 0; round < ROUNDS; round++) {
		classic(round);
		pooled(round);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (!me)
		printf("%d ranks shared device memory\n", ranks);
	MPI_Finalize();
	return 0;
}
