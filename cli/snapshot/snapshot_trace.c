/* SPDX-License-Identifier: MIT */
/*
 * The history of each device becomes events. What was there before the history begins is found from
 * what it frees without having allocated it, and from the segments, which are those of its end; it
 * becomes events of the beginning, as in a ring. Work grows with the size of the file: each object
 * that a pickle can refer to again is looked at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uthash.h>

#include "cli/analysis/ranges.h"
#include "cli/readers/input.h"
#include "cli/readers/torch_snapshot.h"
#include "cli/snapshot/snapshot_trace.h"
#include "cli/snapshot/stacks.h"
#include "core/base/regular_file.h"

#define DEVICES 64
#define POOL_OF(device) ((uint16_t)((device) + 1))
#define STREAMS_MOST 65536

struct stream {
	uint64_t key[2]; /* device, handle */
	uint32_t id;
	UT_hash_handle hh;
};

struct block {           /* that is live, or freed and not completed */
	uint64_t key[2]; /* device, address */
	uint64_t size;
	bool freed;
	UT_hash_handle hh;
};

struct conversion {
	const char *path;
	char *err;
	size_t err_size;
	struct ss_torch_snapshot snapshot;
	struct ss_builder builder;
	/* Definitions, what was there before, and the history of the device that is read */
	struct ss_builder_chain definitions, before, history;
	struct ss_snapshot_stacks stacks;
	struct stream *streams;
	struct block *blocks;
	/* Addresses that the history has named, of memory and of blocks, and how they began */
	struct ss_ranges segments[DEVICES], named[DEVICES];
	bool used[DEVICES];
	uint64_t begin_ns;
	bool no_memory;
};

static bool wrong(struct conversion *c, const char *fmt, size_t n, const char *what)
{
	int at = snprintf(c->err, c->err_size, "%s: ", c->path);

	if (at > 0 && (size_t)at < c->err_size)
		snprintf(c->err + at, c->err_size - (size_t)at, fmt, n, what);
	return false;
}

static uint64_t rounded(uint64_t size)
{
	return (size + 511) & ~511ull;
}

/* ---- definitions ----------------------------------------------------------- */

static uint32_t stream_of(struct conversion *c, uint64_t device, uint64_t handle)
{
	uint64_t key[2] = {device, handle};
	struct stream *s;

	HASH_FIND(hh, c->streams, key, sizeof(key), s);
	if (s || HASH_COUNT(c->streams) >= STREAMS_MOST)
		return s ? s->id : 0;
	s = calloc(1, sizeof(*s));
	if (!s) {
		c->no_memory = true;
		return 0;
	}
	memcpy(s->key, key, sizeof(key));
	s->id = HASH_COUNT(c->streams) + 1;
	HASH_ADD(hh, c->streams, key, sizeof(s->key), s);
	struct ss_trace_stream *r = ss_builder_record(&c->definitions, SS_TRACE_STREAM, sizeof(*r),
						      0);
	if (r) {
		r->id = s->id;
		r->device = (uint8_t)device;
		r->kind = handle ? SS_TRACE_STREAM_UNKNOWN : SS_TRACE_STREAM_NULL;
		r->handle = handle;
	}
	return s->id;
}

static void define_text(struct conversion *c, enum ss_trace_info_key key, const char *text)
{
	size_t length = strnlen(text, SS_TRACE_TEXT_MAX), size = (length + 7) / 8 * 8;
	struct ss_trace_info *r = ss_builder_record(&c->definitions, SS_TRACE_INFO,
						    sizeof(*r) + size, 0);

	if (r) {
		r->key = key;
		r->length = (uint16_t)length;
		memcpy(r->text, text, length);
	}
}

static void define_device(struct conversion *c, size_t device)
{
	if (c->used[device])
		return;
	c->used[device] = true;
	struct ss_trace_device *d = ss_builder_record(&c->definitions, SS_TRACE_DEVICE, sizeof(*d),
						      0);
	if (d)
		d->device = (uint8_t)device;
	struct ss_trace_pool *p = ss_builder_record(&c->definitions, SS_TRACE_POOL, sizeof(*p), 0);
	if (p) {
		p->r.pool = POOL_OF(device);
		p->handle = device;
		p->device = (uint8_t)device;
		snprintf(p->name, sizeof(p->name), "PyTorch");
	}
}

static void fill(struct ss_trace_event *e, size_t device, uint32_t stream, uint32_t stack,
		 uint32_t flags)
{
	e->r.pool = POOL_OF(device);
	e->stream_flags = SS_TRACE_PACK(stream, flags);
	e->stack_device = SS_TRACE_PACK(stack, device);
}

/* ---- what was there before ------------------------------------------------- */

static void put_segment(struct ss_builder_chain *to, enum ss_trace_kind kind, size_t device,
			uint64_t base, uint64_t size, uint32_t flags, uint64_t time_ns)
{
	struct ss_trace_segment *r = ss_builder_record(to, kind, sizeof(*r), time_ns);

	if (r) {
		fill(&r->e, device, 0, 0, flags);
		r->base = base;
		r->size = size;
	}
}

/* Names the addresses. Those that nothing named before were there before the history if `before`.
 * Ranges that follow each other become one, so the work is that of all calls together. */
static void name_segment(struct conversion *c, size_t device, uint64_t base, uint64_t size,
			 bool before)
{
	uint64_t end = ss_range_end(base, size), at = base, low = base, high = end;
	struct ss_ranges *set = &c->segments[device];
	const struct ss_range *r;
	struct ss_range old;

	while ((r = ss_ranges_from(set, low)) && r->base < end) {
		if (before && r->base > at)
			put_segment(&c->before, SS_TRACE_MAP, device, at, r->base - at,
				    SS_TRACE_F_LIVED, c->begin_ns);
		at = r->base + r->size;
		low = r->base < low ? r->base : low;
		high = at > high ? at : high;
		ss_ranges_remove(set, r->base, &old);
	}
	if (before && at < end)
		put_segment(&c->before, SS_TRACE_MAP, device, at, end - at, SS_TRACE_F_LIVED,
			    c->begin_ns);
	if (high > low && !ss_ranges_add(set, &(struct ss_range){.base = low, .size = high - low}))
		c->no_memory = true;
}

static struct block *find_block(struct conversion *c, size_t device, uint64_t address)
{
	uint64_t key[2] = {device, address};
	struct block *b;

	HASH_FIND(hh, c->blocks, key, sizeof(key), b);
	return b;
}

static struct block *add_block(struct conversion *c, size_t device, uint64_t address, uint64_t size)
{
	struct block *b = calloc(1, sizeof(*b));

	if (!b) {
		c->no_memory = true;
		return NULL;
	}
	b->key[0] = device;
	b->key[1] = address;
	b->size = size;
	HASH_ADD(hh, c->blocks, key, sizeof(b->key), b);
	return b;
}

static void drop_block(struct conversion *c, struct block *b)
{
	HASH_DEL(c->blocks, b);
	free(b);
}

/* Names the addresses of a block. False: some were named before, so that it did not live then. */
static bool name_block(struct conversion *c, size_t device, uint64_t address, uint64_t size)
{
	uint64_t end = ss_range_end(address, size), low = address, high = end;
	struct ss_ranges *set = &c->named[device];
	const struct ss_range *r;
	struct ss_range old;
	bool first = true;

	while ((r = ss_ranges_from(set, low)) && r->base < end) {
		low = r->base < low ? r->base : low;
		high = r->base + r->size > high ? r->base + r->size : high;
		first = false;
		ss_ranges_remove(set, r->base, &old);
	}
	if (high > low && !ss_ranges_add(set, &(struct ss_range){.base = low, .size = high - low}))
		c->no_memory = true;
	return first;
}

static void put_lived(struct conversion *c, size_t device, uint64_t address, uint64_t size,
		      uint64_t asked, uint32_t stream, uint32_t stack)
{
	struct ss_trace_lived *r = ss_builder_record(&c->before, SS_TRACE_ALLOC, sizeof(*r),
						     c->begin_ns);

	if (r) {
		fill(&r->a.e, device, stream, stack, SS_TRACE_F_LIVED);
		r->a.ptr = address;
		r->a.size = SS_TRACE_SIZE(asked);
		r->rounded = size;
		r->since_ns = c->begin_ns;
	}
}

/* ---- the history ------------------------------------------------------------- */

struct entry {
	size_t device;
	uint64_t address, size, time_ns;
	uint32_t stream, stack;
};

static void put_alloc(struct conversion *c, const struct entry *e)
{
	struct block *b = find_block(c, e->device, e->address);
	struct ss_trace_alloc *r;

	if (!e->size)
		return;
	name_block(c, e->device, e->address, rounded(e->size));
	if (b)
		drop_block(c, b);
	add_block(c, e->device, e->address, rounded(e->size));
	r = ss_builder_record(&c->history, SS_TRACE_ALLOC, sizeof(*r), e->time_ns);
	if (r) {
		uint64_t more = (rounded(e->size) - ((e->size + 255) & ~255ull)) / 256;
		fill(&r->e, e->device, e->stream, e->stack, 0);
		r->ptr = e->address;
		r->size = SS_TRACE_SIZE(e->size) | more << 48;
	}
}

static void put_free(struct conversion *c, const struct entry *e, bool completed)
{
	struct block *b = find_block(c, e->device, e->address);

	if (!b && e->size && name_block(c, e->device, e->address, rounded(e->size))) {
		b = add_block(c, e->device, e->address, rounded(e->size));
		put_lived(c, e->device, e->address, rounded(e->size), e->size, e->stream, 0);
	}
	if (!b)
		return;
	if (!b->freed) {
		struct ss_trace_free *r = ss_builder_record(&c->history, SS_TRACE_FREE, sizeof(*r),
							    e->time_ns);
		if (r) {
			fill(&r->e, e->device, e->stream, e->stack,
			     completed ? SS_TRACE_F_REUSABLE : 0);
			r->ptr = e->address;
		}
		b->freed = true;
	} else if (completed) {
		struct ss_trace_reusable *r = ss_builder_record(&c->history, SS_TRACE_REUSABLE,
								sizeof(*r), e->time_ns);
		if (r) {
			r->r.pool = POOL_OF(e->device);
			r->base = e->address;
			r->size = b->size;
		}
	}
	if (completed)
		drop_block(c, b);
}

static void put_oom(struct conversion *c, const struct entry *e, const struct ss_pickle *entry)
{
	struct ss_trace_oom *r = ss_builder_record(&c->history, SS_TRACE_OOM, sizeof(*r),
						   e->time_ns);

	if (r) {
		fill(&r->e, e->device, e->stream, e->stack, 0);
		r->size = e->size;
		ss_snapshot_number(entry, "device_free", &r->device_free);
	}
}

/* Older snapshots have no times: then an entry is a microsecond after the one before it. */
static uint64_t time_of(const struct ss_pickle *entry, size_t n)
{
	uint64_t us;

	if (!ss_snapshot_number(entry, "time_us", &us))
		us = n + 1;
	return us < UINT64_MAX / 2000 ? us * 1000 : 0;
}

static bool put_entry(struct conversion *c, size_t device, const struct ss_pickle *entry, size_t n)
{
	struct entry e = {.device = device, .time_ns = time_of(entry, n)};
	const struct ss_pickle *action;
	uint64_t stream = 0;

	if (ss_snapshot_too_many_keys(entry))
		return wrong(c, "trace entry %zu has too many keys%s", n, "");
	action = ss_pickle_get(entry, "action");
	if (!action || action->type != SS_PICKLE_STRING)
		return wrong(c, "trace entry %zu has no action%s", n, "");
	if (!ss_snapshot_number(entry, "addr", &e.address) && !ss_pickle_is(action, "oom"))
		return true; /* marks of the program */
	ss_snapshot_number(entry, "size", &e.size);
	ss_snapshot_number(entry, "stream", &stream);
	e.stream = stream_of(c, device, stream);
	e.stack = ss_snapshot_stack(&c->stacks, ss_pickle_get(entry, "frames"));
	e.size = e.size < 1ull << 47 ? e.size : 0;
	if (ss_pickle_is(action, "alloc")) {
		put_alloc(c, &e);
	} else if (ss_pickle_is(action, "free_requested") ||
		   ss_pickle_is(action, "free_completed")) {
		put_free(c, &e, ss_pickle_is(action, "free_completed"));
	} else if (ss_pickle_is(action, "oom")) {
		put_oom(c, &e, entry);
	} else if (ss_pickle_is(action, "segment_alloc") || ss_pickle_is(action, "segment_map")) {
		name_segment(c, device, e.address, e.size, false);
		put_segment(&c->history, SS_TRACE_MAP, device, e.address, e.size, 0, e.time_ns);
	} else if (ss_pickle_is(action, "segment_free") || ss_pickle_is(action, "segment_unmap")) {
		name_segment(c, device, e.address, e.size, true);
		put_segment(&c->history, SS_TRACE_UNMAP, device, e.address, e.size, 0, e.time_ns);
	}
	return true;
}

static bool put_trace(struct conversion *c, size_t device)
{
	const struct ss_pickle *trace = ss_pickle_at(c->snapshot.traces, device);

	if (!ss_pickle_count(trace))
		return true;
	if (!ss_pickle_first_time(trace))
		return wrong(c, "device %zu has the trace of another one%s", device, "");
	c->history.last_ns = 0;
	for (size_t i = 0; i < ss_pickle_count(trace) && !c->builder.failed && !c->no_memory; i++) {
		if (i == 0)
			define_device(c, device);
		if (!put_entry(c, device, ss_pickle_at(trace, i), i))
			return false;
	}
	ss_builder_end(&c->history);
	return true;
}

/* The program's own ranges: they become phases. */
static void put_annotations(struct conversion *c)
{
	c->history.last_ns = 0;
	for (size_t i = 0; i < ss_pickle_count(c->snapshot.annotations); i++) {
		const struct ss_pickle *a = ss_pickle_at(c->snapshot.annotations, i), *name, *stage;

		if (ss_snapshot_too_many_keys(a))
			continue;
		name = ss_pickle_get(a, "name");
		stage = ss_pickle_get(a, "stage");
		bool begins = ss_pickle_is(stage, "START");
		if ((!begins && !ss_pickle_is(stage, "END")) || !name ||
		    name->type != SS_PICKLE_STRING)
			continue;
		size_t length = !begins                       ? 0 :
				name->len < SS_TRACE_TEXT_MAX ? name->len :
								SS_TRACE_TEXT_MAX;
		struct ss_trace_phase *r = ss_builder_record(&c->history, SS_TRACE_PHASE,
							     sizeof(*r) + (length + 7) / 8 * 8,
							     time_of(a, i));
		if (!r)
			break;
		r->e.stream_flags = SS_TRACE_PACK(0, begins ? SS_TRACE_PHASE_PUSH :
							      SS_TRACE_PHASE_POP);
		r->e.stack_device = SS_TRACE_PACK(0, SS_TRACE_NO_DEVICE);
		r->length = (uint32_t)length;
		memcpy(r->text, name->s, length);
	}
	ss_builder_end(&c->history);
}

/* ---- segments ------------------------------------------------------------------ */

/* Who allocated a block: newer snapshots say it in "frames", older ones in "history". */
static uint32_t block_stack(struct conversion *c, const struct ss_pickle *block)
{
	const struct ss_pickle *frames = ss_pickle_get(block, "frames");
	const struct ss_pickle *history = ss_pickle_get(block, "history");

	if (!ss_pickle_count(frames) && ss_pickle_count(history)) {
		const struct ss_pickle *newest = ss_pickle_at(history, 0);
		frames = ss_snapshot_too_many_keys(newest) ? NULL : ss_pickle_get(newest, "frames");
	}
	return ss_snapshot_stack(&c->stacks, frames);
}

static bool put_final_segment(struct conversion *c, const struct ss_pickle *s, size_t n)
{
	const struct ss_pickle *blocks;
	uint64_t at, total = 0, device = 0, handle = 0;

	if (ss_snapshot_too_many_keys(s) || !ss_snapshot_number(s, "address", &at))
		return wrong(c, "segment %zu has no address, or too many keys%s", n, "");
	blocks = ss_pickle_get(s, "blocks");
	if (!ss_pickle_first_time(s) || !ss_pickle_first_time(blocks))
		return wrong(c, "segment %zu: its addresses occur twice%s", n, "");
	ss_snapshot_number(s, "total_size", &total);
	ss_snapshot_number(s, "device", &device);
	ss_snapshot_number(s, "stream", &handle);
	if (device >= DEVICES)
		return wrong(c, "segment %zu is of a device that there cannot be%s", n, "");
	define_device(c, device);
	if (total)
		name_segment(c, device, at, total, true);
	uint32_t stream = stream_of(c, device, handle);
	for (size_t i = 0; i < ss_pickle_count(blocks) && !c->builder.failed && !c->no_memory;
	     i++) {
		const struct ss_pickle *block = ss_pickle_at(blocks, i);
		uint64_t size = 0, asked;
		if (ss_snapshot_too_many_keys(block) || !ss_snapshot_number(block, "size", &size))
			return wrong(c, "a block of segment %zu has no size%s", n, "");
		/* Older snapshots do without: the blocks lie side by side */
		ss_snapshot_number(block, "address", &at);
		asked = size;
		ss_snapshot_number(block, "requested_size", &asked);
		const struct ss_pickle *state = ss_pickle_get(block, "state");
		bool live = state && !ss_pickle_is(state, "inactive");
		if (live && size && size < 1ull << 47 && name_block(c, device, at, size))
			put_lived(c, device, at, size, asked < size ? asked : size, stream,
				  block_stack(c, block));
		at += size;
	}
	return true;
}

/* ---- all ------------------------------------------------------------------------- */

/* When the first entry of any device was; what was there before is of that moment. */
static uint64_t first_time(const struct ss_torch_snapshot *s)
{
	uint64_t first = UINT64_MAX;

	for (size_t d = 0; d < ss_pickle_count(s->traces) && d < DEVICES; d++) {
		const struct ss_pickle *entry = ss_pickle_at(ss_pickle_at(s->traces, d), 0);
		if (entry && !ss_snapshot_too_many_keys(entry)) {
			uint64_t t = time_of(entry, 0);
			first = t < first ? t : first;
		}
	}
	/* Before the first event also in the order of the file */
	return first < UINT64_MAX && first > 1000 ? first - 1000 : 0;
}

static bool put_all(struct conversion *c)
{
	size_t devices = ss_pickle_count(c->snapshot.traces);

	if (devices > DEVICES)
		return wrong(c, "it has %zu devices%s", devices, "");
	c->begin_ns = first_time(&c->snapshot);
	define_text(c, SS_TRACE_INFO_ARG, "a program of PyTorch");
	for (size_t d = 0; d < devices; d++)
		if (!put_trace(c, d))
			return false;
	for (size_t i = 0; i < ss_pickle_count(c->snapshot.segments); i++)
		if (!put_final_segment(c, ss_pickle_at(c->snapshot.segments, i), i))
			return false;
	put_annotations(c);
	ss_builder_end(&c->before);
	ss_builder_end(&c->definitions);
	return true;
}

static void finish(struct conversion *c)
{
	struct stream *s, *s_next;
	struct block *b, *b_next;

	HASH_ITER(hh, c->streams, s, s_next) {
		HASH_DEL(c->streams, s);
		free(s);
	}
	HASH_ITER(hh, c->blocks, b, b_next) {
		HASH_DEL(c->blocks, b);
		free(b);
	}
	for (size_t d = 0; d < DEVICES; d++) {
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
	struct conversion *c = calloc(1, sizeof(*c));
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
