/* SPDX-License-Identifier: MIT */
/* Reads the allocations and frees of one device from a PyTorch memory snapshot. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/readers/input.h"
#include "cli/readers/torch_snapshot.h"
#include "cli/readers/pickle.h"

/* Keys of a trace entry, of which PyTorch writes ten. A look-up searches all keys, so a large
 * dictionary that occurs many times would take for ever. */
#define MAX_KEYS 256
#define PICKLE_PROTOCOL 0x80 /* the first byte of a pickle of protocol 2 or later */

/* The most bytes that are read: a pipe may have no end. */
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

bool ss_snapshot_too_many_keys(const struct ss_pickle *v)
{
	return v->type == SS_PICKLE_DICT && v->items->count > 2 * MAX_KEYS;
}

bool ss_snapshot_number(const struct ss_pickle *entry, const char *key, uint64_t *out)
{
	const struct ss_pickle *v = ss_pickle_get(entry, key);
	if (!v || v->type != SS_PICKLE_INT)
		return false;
	*out = (uint64_t)v->i;
	return true;
}

/* The memory that the program had reserved of the device, from the begin of the history on. The
 * sums of a hostile file may be of any size. */
struct reserved {
	__int128 now, most; /* in addition to the memory at the begin */
	__int128 end;       /* all, by the segments */
};

static void add_reserved(struct reserved *r, const struct ss_pickle *action, uint64_t size)
{
	if (ss_pickle_is(action, "segment_alloc") || ss_pickle_is(action, "segment_map"))
		r->now += size;
	else if (ss_pickle_is(action, "segment_free") || ss_pickle_is(action, "segment_unmap"))
		r->now -= size;
	r->most = r->now > r->most ? r->now : r->most;
}

static uint64_t reserved_peak(const struct reserved *r)
{
	__int128 begin = r->end > r->now ? r->end - r->now : 0, peak = begin + r->most;

	return peak > 0 && peak < INT64_MAX ? (uint64_t)peak : 0;
}

static bool add_entry(struct ss_events *ev, const struct ss_pickle *entry, size_t n,
		      struct reserved *reserved, char *err, size_t err_size)
{
	const struct ss_pickle *action;
	uint64_t addr, size = 0, stream = 0, time_us = 0;
	const char *wrong;
	bool alloc;

	if (ss_snapshot_too_many_keys(entry)) {
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
		ss_snapshot_number(entry, "size", &size);
		add_reserved(reserved, action, size);
		if (action && action->type == SS_PICKLE_STRING)
			return true; /* segments, snapshots, out of memory */
		snprintf(err, err_size, "trace entry %zu has no action", n);
		return false;
	}
	if (!ss_snapshot_number(entry, "addr", &addr) ||
	    (alloc && !ss_snapshot_number(entry, "size", &size))) {
		snprintf(err, err_size, "trace entry %zu has no address or size", n);
		return false;
	}
	ss_snapshot_number(entry, "stream", &stream);
	ss_snapshot_number(entry, "time_us", &time_us);
	ev->at = (uint32_t)n;
	if (!alloc) {
		uint64_t before = ev->unknown_frees;
		ss_snapshot_number(entry, "size", &size);
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

	if (ss_snapshot_too_many_keys(segment) || !ss_snapshot_number(segment, "address", &at)) {
		snprintf(err, err_size, "segment %zu has no address, or more than %d keys", n,
			 MAX_KEYS);
		return false;
	}
	if (!ss_pickle_first_time(segment) || !ss_pickle_first_time(blocks)) {
		snprintf(err, err_size, "segment %zu: its addresses occur twice", n);
		return false;
	}
	ss_snapshot_number(segment, "stream", &stream);
	for (size_t i = 0; i < ss_pickle_count(blocks) && !wrong; i++) {
		const struct ss_pickle *block = ss_pickle_at(blocks, i);
		uint64_t size = 0, asked;

		if (ss_snapshot_too_many_keys(block) || !ss_snapshot_number(block, "size", &size)) {
			snprintf(err, err_size, "block %zu of segment %zu has no size", i, n);
			return false;
		}
		/* Older snapshots have no address: the blocks lie side by side */
		ss_snapshot_number(block, "address", &at);
		asked = size;
		ss_snapshot_number(block, "requested_size", &asked);
		/* A block that was freed while other streams used it takes memory, too. */
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

	if (!ss_snapshot_too_many_keys(segment))
		ss_snapshot_number(segment, "device", &device);
	return device;
}

/* The number of entries of a trace that concern memory. Device 0 may have others, such as marks of
 * the program, in the snapshot of a process that uses another device. */
static size_t history_of(const struct ss_pickle *trace)
{
	size_t events = 0;

	for (size_t i = 0; i < ss_pickle_count(trace); i++) {
		const struct ss_pickle *entry = ss_pickle_at(trace, i);
		const struct ss_pickle *action = ss_snapshot_too_many_keys(entry) ?
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
	/* torch.cuda.memory_snapshot() returns the segments alone. */
	const struct ss_pickle *segments = root && root->type == SS_PICKLE_LIST ?
						   root :
						   ss_pickle_get(root, "segments");
	struct reserved reserved = {0};

	if (!choose_device(ev, traces, segments, device, err, err_size))
		return false;
	const struct ss_pickle *trace = ss_pickle_at(traces, (size_t)ev->device);
	for (size_t i = 0; i < ss_pickle_count(trace); i++)
		if (!add_entry(ev, ss_pickle_at(trace, i), i, &reserved, err, err_size))
			return false;
	for (size_t i = 0; i < ss_pickle_count(segments); i++) {
		const struct ss_pickle *segment = ss_pickle_at(segments, i);
		uint64_t total = 0;

		if (device_of(segment) != (uint64_t)ev->device)
			continue;
		if (!add_segment(ev, segment, i, err, err_size))
			return false;
		ss_snapshot_number(segment, "total_size", &total);
		reserved.end += total;
	}
	ev->reserved_peak = reserved_peak(&reserved);
	return true;
}

bool ss_snapshot_open(struct ss_torch_snapshot *s, const char *path, char *err, size_t err_size)
{
	struct ss_input in;
	size_t size;

	*s = (struct ss_torch_snapshot){0};
	if (!ss_input_open(&in, path, err, err_size))
		return false;
	if (in.first != PICKLE_PROTOCOL) {
		snprintf(err, err_size, "no pickle of protocol 2 or later");
	} else if ((s->data = read_all(in.file, &size, err, err_size))) {
		s->doc = ss_pickle_load(s->data, size, err, err_size);
		if (s->doc && !ss_input_complete(&in)) {
			snprintf(err, err_size, "%s failed", in.tool);
			ss_snapshot_close(s);
		}
	}
	ss_input_close(&in);
	if (!s->doc) {
		ss_snapshot_close(s);
		return false;
	}
	const struct ss_pickle *root = ss_pickle_root(s->doc);
	bool list = root && root->type == SS_PICKLE_LIST;
	s->traces = ss_pickle_get(root, "device_traces");
	s->segments = list ? root : ss_pickle_get(root, "segments");
	s->annotations = ss_pickle_get(root, "external_annotations");
	if (!ss_pickle_count(s->traces) && !ss_pickle_count(s->segments)) {
		snprintf(err, err_size, "no device_traces and no segments: not a memory snapshot");
		ss_snapshot_close(s);
		return false;
	}
	return true;
}

void ss_snapshot_close(struct ss_torch_snapshot *s)
{
	ss_pickle_free(s->doc);
	free(s->data);
	*s = (struct ss_torch_snapshot){0};
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
