/* SPDX-License-Identifier: MIT */
/* Access between devices. */
#ifndef SIM_HIP_PEER_H
#define SIM_HIP_PEER_H

/* The mask of the devices that may touch memory of this one by hipDeviceEnablePeerAccess. */
int peer_mask(int device);

/* Forgets what the device may touch, and who may touch it. */
void peers_reset(int device);

#endif
