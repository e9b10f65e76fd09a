/* SPDX-License-Identifier: MIT */
/*
 * Quirk phys-kept: an unmap leaves a mapping of the device's file without access at the addresses,
 * as ROCr of 7.1 to 7.13 does, and each such mapping is a reference to the memory. So released
 * memory stays in use as long as /proc/self/maps shows the file where the memory was mapped and
 * nothing else has been mapped since. A new mapping at these addresses ends that.
 *
 * Locks: sim_vmm_lock.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/arena.h"
#include "device/kept_memory.h"

/* Addresses where an unmapped handle has left its file. */
struct sim_left {
	uintptr_t base, end;
	bool seen; /* during one look: the file is there */
	struct sim_left *next;
};

/* Released memory that such addresses keep. */
struct kept {
	struct sim_left *left;
	size_t size;
	int device;
	struct kept *next;
};

static struct kept *kept;

void sim_left_add(struct sim_left **list, uintptr_t base, size_t size)
{
	struct sim_left *n;

	for (n = *list; n; n = n->next)
		if (n->base == base)
			return;
	n = calloc(1, sizeof *n);
	if (!n)
		return;
	n->base = base;
	n->end = base + size;
	n->next = *list;
	*list = n;
}

void sim_left_free(struct sim_left **list)
{
	for (struct sim_left *n; (n = *list);) {
		*list = n->next;
		free(n);
	}
}

/* Does [from, to) hold an address to which nothing has been mapped since? */
static bool has_old(uintptr_t from, uintptr_t to)
{
	struct sim_reservation *v = sim_reservation_of((void *)from, 1);
	struct sim_range *r;

	for (uintptr_t x = from; x < to; x = r->base + r->size) {
		r = v ? sim_range_floor(v->maps, x) : NULL;
		if (!r || r->base + r->size <= x)
			return true;
	}
	return false;
}

/* The file is mapped at [from, to). */
static void mark(uintptr_t from, uintptr_t to)
{
	for (struct kept *k = kept; k; k = k->next)
		for (struct sim_left *n = k->left; n; n = n->next)
			if (!n->seen && n->base < to && from < n->end)
				n->seen = has_old(from > n->base ? from : n->base,
						  to < n->end ? to : n->end);
}

static void drop_unseen(struct kept *k)
{
	for (struct sim_left **at = &k->left, *n; (n = *at);) {
		if (n->seen) {
			n->seen = false;
			at = &n->next;
			continue;
		}
		*at = n->next;
		free(n);
	}
}

/* Uncharges memory that no address keeps any more. */
static void look(void)
{
	unsigned long from, to;
	char line[512];
	FILE *f;

	pthread_mutex_lock(&sim_vmm_lock);
	f = kept ? fopen("/proc/self/maps", "re") : NULL;
	while (f && fgets(line, sizeof line, f))
		if (strstr(line, "/memfd:somasim") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			mark(from, to);
	if (f)
		fclose(f);
	for (struct kept **at = &kept, *k; f && (k = *at);) {
		drop_unseen(k);
		if (k->left) {
			at = &k->next;
			continue;
		}
		sim_uncharge(k->device, k->size);
		*at = k->next;
		free(k);
	}
	pthread_mutex_unlock(&sim_vmm_lock);
}

void sim_kept_add(struct sim_left *left, int device, size_t size)
{
	struct kept *k = calloc(1, sizeof *k);

	if (!k) {
		sim_left_free(&left);
		sim_uncharge(device, size);
		return;
	}
	k->left = left;
	k->device = device;
	k->size = size;
	k->next = kept;
	kept = k;
	atomic_store(&sim_look_kept, look);
}
