/* SPDX-License-Identifier: MIT */
/* Marked ranges: parts of a block that the program's own pool hands out and takes back. They are
 * judged like blocks, and dropped with their block. */
#include "core/check/state.h"

void ss_check_handed_out(struct ss_check *c, void *ptr, uint64_t size, const void *stream,
			 const char *what, uint32_t stack)
{
	struct block *b, *m = NULL;
	struct stream *s;

	pthread_mutex_lock(&c->lock);
	s = stream_get(c, stream);
	b = block_find(c, ptr);
	if (s && b && !b->freed && size && size <= b->end - (uintptr_t)ptr)
		m = mark_new(c, (uintptr_t)ptr, size);
	if (m) {
		stream_enqueue(c, s);
		m->alloc = site_of(s, what, stack);
		m->alloc_slot = s->slot;
		m->alloc_n = s->n;
	}
	pthread_mutex_unlock(&c->lock);
}

void ss_check_returned(struct ss_check *c, void *ptr, const void *stream,
		       const struct ss_check_unbegun *unbegun, const char *what, uint32_t stack)
{
	struct ss_finding f = {.address = (uintptr_t)ptr, .fault = SS_FAULT_DOUBLE_FREE};
	struct stream *s;
	struct block *m;

	pthread_mutex_lock(&c->lock);
	s = stream_get(c, stream);
	m = mark_around(c, ptr);
	if (m && m->base != (uintptr_t)ptr)
		m = NULL;
	if (m && m->freed && c->opt.frees) {
		block_describe(m, &f);
		f.use = site_of(s, what, stack);
		finding_add(c, &f);
	} else if (m && !m->freed && s) {
		c->counts.checked++;
		free_on(c, m, s, unbegun, what, stack);
		block_move(c, m, true);
	}
	pthread_mutex_unlock(&c->lock);
}
