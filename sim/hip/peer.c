/* SPDX-License-Identifier: MIT */
/*
 * Access between devices.
 *
 * Locks: peer_lock guards changes of the table, which is read without it.
 */
#include <pthread.h>
#include <stdbool.h>

#include "device/address_map.h"
#include "device/macros.h"
#include "device/options.h"
#include "hip/entry_points.h"
#include "hip/peer.h"
#include "hip/thread_state.h"

static pthread_mutex_t peer_lock = PTHREAD_MUTEX_INITIALIZER;
static bool peers[SIM_MAX_DEVICES][SIM_MAX_DEVICES]; /* [owner][who may touch its memory] */

int peer_mask(int device)
{
	int m = 0;

	for (int i = 0; i < sim_opt.devices; i++)
		if (__atomic_load_n(&peers[device][i], __ATOMIC_RELAXED))
			m |= 1 << i;
	return m;
}

void peers_reset(int device)
{
	pthread_mutex_lock(&peer_lock);
	for (int i = 0; i < SIM_MAX_DEVICES; i++) {
		__atomic_store_n(&peers[device][i], false, __ATOMIC_RELAXED);
		__atomic_store_n(&peers[i][device], false, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&peer_lock);
}

static void allow(struct sim_alloc *a, void *arg)
{
	a->access |= *(uint32_t *)arg;
}

hipError_t i_hipDeviceCanAccessPeer(int *can, int d, int peer)
{
	if (!can)
		return hipErrorInvalidValue;
	if (check_device(d) || check_device(peer))
		return hipErrorInvalidDevice;
	*can = sim_opt.peers && d != peer;
	return hipSuccess;
}

hipError_t i_hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
	int d = current_device();
	uint32_t bit = 1u << d;
	uintptr_t at = 0;
	struct sim_alloc a;
	bool had;

	if (flags)
		return hipErrorInvalidValue;
	if (check_device(peer) || peer == d || !sim_opt.peers)
		return hipErrorInvalidDevice;
	pthread_mutex_lock(&peer_lock);
	had = peers[peer][d];
	__atomic_store_n(&peers[peer][d], true, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&peer_lock);
	if (had)
		return hipErrorPeerAccessAlreadyEnabled;
	/* This is for memory that HIP has allocated, not for raw HSA memory. */
	while (sim_map_each(&at, &a))
		if (a.kind == SIM_DEVICE && a.hip && a.device == peer)
			sim_update((void *)a.r.base, allow, &bit);
	return hipSuccess;
}

hipError_t i_hipDeviceDisablePeerAccess(int peer)
{
	int d = current_device();
	bool had;

	if (check_device(peer) || peer == d)
		return hipErrorInvalidDevice;
	pthread_mutex_lock(&peer_lock);
	had = peers[peer][d];
	__atomic_store_n(&peers[peer][d], false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&peer_lock);
	return had ? hipSuccess : hipErrorPeerAccessNotEnabled;
}

hipError_t i_hipDeviceGetP2PAttribute(int *v, hipDeviceP2PAttr attr, int a, int b)
{
	if (!v || a == b)
		return hipErrorInvalidValue;
	if (check_device(a) || check_device(b))
		return hipErrorInvalidDevice;
	*v = sim_opt.peers && attr != hipDevP2PAttrHipArrayAccessSupported;
	return hipSuccess;
}

hipError_t i_hipExtGetLinkTypeAndHopCount(int a, int b, uint32_t *type, uint32_t *hops)
{
	if (!type || !hops)
		return hipErrorInvalidValue;
	if (check_device(a) || check_device(b) || a == b)
		return hipErrorInvalidDevice;
	*type = 4; /* XGMI */
	*hops = 1;
	return hipSuccess;
}
