/* SPDX-License-Identifier: MIT */
/* Reads the allocations and frees of one device from a PyTorch memory snapshot. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/readers/torch_snapshot.h"
#include "cli/readers/pickle.h"

/* Keys of a trace entry, of which PyTorch writes ten. A look-up searches all keys, so a large
 * dictionary that occurs many times would take for ever. */
#define MAX_KEYS 256

/* More than that is not read: a pipe may have no end. */
static size_t most_bytes(void)
{
	return (size_t)sysconf(_SC_PHYS_PAGES) / 2 * (size_t)sysconf(_SC_PAGE_SIZE);
}

/* NULL with a message in `err`: the file cannot be read. */
static unsigned char *read_all(FILE *file, size_t *size, char *err, size_t err_size)
{
	unsigned char *data = NULL;
	size_t space = 0, most = most_bytes();
	struct stat st;

	*size = 0;
	if (fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size > most)
		goto too_large;
	for (;;) {
		if (*size == space) {
			if (space > most / 2)
				goto too_large;
			space = space ? 2 * space : 1 << 20;
			unsigned char *bigger = realloc(data, space);
			if (!bigger) {
				snprintf(err, err_size, "out of memory");
				goto error;
			}
			data = bigger;
		}
		size_t n = fread(data + *size, 1, space - *size, file);
		if (n == 0)
			break;
		*size += n;
	}
	if (!ferror(file))
		return data;
	snprintf(err, err_size, "cannot be read");
	goto error;

too_large:
	snprintf(err, err_size, "a snapshot that is larger than half of the memory there is");
error:
	free(data);
	return NULL;
}

static bool too_many_keys(const struct ss_pickle *v)
{
	return v->type == SS_PICKLE_DICT && v->items->count > 2 * MAX_KEYS;
}

static bool int_of(const struct ss_pickle *entry, const char *key, uint64_t *out)
{
	const struct ss_pickle *v = ss_pickle_get(entry, key);
	if (!v || v->type != SS_PICKLE_INT)
		return false;
	*out = (uint64_t)v->i;
	return true;
}

static bool add_entry(struct ss_events *ev, const struct ss_pickle *entry, size_t n, char *err,
		      size_t err_size)
{
	const struct ss_pickle *action;
	uint64_t addr, size = 0, stream = 0, time_us = 0;
	const char *wrong;
	bool alloc;

	if (too_many_keys(entry)) {
		snprintf(err, err_size, "trace entry %zu has more than %d keys", n, MAX_KEYS);
		return false;
	}
	action = ss_pickle_get(entry, "action");
	alloc = ss_pickle_is(action, "alloc");
	ev->failures += ss_pickle_is(action, "oom");
	/* free_requested is when the program called free. A free_completed that follows it
	 * finds no block and is ignored; one without a request counts as the free. */
	if (!alloc && !ss_pickle_is(action, "free_requested") &&
	    !ss_pickle_is(action, "free_completed")) {
		if (action && action->type == SS_PICKLE_STRING)
			return true; /* segments, snapshots, out of memory */
		snprintf(err, err_size, "trace entry %zu has no action", n);
		return false;
	}
	if (!int_of(entry, "addr", &addr) || (alloc && !int_of(entry, "size", &size))) {
		snprintf(err, err_size, "trace entry %zu has no address or size", n);
		return false;
	}
	int_of(entry, "stream", &stream);
	int_of(entry, "time_us", &time_us);
	ev->at = (uint32_t)n;
	if (!alloc) {
		uint64_t before = ev->unknown_frees;
		int_of(entry, "size", &size);
		wrong = ss_events_free(ev, addr, size, stream, time_us);
		if (ss_pickle_is(action, "free_completed"))
			ev->unknown_frees = before; /* free_requested removed the block */
	} else {
		wrong = ss_events_alloc(ev, addr, size, stream, time_us);
	}
	if (wrong)
		snprintf(err, err_size, "trace entry %zu: %s", n, wrong);
	return !wrong;
}

/* Blocks that are live in a segment: those that the trace did not allocate lived before it. */
static bool add_segment(struct ss_events *ev, const struct ss_pickle *segment, size_t n, char *err,
			size_t err_size)
{
	const struct ss_pickle *blocks = ss_pickle_get(segment, "blocks");
	uint64_t at = 0, stream = 0;
	const char *wrong = NULL;

	if (too_many_keys(segment) || !int_of(segment, "address", &at)) {
		snprintf(err, err_size, "segment %zu has no address, or more than %d keys", n,
			 MAX_KEYS);
		return false;
	}
	if (!ss_pickle_first_time(segment) || !ss_pickle_first_time(blocks)) {
		snprintf(err, err_size, "segment %zu: its addresses occur twice", n);
		return false;
	}
	int_of(segment, "stream", &stream);
	for (size_t i = 0; i < ss_pickle_count(blocks) && !wrong; i++) {
		const struct ss_pickle *block = ss_pickle_at(blocks, i);
		uint64_t size = 0, asked;

		if (too_many_keys(block) || !int_of(block, "size", &size)) {
			snprintf(err, err_size, "block %zu of segment %zu has no size", i, n);
			return false;
		}
		/* Older snapshots do without: the blocks lie side by side */
		int_of(block, "address", &at);
		asked = size;
		int_of(block, "requested_size", &asked);
		/* One that was freed while other streams used it takes memory, too. */
		const struct ss_pickle *state = ss_pickle_get(block, "state");
		if (ss_pickle_is(state, "active_allocated") ||
		    ss_pickle_is(state, "active_pending_free") ||
		    ss_pickle_is(state, "active_awaiting_free"))
			wrong = ss_events_live(ev, at, asked, stream);
		at += size;
	}
	if (wrong)
		snprintf(err, err_size, "segment %zu: %s", n, wrong);
	return !wrong;
}

/* The device of a segment; 0 if it does not say. */
static uint64_t device_of(const struct ss_pickle *segment)
{
	uint64_t device = 0;

	if (!too_many_keys(segment))
		int_of(segment, "device", &device);
	return device;
}

/* Entries of a trace that tell of memory. Device 0 may have others, such as marks of the program,
 * in the snapshot of a process that uses another device. */
static size_t history_of(const struct ss_pickle *trace)
{
	size_t events = 0;

	for (size_t i = 0; i < ss_pickle_count(trace); i++) {
		const struct ss_pickle *entry = ss_pickle_at(trace, i);
		const struct ss_pickle *action = too_many_keys(entry) ?
							 NULL :
							 ss_pickle_get(entry, "action");
		events += !ss_pickle_is(action, "user_defined") &&
			  !ss_pickle_is(action, "snapshot");
	}
	return events;
}

static void list_devices(uint64_t devices, char *out, size_t size)
{
	size_t n = 0;

	out[0] = '\0';
	for (int i = 0; i < 64 && n < size; i++)
		if (devices >> i & 1)
			n += (size_t)snprintf(out + n, size - n, "%s%d", n ? ", " : "", i);
}

/* Which devices does the snapshot know, and which of them is meant? The one with the longest
 * history, unless another was asked for. False: there is none such. */
static bool choose_device(struct ss_events *ev, const struct ss_pickle *traces,
			  const struct ss_pickle *segments, int device, char *err, size_t err_size)
{
	uint64_t with_trace = 0, with_segment = 0, all;
	size_t longest = 0;
	char list[256];
	int best = -1;

	for (size_t i = 0; i < ss_pickle_count(traces) && i < 64; i++) {
		size_t events = history_of(ss_pickle_at(traces, i));

		with_trace |= (uint64_t)(events > 0) << i;
		best = events > longest ? (int)i : best;
		longest = events > longest ? events : longest;
	}
	for (size_t i = 0; i < ss_pickle_count(segments); i++) {
		uint64_t of = device_of(ss_pickle_at(segments, i));

		with_segment |= of < 64 ? 1ull << of : 0;
	}
	all = with_trace | with_segment;
	if (!all) {
		snprintf(err, err_size,
			 "no device_traces with events and no segments: not a memory snapshot");
		return false;
	}
	if (device >= 64 || (device >= 0 && !(all >> device & 1))) {
		list_devices(all, list, sizeof(list));
		snprintf(err, err_size, "the snapshot has no device %d; it has %s", device, list);
		return false;
	}
	ev->device = device >= 0 ? device : best >= 0 ? best : __builtin_ctzll(with_segment);
	ev->devices = (uint32_t)__builtin_popcountll(all);
	ev->no_history = !(with_trace >> ev->device & 1);
	return true;
}

static bool read_snapshot(struct ss_events *ev, const struct ss_pickle *root, int device, char *err,
			  size_t err_size)
{
	const struct ss_pickle *traces = ss_pickle_get(root, "device_traces");
	/* torch.cuda.memory_snapshot() gives the segments alone. */
	const struct ss_pickle *segments = root && root->type == SS_PICKLE_LIST ?
						   root :
						   ss_pickle_get(root, "segments");

	if (!choose_device(ev, traces, segments, device, err, err_size))
		return false;
	const struct ss_pickle *trace = ss_pickle_at(traces, (size_t)ev->device);
	for (size_t i = 0; i < ss_pickle_count(trace); i++)
		if (!add_entry(ev, ss_pickle_at(trace, i), i, err, err_size))
			return false;
	for (size_t i = 0; i < ss_pickle_count(segments); i++) {
		const struct ss_pickle *segment = ss_pickle_at(segments, i);

		if (device_of(segment) == (uint64_t)ev->device &&
		    !add_segment(ev, segment, i, err, err_size))
			return false;
	}
	return true;
}

bool ss_snapshot_read(struct ss_events *ev, FILE *file, int device, char *err, size_t err_size)
{
	size_t size;
	unsigned char *data = read_all(file, &size, err, err_size);

	if (!data)
		return false;
	struct ss_pickle_doc *doc = ss_pickle_load(data, size, err, err_size);
	bool ok = doc && read_snapshot(ev, ss_pickle_root(doc), device, err, err_size);
	ss_pickle_free(doc);
	free(data);
	return ok;
}
