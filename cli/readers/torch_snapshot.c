/* SPDX-License-Identifier: MIT */
/* Reads the allocations and frees of one device from a PyTorch memory snapshot. */
#include <stdlib.h>
#include <string.h>

#include "cli/readers/torch_snapshot.h"
#include "cli/readers/pickle.h"

/* Keys of a trace entry, of which PyTorch writes ten. A look-up searches all keys, so a large
 * dictionary that occurs many times would take for ever. */
#define MAX_KEYS 256

static unsigned char *read_all(FILE *file, size_t *size) {
	unsigned char *data = NULL;
	size_t space = 0;

	*size = 0;
	for (;;) {
		if (*size == space) {
			space = space ? 2 * space : 1 << 20;
			unsigned char *bigger = realloc(data, space);
			if (!bigger) {
				free(data);
				return NULL;
			}
			data = bigger;
		}
		size_t n = fread(data + *size, 1, space - *size, file);
		if (n == 0) {
			break;
		}
		*size += n;
	}
	if (ferror(file)) {
		free(data);
		return NULL;
	}
	return data;
}

/* The trace of `device`, or of the first device that has one. */
static const struct ss_pickle *find_trace(const struct ss_pickle *root, int device) {
	const struct ss_pickle *traces = ss_pickle_get(root, "device_traces");

	if (device >= 0) {
		return ss_pickle_at(traces, (size_t)device);
	}
	for (size_t i = 0; i < ss_pickle_count(traces); i++) {
		if (ss_pickle_count(ss_pickle_at(traces, i))) {
			return ss_pickle_at(traces, i);
		}
	}
	return NULL;
}

static bool int_of(const struct ss_pickle *entry, const char *key, uint64_t *out) {
	const struct ss_pickle *v = ss_pickle_get(entry, key);
	if (!v || v->type != SS_PICKLE_INT) {
		return false;
	}
	*out = (uint64_t)v->i;
	return true;
}

static bool add_entry(struct ss_events *ev, const struct ss_pickle *entry, size_t n, char *err,
		size_t err_size) {
	const struct ss_pickle *action;
	uint64_t addr, size = 0, stream = 0, time_us = 0;
	const char *wrong;
	bool alloc;

	if (entry->type == SS_PICKLE_DICT && entry->items->count > 2 * MAX_KEYS) {
		snprintf(err, err_size, "trace entry %zu has more than %d keys", n, MAX_KEYS);
		return false;
	}
	action = ss_pickle_get(entry, "action");
	alloc = ss_pickle_is(action, "alloc");
	/* free_requested is when the program called free. A free_completed that follows it
	 * finds no block and is ignored; one without a request counts as the free. */
	if (!alloc && !ss_pickle_is(action, "free_requested") &&
			!ss_pickle_is(action, "free_completed")) {
		if (action && action->type == SS_PICKLE_STRING) {
			return true; /* segments, snapshots, out of memory */
		}
		snprintf(err, err_size, "trace entry %zu has no action", n);
		return false;
	}
	if (!int_of(entry, "addr", &addr) || (alloc && !int_of(entry, "size", &size))) {
		snprintf(err, err_size, "trace entry %zu has no address or size", n);
		return false;
	}
	int_of(entry, "stream", &stream);
	int_of(entry, "time_us", &time_us);
	if (!alloc) {
		uint64_t before = ev->unknown_frees;
		wrong = ss_events_free(ev, addr, stream, time_us);
		if (ss_pickle_is(action, "free_completed")) {
			ev->unknown_frees = before; /* free_requested removed the block */
		}
	} else {
		wrong = ss_events_alloc(ev, addr, size, stream, time_us);
	}
	if (wrong) {
		snprintf(err, err_size, "trace entry %zu: %s", n, wrong);
	}
	return !wrong;
}

bool ss_snapshot_read(struct ss_events *ev, FILE *file, int device, char *err, size_t err_size) {
	size_t size;
	unsigned char *data = read_all(file, &size);
	bool ok = false;

	if (!data) {
		snprintf(err, err_size, "cannot be read");
		return false;
	}
	struct ss_pickle_doc *doc = ss_pickle_load(data, size, err, err_size);
	if (!doc) {
		goto out;
	}
	const struct ss_pickle *trace = find_trace(ss_pickle_root(doc), device);
	if (!trace && device >= 0 &&
			ss_pickle_count(ss_pickle_get(ss_pickle_root(doc), "device_traces"))) {
		snprintf(err, err_size, "the snapshot has no device %d", device);
		goto out;
	}
	if (!trace) {
		snprintf(err, err_size, "no device_traces with events: not a memory snapshot "
			"with recorded history");
		goto out;
	}
	ok = true;
	for (size_t i = 0; ok && i < ss_pickle_count(trace); i++) {
		ok = add_entry(ev, ss_pickle_at(trace, i), i, err, err_size);
	}
out:
	ss_pickle_free(doc);
	free(data);
	return ok;
}
