/* SPDX-License-Identifier: MIT */
/* Adds up the reserved memory of the processes that share a GPU. */
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/runs.h"
#include "cli/analysis/shared_gpu.h"

/* One process on one GPU. */
struct user {
	const struct ss_analysis *process;
	const struct ss_device_result *device;
};

/* A change of what one process has reserved. */
struct change {
	uint64_t time_ns, before, after;
};

static int by_gpu(const void *a, const void *b)
{
	const struct user *x = a, *y = b;
	int order = strcmp(x->process->host, y->process->host);

	return order ? order : strcmp(x->device->pci, y->device->pci);
}

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return x->time_ns != y->time_ns ? (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns) :
					  /* Of changes at the same moment, releases come first. */
					  (x->after > x->before) - (y->after > y->before);
}

/* All changes of the users, in the order of time. The end of a recording releases all memory that
 * its process still has. */
static struct change *changes_of(const struct user *user, size_t users, size_t *count)
{
	size_t room = 0, n = 0;

	for (size_t i = 0; i < users; i++)
		room += user[i].device->steps + 1;
	struct change *c = calloc(room, sizeof(*c));
	for (size_t i = 0; c && i < users; i++) {
		const struct ss_device_result *d = user[i].device;
		uint64_t offset = user[i].process->real_offset, now = 0;

		for (size_t k = 0; k < d->steps; k++) {
			c[n++] = (struct change){d->step[k].time_ns + offset, now,
						 d->step[k].reserved};
			now = d->step[k].reserved;
		}
		c[n++] = (struct change){user[i].process->last_ns + offset, now, 0};
	}
	if (c)
		qsort(c, n, sizeof(*c), by_time);
	*count = n;
	return c;
}

static bool add_gpu(struct ss_shared_gpu *g, const struct user *user, size_t users)
{
	size_t count;
	struct change *c = changes_of(user, users, &count);
	uint64_t reserved = 0;

	*g = (struct ss_shared_gpu){.host = user->process->host,
				    .pci = user->device->pci,
				    .processes = users,
				    .step = calloc(count + 1, sizeof(*g->step))};
	for (size_t i = 0; i < users; i++)
		g->sum_of_peaks += user[i].device->usage.reserved_peak.reserved;
	for (size_t i = 0; c && g->step && i < count; i++) {
		reserved += c[i].after - c[i].before;
		if (reserved > g->peak) {
			g->peak = reserved;
			g->peak_ns = c[i].time_ns;
		}
		g->step[g->steps++] = (struct ss_shared_step){c[i].time_ns, reserved};
	}
	bool ok = c && g->step;
	free(c);
	return ok;
}

struct ss_shared_gpu *ss_shared_gpus(struct ss_analysis *const *list, size_t count, size_t *gpus)
{
	size_t room = 0, users = 0, end;

	for (size_t i = 0; i < count; i++)
		room += list[i]->devices;
	struct user *user = calloc(room + 1, sizeof(*user));
	struct ss_shared_gpu *gpu = calloc(room + 1, sizeof(*gpu));
	bool ok = user && gpu;
	*gpus = 0;
	for (size_t i = 0; ok && i < count; i++) {
		for (size_t k = 0; k < list[i]->devices; k++) {
			const struct ss_device_result *d = &list[i]->device[k];
			if (d->pci[0] && d->usage.reserved_peak.reserved)
				user[users++] = (struct user){list[i], d};
		}
	}
	if (users)
		qsort(user, users, sizeof(*user), by_gpu);
	for (size_t i = 0; ok && i < users; i = end) {
		for (end = i + 1; end < users && by_gpu(&user[i], &user[end]) == 0; end++) {}
		if (end - i > 1)
			ok = add_gpu(&gpu[(*gpus)++], &user[i], end - i);
	}
	free(user);
	if (!ok) {
		ss_shared_gpus_free(gpu, *gpus);
		return NULL;
	}
	return gpu;
}

void ss_shared_gpus_free(struct ss_shared_gpu *gpu, size_t gpus)
{
	for (size_t i = 0; gpu && i < gpus; i++)
		free(gpu[i].step);
	free(gpu);
}
