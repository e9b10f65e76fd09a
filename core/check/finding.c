/* SPDX-License-Identifier: MIT */
/* Findings: equal findings are counted and reported once. Two findings are equal if the same calls
 * of the same places are wrong in the same way. */
#include <stdlib.h>
#include <time.h>

#include "core/check/state.h"

#define PAGE 4096u        /* a device reports only the page of a fault */
/* An address further away from a block has nothing to do with the block */
#define NEAR (64ull << 20)

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static uint64_t key_of_site(uint64_t h, const struct ss_check_site *site)
{
	return mix(mix(mix(h, (uintptr_t)site->kernel), site->stack), (uintptr_t)site->what);
}

static uint64_t key_of(const struct ss_finding *f)
{
	/* Before the block, or in and after it */
	uint64_t h = mix(mix(1, f->fault), f->address < f->base);

	h = mix(mix(h, f->possible), (uint64_t)f->error_number);
	h = mix(mix(h, f->alloc.stack), (uintptr_t)f->alloc.what);
	h = mix(mix(h, f->free.stack), (uintptr_t)f->free.what);
	/* The order of the two accesses of a race does not matter. */
	return mix(h, key_of_site(1, &f->use) + key_of_site(1, &f->other));
}

/* The known finding that equals f; *is_new: it was added. NULL: host memory is out. */
static struct counted *count_in(struct ss_check *c, const struct ss_finding *f, bool *is_new)
{
	struct counted *e = NULL;
	uint64_t key = key_of(f);

	HASH_FIND(hh, c->findings, &key, sizeof(key), e);
	*is_new = !e;
	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (e) {
		e->f = *f;
		e->f.number = HASH_COUNT(c->findings) + 1;
		e->key = key;
		HASH_ADD(hh, c->findings, key, sizeof(e->key), e);
		if (SS_HASH_HAS(e))
			return e;
	}
	free(e);
	c->counts.forgotten++;
	return NULL;
}

void finding_add(struct ss_check *c, struct ss_finding *f)
{
	struct counted *e;
	bool is_new;

	if (f->possible && !c->opt.possible) {
		c->counts.possible++;
		return;
	}
	c->counts.findings++;
	e = count_in(c, f, &is_new);
	if (!e)
		return;
	e->f.count++;
	if (is_new && c->opt.report)
		c->opt.report(&e->f, c->opt.arg);
}

void findings_drop(struct ss_check *c)
{
	struct counted *e, *next;

	HASH_ITER(hh, c->findings, e, next) {
		HASH_DEL(c->findings, e);
		free(e);
	}
}

/* The last block that begins at or before the address, if the block is not far away. */
static const struct block *block_before(struct ss_check *c, uint64_t address)
{
	const struct block *best = NULL;

	for (int freed = 0; freed < 2; freed++)
		for (const struct block *b = c->list[freed].oldest; b; b = b->next)
			if (b->base <= address && (!best || b->base > best->base))
				best = b;
	return best && address - best->base < best->size + NEAR ? best : NULL;
}

void ss_check_memory_fault(struct ss_check *c, uint64_t address)
{
	struct ss_finding f = {.fault = SS_FAULT_MEMORY_FAULT, .address = address};
	const struct block *b;

	pthread_mutex_lock(&c->lock);
	b = block_before(c, address);
	if (!b) { /* the page may begin before a block */
		b = block_before(c, address + PAGE - 1);
		f.address = b ? b->base : address;
	}
	if (b)
		block_describe(b, &f);
	finding_add(c, &f);
	pthread_mutex_unlock(&c->lock);
}

/* The intended block is the one that begins inside the access, or else the last one before the
 * access. */
void ss_check_outside(struct ss_check *c, const void *stream, const struct ss_check_operand *o,
		      const char *what, uint32_t stack)
{
	struct ss_finding f = {
		.fault = SS_FAULT_OUT_OF_BOUNDS, .address = (uintptr_t)o->ptr, .bytes = o->bytes};
	const struct block *around, *b;

	pthread_mutex_lock(&c->lock);
	around = block_around(c, o->ptr);
	b = around ? around : block_before(c, f.address + f.bytes - 1);
	if (b)
		block_describe(b, &f);
	f.use = site_of(stream_get(c, stream), what, stack);
	if (around)
		f.fault = SS_FAULT_USE_AFTER_FREE;
	/* In a freed block of a pool the command is not refused, and ss_check_use() judges it. */
	if (!around || (!stream && around->freed && around->classic && c->opt.use_after_free))
		finding_add(c, &f);
	pthread_mutex_unlock(&c->lock);
}

void leak_add(struct ss_check *c, const struct block *b)
{
	struct ss_finding f = {.fault = SS_FAULT_LEAK};
	struct counted *e;
	bool is_new;

	block_describe(b, &f);
	e = count_in(c, &f, &is_new);
	if (!e)
		return;
	c->counts.findings++;
	if (!is_new)
		e->f.size += b->size;
	e->f.count++;
}

void ss_check_findings(struct ss_check *c, bool leaks,
		       void (*fn)(const struct ss_finding *, void *), void *arg)
{
	struct counted *e, *next;

	pthread_mutex_lock(&c->lock);
	for (const struct block *b = leaks ? c->list[0].oldest : NULL; b; b = b->next)
		leak_add(c, b);
	HASH_ITER(hh, c->findings, e, next)
		fn(&e->f, arg);
	pthread_mutex_unlock(&c->lock);
}

void ss_check_count(struct ss_check *c, struct ss_check_counts *out)
{
	pthread_mutex_lock(&c->lock);
	*out = c->counts;
	pthread_mutex_unlock(&c->lock);
}

bool ss_check_idle(struct ss_check *c)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	if (pthread_mutex_timedlock(&c->lock, &until))
		return false;
	pthread_mutex_unlock(&c->lock);
	return true;
}
