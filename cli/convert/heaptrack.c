/* SPDX-License-Identifier: MIT */
/*
 * heaptrack's raw format, version 3: heaptrack_interpret finds the names of the addresses. Numbers
 * are hexadecimal. The format knows one heap, so one device is written. Its resident memory stands
 * for reserved memory.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1

#include "cli/convert/convert.h"
#include "core/base/hash_or_end.h"

/* A frame below its callers. */
struct node {
	UT_hash_handle hh;
	struct {
		uint64_t ip, parent;
	} key;
	uint64_t index;
};

struct state {
	struct node *nodes;
	uint64_t count;          /* of nodes */
	uint64_t first_ns, ms;   /* start, and the clock that was written last */
	uint64_t next_module_ns; /* when modules change */
	uint64_t reserved;       /* that was written last */
	uint64_t page;           /* bytes */
	bool failed, begun;
};

/* All modules of the moment; the program itself is first. */
static void write_modules(struct ss_convert *c, uint64_t now_ns)
{
	struct state *s = c->state;
	size_t count;
	const struct ss_trace_module_def *m = ss_trace_reader_modules(c->reader, &count);
	const char *exe = ss_trace_reader_process(c->reader)->exe;

	fputs("m 1 -\n", c->out);
	s->next_module_ns = UINT64_MAX;
	for (int programs = 1; programs >= 0; programs--) {
		for (size_t i = 0; i < count; i++) {
			uint64_t change = m[i].loaded_ns > now_ns ? m[i].loaded_ns :
					  m[i].gone_ns > now_ns   ? m[i].gone_ns :
								    UINT64_MAX;
			const char *path = m[i].program ? "x" : m[i].path;
			s->next_module_ns = change < s->next_module_ns ? change : s->next_module_ns;
			if (m[i].program != programs || m[i].loaded_ns > now_ns ||
			    m[i].gone_ns <= now_ns || strchr(path, '\n') || (programs && !exe[0]))
				continue;
			fprintf(c->out, "m %zx %s %" PRIx64, strlen(path), path, m[i].bias);
			for (uint32_t k = 0; k < m[i].segments; k++) {
				fprintf(c->out, " %" PRIx64 " %" PRIx64, m[i].segment[k][0],
					m[i].segment[k][1]);
			}
			fputc('\n', c->out);
		}
	}
}

/* Index of the node; it is written if it is new. */
static uint64_t node_of(struct ss_convert *c, uint64_t ip, uint64_t parent)
{
	struct state *s = c->state;
	struct node *n, find = {.key = {ip, parent}};

	HASH_FIND(hh, s->nodes, &find.key, sizeof(find.key), n);
	if (n)
		return n->index;
	n = calloc(1, sizeof(*n));
	if (!n) {
		s->failed = true;
		return 0;
	}
	n->key = find.key;
	n->index = ++s->count;
	HASH_ADD(hh, s->nodes, key, sizeof(n->key), n);
	if (!n->hh.tbl) {
		free(n);
		s->failed = true;
		return 0;
	}
	fprintf(c->out, "t %" PRIx64 " %" PRIx64 "\n", ip, parent);
	return n->index;
}

static uint64_t stack_node(struct ss_convert *c, uint32_t stack)
{
	const struct ss_trace_stack_def *def = stack ? ss_trace_reader_stack(c->reader, stack) :
						       NULL;
	uint64_t node = 0;

	for (uint32_t i = def ? def->frames : 0; i-- > 0;)
		node = node_of(c, def->ip[i], node);
	return node;
}

static void write_reserved(struct ss_convert *c)
{
	struct state *s = c->state;
	uint64_t reserved = 0;

	for (int i = 0; i < SS_DEVICES; i++)
		reserved += ss_convert_wants(c, i) ? c->memory.device[i].reserved : 0;
	if (reserved != s->reserved) {
		s->reserved = reserved;
		fprintf(c->out, "R %" PRIx64 "\n", reserved / s->page);
	}
}

static void before(struct ss_convert *c, const struct ss_trace_item *e)
{
	struct state *s = c->state;

	if (!s->begun) {
		s->begun = true;
		s->first_ns = e->time_ns;
	}
	if (e->time_ns >= s->next_module_ns)
		write_modules(c, e->time_ns);
	uint64_t ms = e->time_ns > s->first_ns ? (e->time_ns - s->first_ns) / 1000000 : 0;
	if (ms > s->ms) {
		s->ms = ms;
		fprintf(c->out, "c %" PRIx64 "\n", ms);
	}
}

static void changed(void *arg, enum ss_change change, const struct ss_range *b,
		    const struct ss_trace_item *e)
{
	struct ss_convert *c = arg;

	if (change == SS_CHANGE_ALLOC) {
		uint64_t node = stack_node(c, e->stack);
		fprintf(c->out, "+ %" PRIx64 " %" PRIx64 " %" PRIx64 "\n", b->size, node, b->base);
	} else if (change == SS_CHANGE_FREE) {
		fprintf(c->out, "- %" PRIx64 "\n", b->base);
	} else if (change == SS_CHANGE_MAP || change == SS_CHANGE_UNMAP) {
		write_reserved(c);
	}
}

/* The command on one line. */
static void write_command(FILE *out, const struct ss_trace_process_def *p)
{
	fputs("X", out);
	for (size_t i = 0; i < p->arg_count; i++)
		fprintf(out, " %s", p->args[i]);
	fputs(p->arg_count ? "\n" : " unknown\n", out);
}

bool ss_convert_heaptrack(struct ss_convert *c)
{
	const struct ss_trace_process_def *p = ss_trace_reader_process(c->reader);
	struct state state = {.page = p->page_size ? p->page_size : 4096};
	uint64_t total = 0;
	struct node *n, *next;
	size_t count;

	const struct ss_trace_device_def *d = ss_trace_reader_devices(c->reader, &count);
	for (size_t i = 0; i < count; i++)
		total += ss_convert_wants(c, d[i].device) ? d[i].total : 0;
	c->state = &state;
	fprintf(c->out, "v 10400 3\nx %zx %s\n", strlen(p->exe), p->exe);
	write_command(c->out, p);
	fprintf(c->out, "I %" PRIx64 " %" PRIx64 "\n", state.page, total / state.page);
	bool ok = ss_convert_walk(c, changed, before) && !state.failed;
	HASH_ITER(hh, state.nodes, n, next) {
		HASH_DEL(state.nodes, n);
		free(n);
	}
	return ok;
}
