/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes everything that another process can send: handles, pointers, descriptors, and the order in
 * which they are opened and closed. The first byte chooses what the others are.
 *
 * With -Dfuzz=true (and clang) this is a libFuzzer target; main.c runs it on bytes of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/share/pool_descriptor.h"
#include "shim/share/mappings.h"
#include "shim/stream/sync_watch.h"
#include "shim/alloc/block_attributes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(cond) do { \
	if (!(cond)) { \
		fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond); \
		abort(); \
	} \
} while (0)

#define MB2 (2ull << 20)

/* What the table of mappings needs from other files of the shim. */
atomic_int ss_sync_waiting;

unsigned ss_buffer_id_new(void)
{
	static unsigned last;

	return ++last;
}

/* ---- any bytes ---------------------------------------------------------- */

static void inside(const struct ss_handle *h)
{
	CHECK(h->size && h->offset <= h->segment_size && h->size <= h->segment_size - h->offset);
}

static bool same(const struct ss_handle *a, const struct ss_handle *b)
{
	return !memcmp(a->real, b->real, sizeof(a->real)) && a->segment_size == b->segment_size &&
	       a->offset == b->offset && a->size == b->size && a->serial == b->serial;
}

static void take(unsigned char *to, size_t want, const uint8_t *data, size_t size)
{
	memset(to, 0, want);
	memcpy(to, data, size < want ? size : want);
}

static void any_handle(const uint8_t *data, size_t size)
{
	unsigned char bytes[SS_HANDLE_BYTES], again[SS_HANDLE_BYTES];
	struct ss_handle h, back;

	take(bytes, sizeof(bytes), data, size);
	switch (ss_handle_parse(bytes, &h)) {
	case SS_HANDLE_OURS:
		inside(&h);
		CHECK(h.offset && h.serial && ss_handle_pack(&h, again));
		CHECK(!memcmp(bytes, again, sizeof(again)));
		break;
	case SS_HANDLE_REAL:
		inside(&h);
		/* The handle that is opened is the one that came, except for our note in it. */
		CHECK(!memcmp(h.real, bytes, 56));
		break;
	case SS_HANDLE_BAD: break;
	}
	if (ss_pointer_parse(bytes, &h)) {
		inside(&h);
		CHECK(h.serial && ss_pointer_pack(&h, again));
		CHECK(!memcmp(bytes, again, sizeof(again)) && !ss_pointer_native(bytes));
		CHECK(ss_pointer_parse(again, &back) && same(&h, &back));
	}
}

static void any_card(const uint8_t *data, size_t size)
{
	struct ss_pool_desc card;
	struct ss_pool_desc_device me = {.bus = "0000:01:00.0"};
	unsigned char *exact = malloc(size ? size : 1); /* exactly `size`, so that overruns show */

	CHECK(exact);
	memcpy(exact, data, size);
	if (ss_pool_desc_parse(exact, size, &card)) {
		CHECK(card.devices && card.devices <= SS_POOL_DESC_DEVICES);
		for (unsigned i = 0; i < card.devices; i++) {
			CHECK(memchr(card.device[i].bus, 0, sizeof(card.device[i].bus)));
			(void)ss_pool_desc_same_device(&card.device[i], &me);
		}
		CHECK(ss_pool_desc_finish(&card, card.devices, card.reuse) == size);
		CHECK(!memcmp(&card, exact, size));
	}
	free(exact);
}

/* ---- valid ones, and those with a bit changed --------------------------- */

static void made(const uint8_t *data, size_t size)
{
	unsigned char in[96], bytes[SS_HANDLE_BYTES];
	struct ss_handle h = {.segment_size = MB2}, back;
	uint64_t frames, at;
	uint32_t pid;
	int flip;

	take(in, sizeof(in), data, size);
	memcpy(h.real, in, 32);
	memcpy(&frames, in + 32, 8);
	memcpy(&at, in + 40, 8);
	memcpy(&h.size, in + 48, 8);
	memcpy(&pid, in + 56, 4);
	h.segment_size = (frames % (1 << 22) + 1) * MB2;
	h.offset = at % h.segment_size & ~511ull;
	h.size = h.size % (h.segment_size - h.offset) + 1;
	h.serial = in[60] % 4095 + 1u;
	flip = in[61] | in[62] << 8;
	memcpy(h.real + 32, &h.segment_size, 8);
	memcpy(h.real + 48, &pid, 4);
	h.real[52] = in[63] & 63; /* the device */

	CHECK(ss_pointer_pack(&h, bytes) && ss_pointer_parse(bytes, &back) && same(&h, &back));
	bytes[flip / 8 % 64] ^= 1 << (flip & 7);
	CHECK(!ss_pointer_native(bytes) || flip / 8 % 64 < 16);
	if (ss_pointer_parse(bytes, &back))
		inside(&back);
	CHECK(ss_handle_pack(&h, bytes));
	if (h.offset) {
		CHECK(ss_handle_parse(bytes, &back) == SS_HANDLE_OURS && same(&h, &back));
		CHECK(back.pid == pid);
	} else {
		CHECK(ss_handle_parse(bytes, &back) == SS_HANDLE_REAL);
		if (h.size >> 43 == 0)
			CHECK(same(&h, &back));
	}
	bytes[flip / 8 % 64] ^= 1 << (flip & 7);
	if (ss_handle_parse(bytes, &back) != SS_HANDLE_BAD)
		inside(&back);
}

/* ---- the table of mappings ---------------------------------------------- */

/* A model of two runtimes: one maps a handle again at each opening, the other (since 7.0) counts
 * its openings. A counted mapping belongs to the device that opened it last, for which each close
 * waits. */
#define SEGMENTS 4
#define MOST 64

static struct {
	int refs, segment, dev;
	unsigned busy, news;
} mapped[MOST];
static struct {
	void *ptr;
	enum ss_via via;
	int block, segment, dev;
} opened[MOST];
static int open_count;

static char *address(int i)
{
	return (char *)(uintptr_t)((1ull << 40) + (uint64_t)i * 16 * MB2);
}

static int slot_of(const void *base)
{
	uint64_t i = ((uintptr_t)base - (1ull << 40)) / (16 * MB2);

	CHECK(i < MOST && address((int)i) == base);
	return (int)i;
}

/* Checks that only devices in `idle`, which were found idle, have the mapping open. */
static void runtime_close(void *base, unsigned idle)
{
	int i = slot_of(base);

	CHECK(mapped[i].refs > 0 && !(mapped[i].busy & ~idle) && !mapped[i].news);
	mapped[i].refs--;
	if (!mapped[i].refs)
		mapped[i].busy = 0;
	/* No open block may lie there. */
	for (int k = 0; k < open_count && !mapped[i].refs; k++)
		CHECK((uintptr_t)opened[k].ptr - (uintptr_t)base >= 16 * MB2);
}

/* NULL: no room. */
static void *runtime_open(int segment, int dev, bool counts)
{
	int i;

	for (i = 0; counts && i < MOST; i++)
		if (mapped[i].refs && mapped[i].segment / 2 == segment / 2) {
			mapped[i].refs++;
			mapped[i].dev = dev;
			return address(i);
		}
	for (i = 0; i < MOST && mapped[i].refs; i++)
		;
	if (i == MOST)
		return NULL;
	mapped[i].refs = 1;
	mapped[i].segment = segment;
	mapped[i].dev = dev;
	return address(i);
}

/* Segments 2n and 2n + 1 have the same real handle: one took the address of the other. */
static struct ss_handle handle_of(int segment, int block)
{
	struct ss_handle h = {.segment_size = 16 * MB2,
			      .offset = (uint64_t)block * MB2,
			      .size = 4096,
			      .serial = (uint32_t)segment + 1};

	memset(h.real, segment / 2 + 1, 32);
	return h;
}

static void open_one(int segment, int block, bool pool, bool counts, int dev)
{
	enum ss_via via = pool ? SS_VIA_POOL : SS_VIA_HANDLE;
	struct ss_handle h = handle_of(segment, block);
	bool ours = pool || block;
	void *ptr = NULL, *base, *close = NULL;
	hipError_t err = hipSuccess;
	struct ss_mapping_close old;

	if (open_count == MOST)
		return;
	if (!ss_mapping_reopen(&h, ours, via, dev, pool ? -1 : 1, &ptr, &err)) {
		for (int tries = 0; tries < 2; tries++) {
			base = runtime_open(segment, dev, counts);
			if (!base)
				return;
			err = ss_mapping_add(&h, ours, via, base, dev, 1, &ptr, &close);
			CHECK(err == hipSuccess || close == base);
			if (close)
				runtime_close(close, ~0u);
			if (err == hipSuccess)
				break;
			old = ss_mapping_replaced(&h, base);
			for (unsigned i = 0; i < old.opens; i++)
				runtime_close(base, (unsigned)old.devices);
			if (!old.opens)
				break;
		}
	}
	if (err != hipSuccess) {
		int k = 0;

		while (k < open_count && opened[k].segment != (segment ^ 1))
			k++;
		/* Refused only because the other segment is open */
		CHECK(counts && k < open_count);
		return;
	}
	/* The pointer is to that segment, at that offset. */
	base = (char *)ptr - h.offset;
	CHECK(mapped[slot_of(base)].refs && mapped[slot_of(base)].segment == segment &&
	      (counts || mapped[slot_of(base)].dev == dev));
	opened[open_count].ptr = ptr;
	opened[open_count].dev = dev;
	opened[open_count].via = via;
	opened[open_count].segment = segment;
	opened[open_count++].block = block;
}

static bool asking;

static void leave_one(int which, int later)
{
	struct ss_mapping_close d;
	struct ss_block_info info;
	unsigned number;
	int i;

	if (!open_count)
		return;
	which %= open_count;
	CHECK(ss_import_find(opened[which].ptr, &info, &number) && number);
	CHECK(info.base == opened[which].ptr && info.size == 4096);
	if (opened[which].via != SS_VIA_POOL)
		later = -1;
	i = slot_of((char *)opened[which].ptr - opened[which].block * MB2);
	if (later >= 0)
		mapped[i].busy |= 1u << later | 1u << opened[which].dev;
	mapped[i].news |= later >= 0 && asking;
	d = ss_mapping_release(opened[which].ptr, opened[which].via, later);
	CHECK(d.known && d.open);
	/* The close waits for every device on which the block was opened. */
	CHECK(d.devices >> opened[which].dev & 1 && d.devices >> d.dev & 1);
	opened[which] = opened[--open_count];
	if (d.close)
		runtime_close(d.close, (unsigned)d.devices);
}

/* `leave`: another thread frees something meanwhile. */
static void settle(unsigned idle, int leave)
{
	uint64_t asked;
	void *base;
	int dev;

	CHECK((ss_mappings_waiting(&asked) != 0) == (ss_sync_waiting != 0));
	asking = true;
	if (leave >= 0)
		leave_one(leave, 0);
	asking = false;
	while ((base = ss_mapping_take_idle(idle, asked, &dev))) {
		/* Closing at a synchronization waits for nothing more. */
		CHECK(idle >> dev & 1 && idle >> mapped[slot_of(base)].dev & 1);
		runtime_close(base, idle);
	}
	for (int i = 0; i < MOST; i++)
		mapped[i].news = 0;
}

static void table(const uint8_t *data, size_t size)
{
	bool counts = size && data[0] & 1;

	for (size_t i = 1; i + 1 < size; i += 2) {
		unsigned op = data[i], arg = data[i + 1];

		switch (op % 4) {
		case 0:
		case 1:
			open_one(arg % SEGMENTS, arg / SEGMENTS % 4, op & 4, counts, op >> 3 & 1);
			break;
		case 2: leave_one((int)arg, op & 4 ? (int)(op >> 3 & 3) : -1); break;
		case 3: settle(arg & 15, op & 4 ? (int)(arg >> 4) : -1); break;
		}
	}
	while (open_count)
		leave_one(0, -1);
	settle(15, -1);
	CHECK(!ss_sync_waiting);
	for (int i = 0; i < MOST; i++)
		CHECK(!mapped[i].refs);
	CHECK(!ss_mapping_release(address(0), SS_VIA_HANDLE, -1).known);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0] % 4) {
	case 0: any_handle(data + 1, size - 1); break;
	case 1: any_card(data + 1, size - 1); break;
	case 2: made(data + 1, size - 1); break;
	case 3: table(data + 1, size - 1); break;
	}
	return 0;
}
