/* SPDX-License-Identifier: MIT */
/*
 * Reads Python pickles of protocol 2 to 5 as data. A pickle is a program for a stack machine,
 * and some of its instructions load and call Python code. Those are not implemented: a pickle
 * that has one is refused, and the message names the instruction.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/readers/pickle.h"

struct ss_pickle_doc {
	const unsigned char *p, *end;
	size_t size;
	struct ss_pickle *stack, *memo;
	size_t depth, stack_space, memo_count, memo_space;
	size_t *marks, mark_count, mark_space;
	struct ss_pickle_items *all;
	struct ss_pickle root;
	const char *wrong;
};

static const struct {
	unsigned char op;
	const char *name;
} refused[] = {
	{'c', "GLOBAL"},    {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},
	{'b', "BUILD"},     {'i', "INST"},          {'o', "OBJ"},
	{0x81, "NEWOBJ"},   {0x92, "NEWOBJ_EX"},    {0x82, "EXT1"},
	{0x83, "EXT2"},     {0x84, "EXT4"},         {'P', "PERSID"},
	{'Q', "BINPERSID"}, {0x97, "NEXT_BUFFER"},  {0x98, "READONLY_BUFFER"},
};

static bool grow(struct ss_pickle_doc *d, void *array, size_t *space, size_t need, size_t item)
{
	void **a = array;
	if (need <= *space)
		return true;
	size_t bigger = *space ? 2 * *space : need; /* most are filled at once */
	while (bigger < need)
		bigger *= 2;
	void *p = realloc(*a, bigger * item);
	if (!p) {
		d->wrong = "out of memory";
		return false;
	}
	*a = p;
	*space = bigger;
	return true;
}

static void push(struct ss_pickle_doc *d, struct ss_pickle v)
{
	if (grow(d, &d->stack, &d->stack_space, d->depth + 1, sizeof(v)))
		d->stack[d->depth++] = v;
}

/* The position of the uppermost `n` values on the stack. They must lie above the last mark, so no
 * mark is ever above the stack. */
static size_t top(struct ss_pickle_doc *d, size_t n)
{
	size_t floor = d->mark_count ? d->marks[d->mark_count - 1] : 0;

	if (d->depth - floor >= n)
		return d->depth - n;
	d->wrong = "the stack is empty";
	return d->depth;
}

static struct ss_pickle pop(struct ss_pickle_doc *d)
{
	size_t at = top(d, 1);

	if (d->wrong)
		return (struct ss_pickle){0};
	d->depth = at;
	return d->stack[at];
}

/* Removes the last mark and returns its position: the values above it begin there. */
static size_t pop_mark(struct ss_pickle_doc *d)
{
	if (!d->mark_count) {
		d->wrong = "a mark is missing";
		return d->depth;
	}
	return d->marks[--d->mark_count];
}

static struct ss_pickle container(struct ss_pickle_doc *d, enum ss_pickle_type type)
{
	struct ss_pickle v = {.type = type};
	v.items = calloc(1, sizeof(*v.items));
	if (!v.items) {
		d->wrong = "out of memory";
		return (struct ss_pickle){0};
	}
	v.items->next = d->all;
	d->all = v.items;
	return v;
}

/* Moves stack[from..] into the container that lies below them on the stack. */
static void extend(struct ss_pickle_doc *d, size_t from, enum ss_pickle_type type)
{
	size_t n = d->depth - from;

	if (d->wrong || from == 0 || d->stack[from - 1].type != type ||
	    (type == SS_PICKLE_DICT && n % 2)) {
		d->wrong = d->wrong ? d->wrong : "items for what is no container";
		return;
	}
	struct ss_pickle_items *to = d->stack[from - 1].items;
	if (n && grow(d, &to->v, &to->space, to->count + n, sizeof(*to->v))) {
		memcpy(to->v + to->count, d->stack + from, n * sizeof(*to->v));
		to->count += n;
		d->depth = from;
	}
}

/* Replaces stack[from..] by a container that holds them. */
static void collect(struct ss_pickle_doc *d, size_t from, enum ss_pickle_type type)
{
	if (d->wrong)
		return;
	struct ss_pickle v = container(d, type);
	push(d, v);
	if (d->wrong)
		return;
	memmove(d->stack + from + 1, d->stack + from, (d->depth - 1 - from) * sizeof(*d->stack));
	d->stack[from] = v;
	extend(d, from + 1, type);
}

static uint64_t number(struct ss_pickle_doc *d, size_t bytes)
{
	uint64_t n = 0;
	if ((size_t)(d->end - d->p) < bytes) {
		d->wrong = "cut off";
		return 0;
	}
	for (size_t i = 0; i < bytes; i++)
		n |= (uint64_t)d->p[i] << 8 * i;
	d->p += bytes;
	return n;
}

static void push_int(struct ss_pickle_doc *d, enum ss_pickle_type type, int64_t i)
{
	push(d, (struct ss_pickle){.type = type, .i = i});
}

static void push_string(struct ss_pickle_doc *d, uint64_t len)
{
	if (d->wrong || (uint64_t)(d->end - d->p) < len) {
		d->wrong = "cut off";
		return;
	}
	struct ss_pickle v = {.type = SS_PICKLE_STRING};
	v.s = (const char *)d->p;
	v.len = len;
	d->p += len;
	push(d, v);
}

/* An integer of any length, in two's complement and little-endian. */
static void push_long(struct ss_pickle_doc *d, uint64_t len)
{
	if (d->wrong || (uint64_t)(d->end - d->p) < len) {
		d->wrong = "cut off";
		return;
	}
	/* An address with the top bit set takes 9 bytes, of which the last is 0. */
	bool unsigned_64 = len == 9 && d->p[8] == 0;
	if (len > 8 && !unsigned_64) {
		d->p += len;
		push(d, (struct ss_pickle){.type = SS_PICKLE_NONE});
		return;
	}
	uint64_t n = number(d, len < 8 ? len : 8);
	d->p += unsigned_64;
	if (len && len < 8 && n >> (8 * len - 1) & 1)
		n |= ~0ull << 8 * len;
	push_int(d, SS_PICKLE_INT, (int64_t)n);
}

static void push_float(struct ss_pickle_doc *d)
{
	uint64_t bits = __builtin_bswap64(number(d, 8));
	struct ss_pickle v = {.type = SS_PICKLE_FLOAT};
	memcpy(&v.f, &bits, sizeof(v.f));
	push(d, v);
}

static void memo_put(struct ss_pickle_doc *d, uint64_t at)
{
	/* Memos are numbered from 0, so a number above the size of the file can only be meant
	 * to exhaust our memory. */
	if (d->wrong || d->depth == 0 || at >= d->size) {
		d->wrong = d->wrong ? d->wrong : "a memo out of range";
		return;
	}
	size_t need = (size_t)at + 1;
	if (!grow(d, &d->memo, &d->memo_space, need, sizeof(*d->memo)))
		return;
	for (; d->memo_count < need; d->memo_count++)
		d->memo[d->memo_count] = (struct ss_pickle){0};
	d->memo[at] = d->stack[d->depth - 1];
}

static void memo_get(struct ss_pickle_doc *d, uint64_t at)
{
	if (d->wrong || at >= d->memo_count) {
		d->wrong = d->wrong ? d->wrong : "a memo that was never set";
		return;
	}
	push(d, d->memo[at]);
}

static void set_mark(struct ss_pickle_doc *d)
{
	if (grow(d, &d->marks, &d->mark_space, d->mark_count + 1, sizeof(*d->marks)))
		d->marks[d->mark_count++] = d->depth;
}

/* Executes one instruction. True if it was the last. */
static bool step(struct ss_pickle_doc *d, unsigned char op)
{
	switch (op) {
	case 0x80: /* PROTO */
		if (number(d, 1) > 5)
			d->wrong = "a protocol later than 5";
		break;
	case 0x95: number(d, 8); break; /* FRAME: a hint for readers from a file */
	case '.': d->root = pop(d); return true;
	case '(': set_mark(d); break;
	case '0': pop(d); break;
	case '1': d->depth = pop_mark(d); break;
	case '2':
		push(d, pop(d));
		push(d, d->depth ? d->stack[d->depth - 1] : d->root);
		break;
	case 'N': push(d, (struct ss_pickle){.type = SS_PICKLE_NONE}); break;
	case 0x88: push_int(d, SS_PICKLE_BOOL, 1); break;
	case 0x89: push_int(d, SS_PICKLE_BOOL, 0); break;
	case 'J': push_int(d, SS_PICKLE_INT, (int32_t)number(d, 4)); break;
	case 'K': push_int(d, SS_PICKLE_INT, (int64_t)number(d, 1)); break;
	case 'M': push_int(d, SS_PICKLE_INT, (int64_t)number(d, 2)); break;
	case 0x8a: push_long(d, number(d, 1)); break;
	case 0x8b: push_long(d, number(d, 4)); break;
	case 'G': push_float(d); break;
	case 'U':
	case 'C':
	case 0x8c: push_string(d, number(d, 1)); break;
	case 'T':
	case 'B':
	case 'X': push_string(d, number(d, 4)); break;
	case 0x8d:
	case 0x8e:
	case 0x96: push_string(d, number(d, 8)); break;
	case ']':
	case ')':
	case 0x8f: push(d, container(d, SS_PICKLE_LIST)); break;
	case '}': push(d, container(d, SS_PICKLE_DICT)); break;
	case 'l':
	case 't':
	case 0x91: collect(d, pop_mark(d), SS_PICKLE_LIST); break;
	case 'd': collect(d, pop_mark(d), SS_PICKLE_DICT); break;
	case 0x85:
	case 0x86:
	case 0x87: collect(d, top(d, op - 0x84u), SS_PICKLE_LIST); break; /* TUPLE1 to TUPLE3 */
	case 'a': extend(d, top(d, 1), SS_PICKLE_LIST); break;
	case 'e':
	case 0x90: extend(d, pop_mark(d), SS_PICKLE_LIST); break;
	case 's': extend(d, top(d, 2), SS_PICKLE_DICT); break;
	case 'u': extend(d, pop_mark(d), SS_PICKLE_DICT); break;
	case 0x94: memo_put(d, d->memo_count); break;
	case 'q': memo_put(d, number(d, 1)); break;
	case 'r': memo_put(d, number(d, 4)); break;
	case 'h': memo_get(d, number(d, 1)); break;
	case 'j': memo_get(d, number(d, 4)); break;
	default:
		d->wrong = "an unknown instruction";
		for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
			if (refused[i].op == op)
				d->wrong = refused[i].name;
	}
	return false;
}

struct ss_pickle_doc *ss_pickle_load(const unsigned char *data, size_t size, char *err,
				     size_t err_size)
{
	struct ss_pickle_doc *d = calloc(1, sizeof(*d));
	bool done = false;

	if (!d) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	d->p = data;
	d->end = data + size;
	d->size = size;
	const unsigned char *at = data;
	while (!done && !d->wrong) {
		at = d->p;
		if (d->p == d->end) {
			d->wrong = "cut off";
			break;
		}
		done = step(d, *d->p++);
	}
	if (!d->wrong)
		return d;
	bool call = false;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		call |= d->wrong == refused[i].name;
	snprintf(err, err_size, "pickle, byte %zu: %s%s", (size_t)(at - data), d->wrong,
		 call ? " is refused: it would run code" : "");
	ss_pickle_free(d);
	return NULL;
}

void ss_pickle_free(struct ss_pickle_doc *d)
{
	if (!d)
		return;
	while (d->all) {
		struct ss_pickle_items *next = d->all->next;
		free(d->all->v);
		free(d->all);
		d->all = next;
	}
	free(d->stack);
	free(d->memo);
	free(d->marks);
	free(d);
}

const struct ss_pickle *ss_pickle_root(const struct ss_pickle_doc *doc)
{
	return &doc->root;
}

size_t ss_pickle_count(const struct ss_pickle *v)
{
	return v && v->type == SS_PICKLE_LIST ? v->items->count : 0;
}

const struct ss_pickle *ss_pickle_at(const struct ss_pickle *v, size_t i)
{
	return i < ss_pickle_count(v) ? &v->items->v[i] : NULL;
}

bool ss_pickle_first_time(const struct ss_pickle *v)
{
	if (!v || (v->type != SS_PICKLE_LIST && v->type != SS_PICKLE_DICT))
		return true;
	bool first = !v->items->seen;
	v->items->seen = true;
	return first;
}

bool ss_pickle_is(const struct ss_pickle *v, const char *text)
{
	return v && v->type == SS_PICKLE_STRING && v->len == strlen(text) &&
	       memcmp(v->s, text, v->len) == 0;
}

const struct ss_pickle *ss_pickle_get(const struct ss_pickle *v, const char *key)
{
	if (!v || v->type != SS_PICKLE_DICT)
		return NULL;
	for (size_t i = 0; i + 1 < v->items->count; i += 2)
		if (ss_pickle_is(&v->items->v[i], key))
			return &v->items->v[i + 1];
	return NULL;
}
