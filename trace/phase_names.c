/* SPDX-License-Identifier: MIT */
/* A hash table of the names of phases. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "trace/phase_names.h"

#define FEWEST_SLOTS 64u

/* A copy that ends with 0 and shows in one line. NULL: out of memory. */
static char *copy_of(const char *text, size_t length)
{
	char *name = malloc(length + 1);

	if (!name)
		return NULL;
	for (size_t i = 0; i < length; i++)
		name[i] = (unsigned char)text[i] < ' ' || text[i] == 127 ? '?' : text[i];
	name[length] = '\0';
	return name;
}

static uint64_t hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return h ^ h >> 29;
}

/* The slot that has the name, or the free one for it. */
static uint32_t *slot_of(const struct ss_phase_names *n, const char *name)
{
	uint64_t at = hash(name);

	while (n->table[at & (n->slots - 1)] &&
	       strcmp(n->name[n->table[at & (n->slots - 1)] - 1], name) != 0)
		at++;
	return &n->table[at & (n->slots - 1)];
}

/* Makes room for one more name. */
static bool grow(struct ss_phase_names *n)
{
	if (n->count == n->room) {
		uint32_t room = n->room ? 2 * n->room : FEWEST_SLOTS / 2;
		char **more = realloc(n->name, room * sizeof(*more));
		if (!more)
			return false;
		n->name = more;
		n->room = room;
	}
	if (2 * (n->count + 1) > n->slots) {
		uint32_t slots = n->slots ? 2 * n->slots : FEWEST_SLOTS;
		uint32_t *table = calloc(slots, sizeof(*table));
		if (!table)
			return false;
		free(n->table);
		n->table = table;
		n->slots = slots;
		for (uint32_t i = 0; i < n->count; i++)
			*slot_of(n, n->name[i]) = i + 1;
	}
	return true;
}

uint32_t ss_phase_names_find(struct ss_phase_names *n, const struct ss_trace_phase *r)
{
	size_t room = r->e.r.words * 8u - sizeof(*r);
	size_t length = r->length < room ? r->length : room;

	length = strnlen(r->text, length);
	char *name = length ? copy_of(r->text, length) : NULL;
	if (!name || !grow(n)) {
		free(name);
		return 0;
	}
	uint32_t *slot = slot_of(n, name);
	if (!*slot && n->count < SS_PHASE_NAMES_MAX) {
		n->name[n->count] = name;
		*slot = ++n->count;
		return *slot;
	}
	free(name);
	return *slot;
}

void ss_phase_names_finish(struct ss_phase_names *n)
{
	for (uint32_t i = 0; i < n->count; i++)
		free(n->name[i]);
	free(n->name);
	free(n->table);
	*n = (struct ss_phase_names){0};
}
