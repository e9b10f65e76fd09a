/* SPDX-License-Identifier: MIT */
/*
 * Makes events of the history of each device. Memory from before the history is found in two ways:
 * the history frees it without an allocation, or the segments have it, which are those at the end
 * of the history. It becomes events of the beginning, as in a ring. Work grows with the size of the
 * file: each object that a pickle can refer to again is looked at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/readers/input.h"
#include "cli/snapshot/conversion.h"
#include "cli/snapshot/snapshot_trace.h"
#include "core/base/regular_file.h"

/* ---- segments ------------------------------------------------------------------ */

/* The stack that allocated a block: newer snapshots have it in "frames", older ones in
 * "history". */
static uint32_t block_stack(struct ss_conversion *c, const struct ss_pickle *block)
{
	const struct ss_pickle *frames = ss_pickle_get(block, "frames");
	const struct ss_pickle *history = ss_pickle_get(block, "history");

	if (!ss_pickle_count(frames) && ss_pickle_count(history)) {
		const struct ss_pickle *newest = ss_pickle_at(history, 0);
		frames = ss_snapshot_too_many_keys(newest) ? NULL : ss_pickle_get(newest, "frames");
	}
	return ss_snapshot_stack(&c->stacks, frames);
}

static bool put_final_segment(struct ss_conversion *c, const struct ss_pickle *s, size_t n)
{
	const struct ss_pickle *blocks;
	uint64_t at, total = 0, device = 0, handle = 0;

	if (ss_snapshot_too_many_keys(s) || !ss_snapshot_number(s, "address", &at))
		return ss_conversion_wrong(c, "segment %zu has no address, or too many keys%s", n,
					   "");
	blocks = ss_pickle_get(s, "blocks");
	if (!ss_pickle_first_time(s) || !ss_pickle_first_time(blocks))
		return ss_conversion_wrong(c, "segment %zu: its addresses occur twice%s", n, "");
	ss_snapshot_number(s, "total_size", &total);
	ss_snapshot_number(s, "device", &device);
	ss_snapshot_number(s, "stream", &handle);
	if (device >= SS_SNAPSHOT_DEVICES)
		return ss_conversion_wrong(c, "segment %zu is of a device that there cannot be%s",
					   n, "");
	ss_conversion_device(c, device);
	if (total)
		ss_conversion_name_segment(c, device, at, total, true);
	uint32_t stream = ss_conversion_stream(c, device, handle);
	for (size_t i = 0; i < ss_pickle_count(blocks) && !c->builder.failed && !c->no_memory;
	     i++) {
		const struct ss_pickle *block = ss_pickle_at(blocks, i);
		uint64_t size = 0, asked;
		if (ss_snapshot_too_many_keys(block) || !ss_snapshot_number(block, "size", &size))
			return ss_conversion_wrong(c, "a block of segment %zu has no size%s", n,
						   "");
		/* Older snapshots have no address: the blocks lie side by side */
		ss_snapshot_number(block, "address", &at);
		asked = size;
		ss_snapshot_number(block, "requested_size", &asked);
		const struct ss_pickle *state = ss_pickle_get(block, "state");
		bool live = state && !ss_pickle_is(state, "inactive");
		if (live && size && size < 1ull << 47 &&
		    ss_conversion_name_block(c, device, at, size))
			ss_conversion_lived(c, device, at, size, asked < size ? asked : size,
					    stream, block_stack(c, block));
		at += size;
	}
	return true;
}

/* ---- all ------------------------------------------------------------------------- */

/* The time of all memory from before the history: just before the first entry of any device. */
static uint64_t first_time(const struct ss_torch_snapshot *s)
{
	uint64_t first = UINT64_MAX;

	for (size_t d = 0; d < ss_pickle_count(s->traces) && d < SS_SNAPSHOT_DEVICES; d++) {
		const struct ss_pickle *entry = ss_pickle_at(ss_pickle_at(s->traces, d), 0);
		if (entry && !ss_snapshot_too_many_keys(entry)) {
			uint64_t t = ss_conversion_time(entry, 0);
			first = t < first ? t : first;
		}
	}
	/* Earlier than the first event, also in the order of the file */
	return first < UINT64_MAX && first > 1000 ? first - 1000 : 0;
}

static bool put_all(struct ss_conversion *c)
{
	size_t devices = ss_pickle_count(c->snapshot.traces);

	if (devices > SS_SNAPSHOT_DEVICES)
		return ss_conversion_wrong(c, "it has %zu devices%s", devices, "");
	c->begin_ns = first_time(&c->snapshot);
	ss_conversion_text(c, SS_TRACE_INFO_ARG, "a program of PyTorch");
	for (size_t d = 0; d < devices; d++)
		if (!ss_conversion_trace(c, d))
			return false;
	for (size_t i = 0; i < ss_pickle_count(c->snapshot.segments); i++)
		if (!put_final_segment(c, ss_pickle_at(c->snapshot.segments, i), i))
			return false;
	ss_conversion_annotations(c);
	ss_builder_end(&c->before);
	ss_builder_end(&c->definitions);
	return true;
}

static void finish(struct ss_conversion *c)
{
	struct ss_snapshot_stream *s, *s_next;
	struct ss_snapshot_block *b, *b_next;

	HASH_ITER(hh, c->streams, s, s_next) {
		HASH_DEL(c->streams, s);
		free(s);
	}
	HASH_ITER(hh, c->blocks, b, b_next) {
		HASH_DEL(c->blocks, b);
		free(b);
	}
	for (size_t d = 0; d < SS_SNAPSHOT_DEVICES; d++) {
		ss_ranges_finish(&c->segments[d]);
		ss_ranges_finish(&c->named[d]);
	}
	ss_snapshot_stacks_finish(&c->stacks);
	free(c->definitions.data);
	free(c->before.data);
	free(c->history.data);
	ss_snapshot_close(&c->snapshot);
}

int ss_snapshot_trace(const char *path, char made[64], char *err, size_t err_size)
{
	struct ss_conversion *c = calloc(1, sizeof(*c));
	char why[512];
	int fd = -1;

	if (!c) {
		snprintf(err, err_size, "%s: out of memory", path);
		return -1;
	}
	c->path = path;
	c->err = err;
	c->err_size = err_size;
	c->definitions.to = c->before.to = c->history.to = &c->builder;
	c->stacks.to = &c->definitions;
	if (!ss_snapshot_open(&c->snapshot, path, why, sizeof(why))) {
		snprintf(err, err_size, "%s: %s", path, why);
	} else if (!ss_builder_open(&c->builder)) {
		snprintf(err, err_size, "%s: a temporary file: %s", path, strerror(errno));
	} else if (put_all(c)) {
		errno = 0;
		bool written = ss_builder_finish(&c->builder, SS_TRACE_SNAPSHOT, c->begin_ns, made);
		if (written && !c->no_memory && !c->stacks.failed) {
			fd = c->builder.fd;
		} else {
			snprintf(err, err_size, "%s: %s", path,
				 written ? "out of memory" : strerror(errno));
		}
	}
	finish(c);
	if (fd < 0)
		ss_builder_close(&c->builder);
	free(c);
	return fd;
}

bool ss_is_snapshot(const char *path, bool packed)
{
	unsigned char first[16] = {0};
	struct ss_input in;
	char err[256];
	int fd = ss_regular_open(path);
	ssize_t n = fd >= 0 ? read(fd, first, sizeof(first)) : 0;

	if (fd >= 0)
		close(fd);
	if (n >= 2 && first[0] == 0x80)
		return first[1] >= 2 && first[1] <= 5;
	if (n <= 0 || !packed || !ss_input_is_packed(first, (size_t)n) ||
	    !ss_input_open(&in, path, err, sizeof(err)))
		return false;
	bool is = in.first == 0x80;
	ss_input_close(&in);
	return is;
}
