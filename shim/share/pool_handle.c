/* SPDX-License-Identifier: MIT */
/*
 * Pools between processes. The descriptor says what a pool is like (card.c); memory goes
 * by pointer, each of which brings the handle of the segment that it lies in, and is
 * opened and closed as hipIpc* memory is (import.c). So nobody has to serve anything:
 * there is no socket, and no peer to wait for.
 *
 * Locks: shared_lock (blocks that are exported and imported in this same process),
 * natives_lock (the pool of the runtime that takes the runtime's own pointers). Leaves.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/share/pool_descriptor.h"
#include "shim/share/import.h"

_Static_assert(sizeof(hipMemPoolPtrExportData) == SS_HANDLE_BYTES, "hipMemPoolPtrExportData");

/* ---- devices by name ---------------------------------------------------- */

static bool name_device(int dev, struct ss_pool_desc_device *out)
{
	hipUUID uuid;

	memset(out, 0, sizeof(*out));
	if (REAL(hipDeviceGetUuid, &uuid, dev) == hipSuccess)
		memcpy(out->uuid, uuid.bytes, sizeof(out->uuid));
	return REAL(hipDeviceGetPCIBusId, out->bus, sizeof(out->bus), dev) == hipSuccess;
}

/* -1: this process does not see it. */
static int find_device(const struct ss_pool_desc_device *name)
{
	struct ss_pool_desc_device here;

	for (int dev = 0; dev < ss_device_count(); dev++)
		if (name_device(dev, &here) && ss_pool_desc_same_device(name, &here))
			return dev;
	return -1;
}

/* ---- pools -------------------------------------------------------------- */

hipError_t do_hipMemPoolExportToShareableHandle(void *handle, hipMemPool_t which,
						hipMemAllocationHandleType type,
						unsigned int flags)
{
	struct ss_pool *pool = ss_pool_from_handle(ss_core, which);
	unsigned n = 0, reuse = 0;
	struct ss_pool_desc card;
	uint64_t access, on;
	int fd;

	if (ss_pool_is_native(which))
		return ss_result(REAL(hipMemPoolExportToShareableHandle, handle, which, type, flags));
	if (!handle || !pool || !ss_pool_shared(pool) || flags ||
	    type != hipMemHandleTypePosixFileDescriptor)
		return ss_fail(hipErrorInvalidValue);
	memset(&card, 0, sizeof(card));
	if (!name_device(ss_pool_device(pool), &card.device[n++]))
		return ss_fail(hipErrorInvalidValue);
	access = ss_pool_access(pool) & ~(1ull << ss_pool_device(pool));
	for (int dev = 0; dev < ss_device_count() && n < SS_POOL_DESC_DEVICES; dev++)
		if (access >> dev & 1 && name_device(dev, &card.device[n]))
			n++;
	for (unsigned i = 0; i < SS_POOL_DESC_REUSE; i++)
		if (ss_pool_get_attr(ss_core, pool, SS_ATTR_REUSE_FOLLOW_EVENTS + i, &on) == SS_OK && on)
			reuse |= 1u << i;
	fd = ss_pool_desc_write(&card, ss_pool_desc_finish(&card, n, reuse));
	if (fd < 0)
		return ss_fail(hipErrorOutOfMemory);
	memcpy(handle, &fd, sizeof(fd));
	return ss_result(hipSuccess);
}

static bool is_descriptor(int fd)
{
	return fd >= 0 && fcntl(fd, F_GETFD) >= 0;
}

/* The runtime takes the descriptor by value, from the lower half of the handle: the upper
 * one may never have been written. Its guide's example passes the address of one.
 * -1: neither. */
static int as_descriptor(const void *handle)
{
	uintptr_t value = (uintptr_t)handle;
	int low = (int)(uint32_t)value, fd = -1, probe;

	if (value <= INT32_MAX && is_descriptor(low))
		return low;
	/* Is anything there to be read? The kernel knows, and says so without a signal. */
	probe = memfd_create("somashim", MFD_CLOEXEC);
	if (probe < 0)
		return -1;
	if (pwrite(probe, handle, sizeof(fd), 0) != sizeof(fd) ||
	    pread(probe, &fd, sizeof(fd), 0) != sizeof(fd))
		fd = -1;
	close(probe);
	return is_descriptor(fd) ? fd : is_descriptor(low) ? low : -1;
}

/* What the runtime's own descriptors lead to; it believes every byte (observed 5.7
 * to 7.2). */
struct native_card {
	int fd;
	uint32_t state, count;
	struct { int device, flags; } access[32];
};

static bool native_card(int fd)
{
	struct native_card card;
	struct stat st;

	/* Shared memory and nothing else: other files could keep us waiting. */
	if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    st.st_size != sizeof(card) || pread(fd, &card, sizeof(card), 0) != sizeof(card) ||
	    card.count > 32)
		return false;
	for (uint32_t i = 0; i < card.count; i++)
		if (card.access[i].device < 0 || card.access[i].device >= ss_device_count())
			return false;
	return true;
}

static hipError_t import_pool(const struct ss_pool_desc *card, struct ss_pool **out)
{
	uint64_t access = 0;
	struct ss_pool *pool = NULL;
	enum ss_status s;
	int owner = find_device(&card->device[0]), can;

	if (owner < 0)
		return hipErrorInvalidDevice;
	s = ss_pool_create(ss_core, owner, 0, &pool);
	if (s != SS_OK)
		return ss_status_error(s);
	for (unsigned i = 0; i < SS_POOL_DESC_REUSE; i++)
		ss_pool_set_attr(ss_core, pool, SS_ATTR_REUSE_FOLLOW_EVENTS + i,
				 card->reuse >> i & 1);
	for (unsigned i = 1; i < card->devices; i++) {
		int dev = find_device(&card->device[i]);

		can = 0;
		if (dev >= 0 && dev != owner &&
		    REAL(hipDeviceCanAccessPeer, &can, dev, owner) == hipSuccess && can)
			access |= 1ull << dev;
	}
	if (access) {
		ss_observer_add(owner, SS_OBSERVER_PEER);
		s = ss_pool_set_access(ss_core, pool, access, 0);
		if (s != SS_OK) {
			(void)ss_pool_destroy(ss_core, pool);
			return ss_status_error(s);
		}
	}
	*out = pool;
	return hipSuccess;
}

hipError_t do_hipMemPoolImportFromShareableHandle(hipMemPool_t *out, void *handle,
						  hipMemAllocationHandleType type,
						  unsigned int flags)
{
	struct ss_pool *pool = NULL;
	struct ss_pool_desc card;
	hipError_t err;
	int fd;

	if (!out || !handle || flags || type != hipMemHandleTypePosixFileDescriptor)
		return ss_fail(hipErrorInvalidValue);
	fd = as_descriptor(handle);
	if (fd < 0)
		return ss_fail(hipErrorInvalidValue);
	ss_observer_add(-1, SS_OBSERVER_IPC);
	if (ss_pool_desc_read(fd, &card)) {
		err = import_pool(&card, &pool);
		if (err != hipSuccess)
			return ss_fail(err);
		*out = ss_pool_handle(pool);
		return ss_result(hipSuccess);
	}
	if (!native_card(fd))
		return ss_fail(hipErrorInvalidValue);
	err = REAL(hipMemPoolImportFromShareableHandle, out, (void *)(uintptr_t)fd, type, flags);
	if (err == hipSuccess)
		ss_pool_native_add(*out);
	return ss_result(err);
}

/* ---- exported and imported here ----------------------------------------- */

struct shared {
	void *ptr;
	uint64_t id;    /* of the block: another one may come to lie there */
	unsigned count;
	struct shared *next;
};

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared *shared;
atomic_int ss_self_imports; /* how many entries */

/* The block that `h` names is our own: it is open once more. False: it is not. */
static bool share_ref(const struct ss_handle *h, void **ptr, hipError_t *err)
{
	struct ss_block_info info;
	struct shared *s;
	uint64_t serial;
	char *segment = ss_export_segment(h, &serial);

	if (!segment)
		return false;
	*err = hipErrorInvalidValue;
	/* The segment may have gone, and another be there. */
	if (!ss_ipc_exported(ss_core, segment + h->offset, serial) ||
	    !ss_lookup(ss_core, segment + h->offset, &info) || !info.live ||
	    info.base != segment + h->offset || info.size != h->size)
		return true;
	pthread_mutex_lock(&shared_lock);
	for (s = shared; s && (s->ptr != info.base || s->id != info.id); s = s->next)
		;
	if (!s && (s = calloc(1, sizeof(*s)))) {
		s->ptr = info.base;
		s->id = info.id;
		s->next = shared;
		shared = s;
		atomic_fetch_add(&ss_self_imports, 1);
	}
	if (s)
		s->count++;
	pthread_mutex_unlock(&shared_lock);
	*err = s ? hipSuccess : hipErrorOutOfMemory;
	if (s)
		*ptr = info.base;
	return true;
}

bool ss_self_import_release(void *ptr)
{
	struct ss_block_info info;
	struct shared **at, *s;
	bool more;

	if (!ss_lookup(ss_core, ptr, &info) || !info.live || info.base != ptr)
		return false;
	pthread_mutex_lock(&shared_lock);
	for (at = &shared; *at && ((*at)->ptr != ptr || (*at)->id != info.id); at = &(*at)->next)
		;
	s = *at;
	more = s != NULL;
	if (s && !--s->count) {
		*at = s->next;
		free(s);
		atomic_fetch_sub(&ss_self_imports, 1);
	}
	pthread_mutex_unlock(&shared_lock);
	return more;
}

/* ---- pointers ----------------------------------------------------------- */

hipError_t do_hipMemPoolExportPointer(hipMemPoolPtrExportData *data, void *ptr)
{
	struct ss_ipc_place place;
	struct ss_handle h;
	enum ss_status s;
	hipError_t err;

	if (!data || !ptr)
		return ss_fail(hipErrorInvalidValue);
	ss_observer_add(-1, SS_OBSERVER_IPC);
	s = ss_ipc_find(ss_core, ptr, &place);
	if (s == SS_ERR_FOREIGN && !ss_import_inside(ptr))
		return ss_result(REAL(hipMemPoolExportPointer, data, ptr));
	if (s != SS_OK)
		return ss_fail(hipErrorInvalidValue);
	err = ss_export_handle(&place, &h);
	if (err != hipSuccess)
		return ss_fail(err);
	if (!ss_pointer_pack(&h, data))
		return ss_fail(hipErrorInvalidValue);
	ss_ipc_export(ss_core, &place);
	return ss_result(hipSuccess);
}

static pthread_mutex_t natives_lock = PTHREAD_MUTEX_INITIALIZER;
static hipMemPool_t natives[SS_MAX_DEVICES];

/* The runtime's pools have gone. */
void ss_share_reset(int dev)
{
	pthread_mutex_lock(&natives_lock);
	natives[dev] = NULL;
	pthread_mutex_unlock(&natives_lock);
}

/* For pointers of a process without us. */
static hipMemPool_t native_pool(int dev)
{
	hipMemPoolProps props;
	hipMemPool_t pool, mine = NULL;

	pthread_mutex_lock(&natives_lock);
	pool = natives[dev];
	pthread_mutex_unlock(&natives_lock);
	if (pool)
		return pool;
	memset(&props, 0, sizeof(props));
	props.allocType = hipMemAllocationTypePinned;
	props.handleTypes = hipMemHandleTypePosixFileDescriptor;
	props.location.type = hipMemLocationTypeDevice;
	props.location.id = dev;
	if (REAL(hipMemPoolCreate, &mine, &props) != hipSuccess)
		return NULL;
	pthread_mutex_lock(&natives_lock);
	pool = natives[dev];
	if (!pool)
		pool = natives[dev] = mine;
	pthread_mutex_unlock(&natives_lock);
	if (pool != mine)
		(void)REAL(hipMemPoolDestroy, mine);
	return pool;
}

hipError_t do_hipMemPoolImportPointer(void **ptr, hipMemPool_t which,
				      hipMemPoolPtrExportData *data)
{
	struct ss_pool *pool = ss_pool_from_handle(ss_core, which);
	hipMemPool_t native = ss_pool_is_native(which) ? which : NULL;
	hipError_t err = hipErrorInvalidValue;
	struct ss_handle h;
	int dev;

	if (!ptr || !data || (!pool && !native))
		return ss_fail(hipErrorInvalidValue);
	ss_observer_add(-1, SS_OBSERVER_IPC);
	dev = pool ? ss_pool_device(pool) : ss_current_device(&err);
	if (dev < 0)
		return ss_fail(err);
	if (ss_pointer_parse(data, &h)) {
		if (h.pid != (uint32_t)getpid() || !share_ref(&h, ptr, &err))
			err = ss_import_pointer(&h, dev, ptr);
		return err == hipSuccess ? ss_result(err) : ss_fail(err);
	}
	if (!ss_pointer_native(data))
		return ss_fail(hipErrorInvalidValue);
	if (!native)
		native = native_pool(dev);
	if (!native)
		return ss_fail(hipErrorNotSupported);
	return ss_result(REAL(hipMemPoolImportPointer, ptr, native, data));
}
