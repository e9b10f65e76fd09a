/* SPDX-License-Identifier: MIT */
/*
 * Memory and events that other processes open.
 *
 * The driver uses all 64 bytes of its handle of memory. HIP's handle has only 32 bytes for that;
 * users of HIP know the other ones (the size, the offset, the process). So the driver's handle is
 * stored in a file of this process, which has no name and ends with the process, and HIP's handle
 * names the place. The process that opens the memory reads the file by /proc.
 *
 * Locks: exports_lock guards the file. The driver is called outside it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/context.h"

/* The content of a hipIpcMemHandle_t, in the layout of AMD's runtime. */
struct ipc_handle {
	uint32_t magic, pid_of_file;
	int32_t file, row;
	uint64_t check; /* of the driver's handle */
	uint64_t unused;
	uint64_t size, offset;
	uint32_t pid, device;
	uint64_t rest;
};
#define IPC_HANDLE 0x43554441u

_Static_assert(sizeof(struct ipc_handle) == sizeof(hipIpcMemHandle_t), "IPC handles");
_Static_assert(sizeof(hipIpcEventHandle_t) == sizeof(CUipcEventHandle), "IPC handles");

static pthread_mutex_t exports_lock = PTHREAD_MUTEX_INITIALIZER;
static int file; /* of the process `owner`, 0: of none yet */
static pid_t owner;
static int rows;

static bool row_of(int fd, int row, CUipcMemHandle *c)
{
	return pread(fd, c, sizeof(*c), (off_t)row * (off_t)sizeof(*c)) == (ssize_t)sizeof(*c);
}

static uint64_t check_of(const CUipcMemHandle *c)
{
	uint64_t sum = 0, word;

	for (size_t i = 0; i < sizeof(*c); i += sizeof(word)) {
		memcpy(&word, (const char *)c + i, sizeof(word));
		sum = (sum ^ word) * 0x100000001b3u;
	}
	return sum;
}

/* Stores the driver's handle. A handle that is stored already keeps its row, so that HIP's handle
 * is the same. */
static bool keep(const CUipcMemHandle *c, struct ipc_handle *h)
{
	CUipcMemHandle other;
	int row = 0;

	pthread_mutex_lock(&exports_lock);
	if (owner != getpid()) { /* a file of the parent's is the parent's */
		owner = getpid();
		file = memfd_create("somacuda-handles", MFD_CLOEXEC);
		rows = 0;
	}
	while (row < rows && row_of(file, row, &other) && memcmp(&other, c, sizeof(other)))
		row++;
	if (row == rows &&
	    pwrite(file, c, sizeof(*c), (off_t)row * (off_t)sizeof(*c)) == (ssize_t)sizeof(*c))
		rows++;
	*h = (struct ipc_handle){
		.magic = IPC_HANDLE,
		.pid_of_file = (uint32_t)owner,
		.file = file,
		.row = row,
		.check = check_of(c),
		.pid = (uint32_t)owner,
	};
	row = row < rows;
	pthread_mutex_unlock(&exports_lock);
	return row;
}

static bool kept(const struct ipc_handle *h, CUipcMemHandle *c)
{
	char path[64];
	bool found;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/fd/%d", h->pid_of_file, h->file);
	/* The number may be wrong, and that of a pipe. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	found = fd >= 0 && row_of(fd, h->row, c) && check_of(c) == h->check;
	if (fd >= 0)
		close(fd);
	return found;
}

hipError_t i_hipIpcGetMemHandle(hipIpcMemHandle_t *out, void *p)
{
	CUdeviceptr base = 0;
	struct ipc_handle h;
	CUipcMemHandle c;
	size_t size = 0;
	CUresult r;

	ENTER();
	if (!out || !p)
		return hipErrorInvalidValue;
	r = RELAXED(CU(cuIpcGetMemHandle, &c, address(p)));
	if (!r)
		r = CU(cuMemGetAddressRange, &base, &size, address(p));
	if (r)
		return to_hip(r);
	if (!keep(&c, &h))
		return hipErrorOutOfMemory;
	h.size = size;
	h.offset = address(p) - base;
	h.device = V7 ? (uint32_t)current_device() : 0;
	memcpy(out, &h, sizeof(h));
	return hipSuccess;
}

hipError_t i_hipIpcOpenMemHandle(void **p, hipIpcMemHandle_t handle, unsigned flags)
{
	struct ipc_handle h;
	CUdeviceptr d = 0;
	CUipcMemHandle c;
	CUresult r;

	ENTER();
	/* hipIpcMemLazyEnablePeerAccess was 0 in 5.2 and is 1 now; nothing else is legal. */
	if (!p || flags > 1 || (V6 && !flags))
		return hipErrorInvalidValue;
	memcpy(&h, &handle, sizeof(h));
	if (!h.size)
		return hipErrorInvalidValue;
	if (h.pid == (uint32_t)getpid())
		return hipErrorInvalidContext;
	if (V7 && h.device >= (uint32_t)sim_opt.devices)
		return hipErrorInvalidValue;
	if (h.magic != IPC_HANDLE || !kept(&h, &c))
		return hipErrorInvalidDevicePointer;
	r = CU(cuIpcOpenMemHandle, &d, c, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	if (r == CUDA_ERROR_INVALID_HANDLE || r == CUDA_ERROR_MAP_FAILED || r == CUDA_ERROR_UNKNOWN)
		return hipErrorInvalidDevicePointer; /* the memory of the handle is gone */
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
