/* SPDX-License-Identifier: MIT */
/* Puts call sites together by function, file or module, and blocks by stream or thread. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/analysis/sites_tables.h"

/* Groups of hipStreamPerThread; with more its threads are not told apart */
#define PER_THREAD_MOST 100000u

const char *ss_by_name(enum ss_by by, bool many)
{
	static const char *const name[SS_BYS][2] = {
		[SS_BY_SITE] = {"call site", "call sites"},
		[SS_BY_FUNCTION] = {"function", "functions"},
		[SS_BY_FILE] = {"file", "files"},
		[SS_BY_MODULE] = {"module", "modules"},
		[SS_BY_STREAM] = {"stream", "streams"},
		[SS_BY_THREAD] = {"thread", "threads"},
	};

	return name[by][many];
}

/* ---- the frame that counts ---------------------------------------------- */

/* The search for the frame that counts in each call site; frames of wrappers do not count. */
struct walk {
	const struct ss_sites *calls;
	uint32_t *function; /* by frame: equal numbers are equal names */
	/* By call site: the position that counts, and the one that is tried */
	uint32_t *at, *tried;
	bool *seen; /* by frame */
};

static uint32_t function_at(const struct walk *w, const struct ss_site *site, uint32_t i)
{
	return w->function[site->frame[i]];
}

/* The function that more than half of the call sites have at the position that is tried. False:
 * there is none. */
static bool most_have(const struct walk *w, uint32_t *function)
{
	size_t votes = 0, count = 0, all = 0;

	for (size_t i = 0; i < w->calls->count; i++) {
		const struct ss_site *site = &w->calls->site[i];
		if (site->allocates && site->frames) {
			uint32_t f = function_at(w, site, w->tried[i]);
			*function = votes ? *function : f;
			votes += f == *function ? 1 : (size_t)-1;
			all++;
		}
	}
	for (size_t i = 0; i < w->calls->count; i++) {
		const struct ss_site *site = &w->calls->site[i];
		count += site->allocates && site->frames &&
			 function_at(w, site, w->tried[i]) == *function;
	}
	return count * 2 > all;
}

/* Moves the tried position of the call sites at `function` on to the callers. Returns whether more
 * lines call the function than it has itself, so that it is a wrapper. *moved: number of call sites
 * that have a caller. */
static bool pass_over(struct walk *w, uint32_t function, size_t *moved)
{
	size_t lines = 0, callers = 0;

	*moved = 0;
	for (int part = 0; part < 2; part++) { /* own lines, then those of the callers */
		memset(w->seen, 0, w->calls->frame_count);
		for (size_t i = 0; i < w->calls->count; i++) {
			const struct ss_site *site = &w->calls->site[i];
			uint32_t next = w->tried[i];
			if (!site->allocates || !site->frames ||
			    function_at(w, site, next) != function)
				continue;
			while (part && next < site->frames &&
			       function_at(w, site, next) == function)
				next++;
			if (next == site->frames)
				continue;
			*(part ? &callers : &lines) += !w->seen[site->frame[next]];
			w->seen[site->frame[next]] = true;
			*moved += part;
			w->tried[i] = next;
		}
	}
	return callers > lines;
}

static bool number_functions(struct walk *w)
{
	const struct ss_sites *calls = w->calls;
	struct ss_sites_entry *table = NULL;
	size_t count = 0, i;

	for (i = 0; i < calls->frame_count; i++) {
		const char *name = calls->frame[i].function;
		struct ss_sites_entry *e = ss_sites_intern(&table, name, strlen(name), count);
		if (!e)
			break;
		count += e->index == count;
		w->function[i] = e->index;
	}
	ss_sites_free_entries(&table);
	return i == calls->frame_count;
}

/* By call site, the position of the frame that counts: the innermost one that is not in a wrapper.
 * Most call sites go through a wrapper. The caller frees it. NULL: out of memory. */
static uint32_t *frames_that_count(const struct ss_sites *calls)
{
	struct walk w = {.calls = calls,
			 .function = calloc(calls->frame_count + 1, sizeof(*w.function)),
			 .at = calloc(calls->count + 1, sizeof(*w.at)),
			 .tried = calloc(calls->count + 1, sizeof(*w.tried)),
			 .seen = calloc(calls->frame_count + 1, sizeof(*w.seen))};
	uint32_t function = 0;
	size_t moved = 1;

	if (!w.function || !w.at || !w.tried || !w.seen || !number_functions(&w)) {
		free(w.at);
		w.at = NULL;
	}
	while (w.at && moved && most_have(&w, &function))
		if (pass_over(&w, function, &moved))
			memcpy(w.at, w.tried, calls->count * sizeof(*w.at));
	free(w.function);
	free(w.tried);
	free(w.seen);
	return w.at;
}

/* ---- groups ------------------------------------------------------------- */

/* The group of that name, which becomes the name of its only frame. UINT32_MAX: out of memory. */
static uint32_t group_of(struct ss_sites *g, const char *name)
{
	struct ss_sites_entry *e = ss_sites_intern(&g->tables->sites, name, strlen(name) + 1,
						   g->count);

	if (!e || (e->index == g->count &&
		   (!ss_sites_grow((void **)&g->site, g->count, sizeof(*g->site)) ||
		    !ss_sites_grow((void **)&g->frame, g->count, sizeof(*g->frame)))))
		return UINT32_MAX;
	if (e->index == g->count) {
		g->site[g->count] = (struct ss_site){.frames = 1};
		g->frame[g->count++] = (struct ss_frame){
			.function = e->key, .source = "", .module = ""};
		g->frame_count = g->count;
	}
	return e->index;
}

static const char *name_of_frame(enum ss_by by, const struct ss_frame *f, char *room, size_t size)
{
	const char *slash = strrchr(f->module, '/');

	if (by == SS_BY_FUNCTION)
		return f->function;
	if (by == SS_BY_MODULE)
		return f->module[0] ? f->module : "(module not known)";
	if (f->source[0] || !f->module[0])
		return f->source[0] ? f->source : "(file not known)";
	snprintf(room, size, "(file not known, in %s)", slash ? slash + 1 : f->module);
	return room;
}

static bool group_sites(struct ss_sites *g, const struct ss_sites *calls)
{
	uint32_t *at = frames_that_count(calls);
	char room[512];

	g->of_site = calloc(calls->count + 1, sizeof(*g->of_site));
	for (size_t i = 0; at && g->of_site && i < calls->count; i++) {
		const struct ss_frame *f = ss_site_frame(calls, &calls->site[i], at[i]);
		uint32_t group = f ? group_of(g, name_of_frame(g->by, f, room, sizeof(room))) : 0;
		if (group == UINT32_MAX) {
			free(at);
			return false;
		}
		g->of_site[i] = group;
	}
	free(at);
	return at && g->of_site;
}

/* ---- streams and threads ------------------------------------------------ */

static bool add_key(struct ss_sites *g, uint64_t key, const char *name)
{
	uint32_t group = group_of(g, name);
	void *more = group != UINT32_MAX ? ss_grow(g->key, g->keys, sizeof(*g->key)) : NULL;

	if (more) {
		g->key = more;
		g->key[g->keys++] = (struct ss_sites_key){key, group};
	}
	return more != NULL;
}

static uint64_t stream_key(uint32_t stream, uint32_t tid)
{
	return (uint64_t)stream << 32 | tid;
}

static void name_thread(const struct ss_trace_thread_def *t, char *out, size_t size)
{
	snprintf(out, size, "thread %" PRIu32 "%s%s%s", t->tid, t->name[0] ? " (" : "", t->name,
		 t->name[0] ? ")" : "");
}

/* Each thread has its own stream behind the one handle. */
static bool is_per_thread(const struct ss_trace_stream_def *s)
{
	return s->kind == SS_TRACE_STREAM_THREAD || s->handle == 2;
}

static bool add_stream(struct ss_sites *g, const struct ss_trace_reader *r,
		       const struct ss_trace_stream_def *s, bool per_thread)
{
	size_t threads;
	const struct ss_trace_thread_def *t = ss_trace_reader_threads(r, &threads);
	char name[128], gpu[32] = "", thread[64];

	if (s->device >= 0)
		snprintf(gpu, sizeof(gpu), ", GPU %d", s->device);
	if (!is_per_thread(s) || !per_thread) {
		if (s->kind == SS_TRACE_STREAM_NULL || is_per_thread(s)) {
			snprintf(name, sizeof(name), "%s%s",
				 s->kind == SS_TRACE_STREAM_NULL ? "null stream" :
								   "hipStreamPerThread",
				 gpu);
		} else {
			snprintf(name, sizeof(name), "stream 0x%" PRIx64 "%s", s->handle, gpu);
		}
		return add_key(g, stream_key(s->id, 0), name);
	}
	for (size_t i = 0; i < threads; i++) {
		name_thread(&t[i], thread, sizeof(thread));
		snprintf(name, sizeof(name), "hipStreamPerThread of %s%s", thread, gpu);
		if (!add_key(g, stream_key(s->id, t[i].tid), name))
			return false;
	}
	return true;
}

static int by_key(const void *a, const void *b)
{
	const struct ss_sites_key *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static bool group_events(struct ss_sites *g, const struct ss_trace_reader *r)
{
	size_t threads, streams, per_thread = 0;
	const struct ss_trace_thread_def *t = ss_trace_reader_threads(r, &threads);
	const struct ss_trace_stream_def *s = ss_trace_reader_streams(r, &streams);
	char name[64];
	bool ok = true;

	for (size_t i = 0; ok && g->by == SS_BY_THREAD && i < threads; i++) {
		name_thread(&t[i], name, sizeof(name));
		ok = add_key(g, t[i].tid, name);
	}
	for (size_t i = 0; ok && g->by == SS_BY_STREAM && i < streams; i++) {
		per_thread += is_per_thread(&s[i]) ? threads : 0;
		ok = add_stream(g, r, &s[i], per_thread <= PER_THREAD_MOST);
	}
	if (g->keys)
		qsort(g->key, g->keys, sizeof(*g->key), by_key);
	return ok;
}

static const struct ss_sites_key *find(const struct ss_sites *g, uint64_t key)
{
	const struct ss_sites_key wanted = {.key = key};

	return g->keys ? bsearch(&wanted, g->key, g->keys, sizeof(wanted), by_key) : NULL;
}

uint32_t ss_sites_group(const struct ss_sites *g, uint32_t call, uint32_t stream, uint32_t tid)
{
	const struct ss_sites_key *key;

	switch (g->by) {
	case SS_BY_SITE: return call;
	case SS_BY_STREAM:
		key = find(g, stream_key(stream, 0));
		key = key ? key : find(g, stream_key(stream, tid));
		break;
	case SS_BY_THREAD: key = find(g, tid); break;
	default: return g->of_site[call];
	}
	return key ? key->site : 0;
}

bool ss_sites_put_together(struct ss_sites *g, const struct ss_sites *calls,
			   const struct ss_trace_reader *r, enum ss_by by)
{
	static const char *const unknown[SS_BYS] = {
		[SS_BY_FUNCTION] = "(call stack not known)",
		[SS_BY_FILE] = "(call stack not known)",
		[SS_BY_MODULE] = "(call stack not known)",
		[SS_BY_STREAM] = "(no stream)",
		[SS_BY_THREAD] = "(thread not known)",
	};

	*g = (struct ss_sites){.by = by, .calls = calls, .tables = calloc(1, sizeof(*g->tables))};
	bool ok = g->tables && group_of(g, unknown[by]) == 0 &&
		  (by == SS_BY_STREAM || by == SS_BY_THREAD ? group_events(g, r) :
							      group_sites(g, calls));
	g->stack = ok ? calloc(g->count, sizeof(*g->stack)) : NULL;
	if (!g->stack) {
		ss_sites_finish(g);
		return false;
	}
	for (size_t i = 0; i < g->count; i++) {
		g->stack[i] = (uint32_t)i;
		g->site[i].frame = &g->stack[i];
	}
	return true;
}
