/* SPDX-License-Identifier: MIT */
/*
 * Idle chunks, of which every byte is free and completed. They are mapped elsewhere, into a run
 * that lacks memory (compaction), or released.
 *
 * Locks: the memory's lock, dropped for the driver. Blocks in use by a thread are meanwhile in
 * state QUEUED, so no other thread touches them.
 */
#include "core/backing/vmm.h"

struct search {
	const struct ss_vmm *v;
	struct ss_block *range; /* found: the completed range, */
	struct ss_chunk *chunk; /* and the chunk in it */
	uint64_t most;          /* bytes that are needed, or that may be released */
	/* For moving: */
	const struct ss_run *run;
	uint64_t room; /* larger chunks do not fit */
	/* For releasing, in ms: */
	uint64_t older_than, now, oldest, newest; /* oldest: 0 if there is none */
};

/* The first chunk that lies wholly in the range b, at frame *at or above; *at is then the frame
 * after it. *at 0: begin with b. */
static struct ss_chunk *next_whole(const struct ss_vmm *v, const struct ss_block *b, uint64_t *at)
{
	uint64_t first = ss_round(b->addr - v->seg->base, v->unit) / v->unit;
	uint64_t end = (b->addr + b->size - v->seg->base) / v->unit;

	if (*at < first)
		*at = first;
	while (*at < end) {
		struct ss_chunk *c = v->frame[*at];

		*at = (c->va + c->size - v->seg->base) / v->unit;
		if (c->va >= b->addr && *at <= end)
			return c;
	}
	return NULL;
}

/* Takes the chunk's range out of its completed range. NULL: host memory is out. Lock held. */
static struct ss_block *detach(struct ss_memory *m, const struct search *s)
{
	return s->chunk ? ss_completed_cut(m, s->range, s->chunk->va, s->chunk->size) : NULL;
}

/* ---- moving ------------------------------------------------------------------------ */

/* Is chunk a better to move than b? Large chunks take few calls, but bytes beyond the need are
 * moved for nothing. */
static bool is_better(const struct search *s, const struct ss_chunk *a, const struct ss_chunk *b)
{
	if (a->size > s->room)
		return false;
	if (a->size <= s->most)
		return !b || b->size > s->most || a->size > b->size;
	return !b || a->size < b->size;
}

/* Equal chunks: prefer the one in the shorter free range (long ranges are useful as they are),
 * then the lower address. */
static bool is_shorter(const struct ss_block *a, const struct ss_block *b)
{
	return a->size != b->size ? a->size < b->size : a->addr < b->addr;
}

static void pick_to_move(struct ss_block *b, struct search *s)
{
	struct ss_chunk *best = NULL, *c;

	/* Free memory in the run is already part of it. */
	if (b->size < s->v->unit || (b->addr < s->run->to && b->addr + b->size > s->run->from))
		return;
	for (uint64_t at = 0; (c = next_whole(s->v, b, &at));)
		if (is_better(s, c, best))
			best = c;
	if (best && (is_better(s, best, s->chunk) ||
		     (best->size == s->chunk->size && is_shorter(b, s->range)))) {
		s->range = b;
		s->chunk = best;
	}
}

struct ss_chunk *ss_chunks_gather(struct ss_memory *m, const struct ss_block *target,
				  const struct ss_run *run, uint64_t want, uint64_t *got)
{
	struct ss_chunk *list = NULL, **tail = &list;

	*got = 0;
	while (*got < want) {
		struct search s = {
			.v = m->vmm, .run = run, .most = want - *got, .room = target->size - *got};
		struct ss_block *b;

		pthread_mutex_lock(&m->lock);
		SS_INDEX_EACH(range, &m->completed)
			pick_to_move(range, &s);
		b = detach(m, &s);
		m->moved += b != NULL;
		pthread_mutex_unlock(&m->lock);
		if (!b || ss_chunk_unmap(m, b, s.chunk) != SS_OK)
			break;
		s.chunk->next = NULL;
		*tail = s.chunk;
		tail = &s.chunk->next;
		*got += s.chunk->size;
	}
	return list;
}

uint64_t ss_memory_movable(const struct ss_memory *m, const struct ss_block *b)
{
	struct ss_chunk *c;
	uint64_t bytes = 0;

	if (!m->vmm || b->size < m->vmm->unit)
		return 0;
	for (uint64_t at = 0; (c = next_whole(m->vmm, b, &at));)
		bytes += c->size;
	return bytes;
}

uint64_t ss_chunks_movable(struct ss_memory *m, const struct ss_run *run)
{
	uint64_t bytes = 0;

	SS_INDEX_EACH(b, &m->completed)
		if (b->addr >= run->to || b->addr + b->size <= run->from)
			bytes += ss_memory_movable(m, b);
	return bytes;
}

/* ---- releasing ----------------------------------------------------------------------- */

/* Looks at all idle chunks. */
static void find_old(struct ss_memory *m, struct search *s)
{
	struct ss_chunk *c;

	SS_INDEX_EACH(b, &m->completed)
		for (uint64_t at = 0; (c = next_whole(s->v, b, &at));) {
			if (!c->idle_since)
				c->idle_since = b->n ? b->n : s->now;
			if (c->idle_since > s->newest)
				s->newest = c->idle_since;
			if (!s->oldest || c->idle_since < s->oldest)
				s->oldest = c->idle_since;
			if (!s->chunk && c->size <= s->most && c->idle_since <= s->older_than) {
				s->range = b;
				s->chunk = c;
			}
		}
}

uint64_t ss_chunks_release(struct ss_memory *m, uint64_t target, uint64_t older_than, bool one)
{
	bool opened = !m->core->info[m->dev].access_prefix;
	uint64_t given = 0, size, reserved;

	while ((reserved = atomic_load(&m->reserved)) > target && !(one && given)) {
		struct search s = {.v = m->vmm,
				   .most = reserved - target,
				   .older_than = older_than,
				   .now = ss_now_ms(m->core)};
		struct ss_block *b;

		pthread_mutex_lock(&m->lock);
		find_old(m, &s);
		b = opened || !s.chunk ? detach(m, &s) : NULL;
		pthread_mutex_unlock(&m->lock);
		if (!opened && s.chunk && (opened = ss_chunks_open_to_all(m) == SS_OK))
			continue;
		if (!b || ss_chunk_unmap(m, b, s.chunk) != SS_OK)
			break;
		size = s.chunk->size;
		if (!ss_chunk_release(m, s.chunk))
			break;
		given += size;
	}
	return given;
}

bool ss_chunks_all_idle(struct ss_memory *m, uint64_t older_than)
{
	struct search s = {.v = m->vmm, .now = ss_now_ms(m->core)};
	bool idle;

	pthread_mutex_lock(&m->lock);
	find_old(m, &s);
	idle = m->completed.bytes == atomic_load(&m->reserved) && s.newest <= older_than;
	pthread_mutex_unlock(&m->lock);
	return idle;
}

uint64_t ss_chunks_idle_since(struct ss_memory *m)
{
	struct search s = {.v = m->vmm, .now = ss_now_ms(m->core)};

	find_old(m, &s);
	return s.oldest;
}
