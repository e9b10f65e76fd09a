/* SPDX-License-Identifier: MIT */
/*
 * Races: two commands, which nothing orders, use the same bytes of a block, and one of them writes.
 * The bytes of copies and memsets are known, row by row. For a kernel only the block is known, so a
 * kernel is compared only with commands that use the whole block.
 *
 * An access that the host may have seen can race with nothing any more. Neither can an access of a
 * stream that may have waited for a command enqueued later. The order of the other accesses is
 * known in the same way as the order of the allocation (judge.c).
 *
 * A write of the bytes that are already there is harmless: the same value, or the same place of the
 * same source, which has to stay unchanged until the first write has completed.
 */
#include <stdlib.h>
#include <string.h>

#include "core/check/state.h"

#define ACCESSES_MAX 64u /* per block; older accesses are forgotten */
#define ROWS_MAX 65536u  /* two accesses with more rows are not compared */

/* Rows without gaps become one row, and slices of one row become rows. */
static struct ss_check_rows simplified(struct ss_check_rows r)
{
	if (r.rows > 1 && r.pitch == r.width) {
		r.width *= r.rows;
		r.rows = 1;
	}
	if (r.rows == 1) {
		r.rows = r.slices;
		r.pitch = r.slice;
		r.slices = 1;
	}
	if (r.slices == 1 && r.rows > 1 && r.pitch == r.width) {
		r.width *= r.rows;
		r.rows = 1;
	}
	return r;
}

/* Number of bytes from the first to the last. */
static uint64_t length_of(const struct ss_check_rows *r)
{
	return (r->slices - 1) * r->slice + (r->rows - 1) * r->pitch + r->width;
}

/* Finds the pieces that [from, to) may meet, of `count` pieces of `length` bytes that start `step`
 * bytes apart. */
static bool pieces(uint64_t from, uint64_t to, uint64_t length, uint64_t step, uint64_t count,
		   uint64_t *first, uint64_t *last)
{
	*first = 0;
	*last = count - 1;
	if (to == 0)
		return false;
	if (count > 1 && step) {
		*first = from < length ? 0 : (from - length) / step + 1;
		if (*last > (to - 1) / step)
			*last = (to - 1) / step;
	}
	return *first <= *last && from < *last * step + length;
}

/* Does one of the rows have a byte of [from, to)? */
static bool meets(const struct ss_check_rows *r, uint64_t from, uint64_t to)
{
	uint64_t k, last, row, last_row;
	uint64_t length = (r->rows - 1) * r->pitch + r->width;

	from = from > r->offset ? from - r->offset : 0;
	to = to > r->offset ? to - r->offset : 0;
	if (!pieces(from, to, length, r->slice, r->slices, &k, &last))
		return false;
	for (; k <= last; k++) {
		uint64_t at = k * r->slice;

		if (to > at && pieces(from > at ? from - at : 0, to - at, r->width, r->pitch,
				      r->rows, &row, &last_row))
			return true;
	}
	return false;
}

/* Do the two have a byte in common? With too many rows the answer is unknown. */
static bool overlap(const struct ss_check_rows *a, const struct ss_check_rows *b)
{
	const struct ss_check_rows *few = a->rows * a->slices <= b->rows * b->slices ? a : b;
	const struct ss_check_rows *many = few == a ? b : a;

	if (a->offset >= b->offset + length_of(b) || b->offset >= a->offset + length_of(a) ||
	    few->rows > ROWS_MAX || few->rows * few->slices > ROWS_MAX)
		return false;
	for (uint64_t k = 0; k < few->slices; k++)
		for (uint64_t row = 0; row < few->rows; row++) {
			uint64_t at = few->offset + k * few->slice + row * few->pitch;

			if (meets(many, at, at + few->width))
				return true;
		}
	return false;
}

/* Are there bytes, and are all rows disjoint? */
static bool is_plain(const struct ss_check_rows *r)
{
	return r->width && r->rows && r->slices && (r->rows == 1 || r->pitch >= r->width) &&
	       (r->slices == 1 || r->slice >= (r->rows - 1) * r->pitch + r->width);
}

static bool same_rows(const struct ss_check_rows *a, const struct ss_check_rows *b)
{
	return a->offset == b->offset && a->width == b->width && a->pitch == b->pitch &&
	       a->rows == b->rows && a->slice == b->slice && a->slices == b->slices;
}

/* Does a use each byte that b uses? */
static bool covers(const struct ss_check_rows *a, const struct ss_check_rows *b)
{
	return same_rows(a, b) || (a->rows == 1 && a->slices == 1 && a->offset <= b->offset &&
				   b->offset + length_of(b) <= a->offset + a->width);
}

static bool is_whole(const struct block *b, const struct access *a)
{
	return a->at.rows == 1 && a->at.slices == 1 && a->at.offset == 0 && a->at.width >= b->size;
}

static bool kernel_of(const struct access *a)
{
	return a->site.kernel != NULL;
}

static bool is_seen(const struct ss_check *c, const struct access *a)
{
	return a->slot < c->host.count && a->n <= c->host.n[a->slot];
}

/* Did another write put the same bytes there? */
static bool is_harmless(const struct ss_check *c, const struct block *b, const struct access *write,
			const struct access *other)
{
	if (!write->writes || !write->origin)
		return false;
	if (other->writes)
		return other->origin == write->origin;
	for (uint32_t i = 0; i < b->access_count; i++) {
		const struct access *a = &b->accesses[i];

		if (a != write && a->origin == write->origin && covers(&a->at, &write->at) &&
		    !is_seen(c, a))
			return true;
	}
	return false;
}

static bool collide(const struct block *b, const struct access *x, const struct access *y)
{
	if (!x->writes && !y->writes)
		return false;
	if (kernel_of(x) || kernel_of(y))
		return !(kernel_of(x) && kernel_of(y)) && is_whole(b, kernel_of(x) ? y : x);
	return overlap(&x->at, &y->at);
}

/* The access is of a command that is about to be enqueued on s. */
static void judge(struct ss_check *c, struct block *b, const struct stream *s,
		  const struct access *now, struct ss_finding *f)
{
	const struct access *worst = NULL;
	bool looked = false;

	for (uint32_t i = b->access_count; i--;) {
		const struct access *a = &b->accesses[i];

		if (a->slot == s->slot || !collide(b, a, now))
			continue;
		if (may_be_ordered(c, s, a->slot, a->n))
			looked |= if_host_looked(c, s, a->slot, a->n);
		else if (is_harmless(c, b, a, now) || is_harmless(c, b, now, a))
			looked = true;
		else if (!worst || (worst->unsure && !a->unsure))
			worst = a;
	}
	if (!worst) {
		c->counts.unknown += looked;
		return;
	}
	f->fault = SS_FAULT_RACE;
	f->other = worst->site;
	f->use_writes = now->writes;
	f->other_writes = worst->writes;
	f->possible = now->unsure || worst->unsure;
	finding_add(c, f);
}

static void forget_access(struct block *b, uint32_t i)
{
	memmove(&b->accesses[i], &b->accesses[i + 1],
		(--b->access_count - i) * sizeof(b->accesses[0]));
}

/* Every access that conflicts with `a` also conflicts with a later access on s that uses all of
 * these bytes. */
static bool is_met_later(const struct access *a, const struct access *now)
{
	return a->slot == now->slot && !a->unsure == !now->unsure && covers(&now->at, &a->at) &&
	       kernel_of(a) == kernel_of(now) && (now->writes || !a->writes);
}

static void note(struct ss_check *c, struct block *b, const struct access *now)
{
	for (uint32_t i = b->access_count; i--;) {
		const struct access *a = &b->accesses[i];

		if (is_seen(c, a) || is_met_later(a, now))
			forget_access(b, i);
	}
	if (b->access_count == ACCESSES_MAX)
		forget_access(b, 0);
	if (b->access_count == b->access_room) {
		uint32_t room = b->access_room ? 2 * b->access_room : 4;
		struct access *more = realloc(b->accesses, room * sizeof(*more));

		if (!more) {
			c->counts.forgotten++;
			return;
		}
		b->accesses = more;
		b->access_room = room;
	}
	b->accesses[b->access_count++] = *now;
}

void race_judge(struct ss_check *c, struct block *b, const struct stream *s,
		const struct ss_check_operand *o, struct ss_finding *f)
{
	struct access now = {.slot = s->slot,
			     .n = s->n,
			     .writes = o->access == SS_CHECK_WRITES,
			     .unsure = o->guess || (o->kernel && !o->sole),
			     .origin = o->origin,
			     .site = f->use};
	uint64_t at = (uintptr_t)o->ptr - b->base;

	/* From now on no write is known to repeat the bytes that are there. */
	if (o->kernel && o->access != SS_CHECK_READS)
		for (uint32_t i = 0; i < b->access_count; i++)
			b->accesses[i].origin = 0;
	if (o->access == SS_CHECK_ANY)
		return;
	if (o->kernel)
		now.at = (struct ss_check_rows){0, b->size, 0, 1, 0, 1};
	else if (o->rows)
		now.at = *o->rows;
	else
		now.at = (struct ss_check_rows){0, o->bytes, 0, 1, 0, 1};
	if (!is_plain(&now.at))
		return;
	if (!o->kernel)
		now.at.offset += at;
	now.at = simplified(now.at);
	if (c->is_blind || s->saw.wild) {
		c->is_blind ? c->counts.blind++ : c->counts.unknown++;
		return;
	}
	judge(c, b, s, &now, f);
	note(c, b, &now);
}
