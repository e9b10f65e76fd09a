/* SPDX-License-Identifier: MIT */
/* Device memory shared between processes. All functions are thread-safe. */
#ifndef SIM_IPC_H
#define SIM_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/address_map.h"

/* 32 bytes, as hsa_amd_ipc_memory_t. */
struct sim_ipc_handle {
	uint32_t magic;
	uint32_t pid;
	uint16_t fd, ctl; /* of the exporter: the arena, the table of exports */
	uint32_t slot;    /* in the table; the device in the upper half */
	uint64_t token;
	uint64_t offset; /* into the arena */
};

/* Fills *h for an allocation of device memory. Returns 0, -EINVAL or -ENOMEM. */
int sim_ipc_export(const struct sim_alloc *a, struct sim_ipc_handle *h);

/* Maps the exported allocation if it holds size bytes. With share set, a second import of
 * the same memory gives the same address. NULL: the handle is not valid any more. */
void *sim_ipc_import(const struct sim_ipc_handle *h, size_t size, int device, bool share);

/* Closes one import that starts at p, or contains it if any is set. */
bool sim_ipc_close(void *p, bool any);

/* The exporter frees the memory: nobody can import it from now on. */
void sim_ipc_revoke(int device, int slot);

/* True if another process has the exported memory open. */
bool sim_ipc_is_open(int device, int slot);

/* Opens a descriptor of another process. The caller closes it. -1: not there. */
int sim_open_peer_fd(uint32_t pid, int fd);

#endif
