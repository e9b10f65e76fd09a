/* SPDX-License-Identifier: MIT */
/*
 * PyTorch's memory snapshot as JSON. Its viewer starts from the segments at the end and undoes the
 * events, so each block must lie in a segment that is there at that time, and each free must be
 * requested before it is completed. The viewer merges neighbours of one stream when it sees
 * segment_map, so chunks carry the number of their pool as a stream, and segments 0.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/convert/convert.h"
#include "cli/writers/json.h"

struct state {
	int device; /* whose events are written */
	bool any, failed;
	char **frames;         /* by site: JSON, or NULL if it was not needed yet */
	struct ss_ranges made; /* segments that are not in the trace, each for one block */
};

static const char *frames_of(struct ss_convert *c, uint32_t index)
{
	struct state *s = c->state;
	const struct ss_site *site = &c->sites.site[index];
	const struct ss_frame *f;

	if (!s->frames[index]) {
		json_t *list = json_array();
		for (uint32_t i = 0; (f = ss_site_frame(&c->sites, site, i)); i++) {
			json_array_append_new(
				list, json_pack("{s:o, s:o, s:i}", "name",
						ss_json_text(f->function), "filename",
						ss_json_text(f->source[0] ? f->source : f->module),
						"line", f->line));
		}
		s->frames[index] = json_dumps(list, JSON_COMPACT);
		json_decref(list);
	}
	return s->frames[index] ? s->frames[index] : "[]";
}

static void write_entry(struct ss_convert *c, const struct ss_trace_item *e, const char *action,
			uint64_t address, uint64_t size, uint64_t stream)
{
	struct state *s = c->state;

	fprintf(c->out,
		"%s{\"action\":\"%s\",\"%s\":%" PRIu64 ",\"size\":%" PRIu64 ",\"stream\":%" PRIu64
		",\"time_us\":%" PRIu64 ",\"frames\":%s}",
		s->any ? ",\n" : "", action, strcmp(action, "oom") == 0 ? "device_free" : "addr",
		address, size, stream, e->real_ns / 1000, frames_of(c, ss_sites_of(&c->sites, e)));
	s->any = true;
}

/* A block whose memory was mapped before the recording, or by somebody else, gets a segment. */
static void make_segment(struct ss_convert *c, const struct ss_range *b,
			 const struct ss_trace_item *e)
{
	struct state *s = c->state;
	const struct ss_range *at = ss_ranges_from(&c->memory.mapped, b->base);

	if (!at || at->base > b->base) {
		s->failed |= !ss_ranges_add(&s->made, b);
		write_entry(c, e, "segment_alloc", b->base, b->size, 0);
	}
}

static void end_segment(struct ss_convert *c, const struct ss_range *b,
			const struct ss_trace_item *e)
{
	struct state *s = c->state;
	struct ss_range made;

	if (ss_ranges_remove(&s->made, b->base, &made))
		write_entry(c, e, "segment_free", made.base, made.size, 0);
}

static uint64_t segment_stream(const struct ss_range *r)
{
	return r->chunk ? r->pool + 1u : 0;
}

static void changed(void *arg, enum ss_change change, const struct ss_range *b,
		    const struct ss_trace_item *e)
{
	struct ss_convert *c = arg;
	uint64_t stream = ss_convert_stream(c, b->stream, e->tid);

	if (b->device != ((struct state *)c->state)->device)
		return;
	switch (change) {
	case SS_CHANGE_ALLOC:
		make_segment(c, b, e);
		write_entry(c, e, "alloc", b->base, b->size, stream);
		break;
	case SS_CHANGE_IN_FLIGHT: /* the viewer needs to see it come */
		make_segment(c, b, e);
		write_entry(c, e, "alloc", b->base, b->size, stream);
		write_entry(c, e, "free_requested", b->base, b->size, stream);
		break;
	case SS_CHANGE_FREE: write_entry(c, e, "free_requested", b->base, b->size, stream); break;
	case SS_CHANGE_REUSABLE:
		write_entry(c, e, "free_completed", b->base, b->size, stream);
		end_segment(c, b, e);
		break;
	case SS_CHANGE_MAP:
		write_entry(c, e, b->chunk ? "segment_map" : "segment_alloc", b->base, b->size,
			    segment_stream(b));
		break;
	case SS_CHANGE_UNMAP:
		write_entry(c, e, b->chunk ? "segment_unmap" : "segment_free", b->base, b->size,
			    segment_stream(b));
		break;
	}
}

static void failed(struct ss_convert *c, const struct ss_trace_item *e)
{
	if (e->kind == SS_TRACE_OOM &&
	    ss_trace_memory_device(&c->memory, e) == ((struct state *)c->state)->device) {
		write_entry(c, e, "oom", e->device_free, e->size,
			    ss_convert_stream(c, e->stream, e->tid));
	}
}

/* ---- the end ------------------------------------------------------------ */

static void write_block(struct ss_convert *c, bool *any, uint64_t base, uint64_t size,
			const struct ss_range *b)
{
	const char *state = !b || b->part ? "inactive" :
			    b->freed      ? "active_pending_free" :
					    "active_allocated";

	if (size) {
		fprintf(c->out,
			"%s{\"address\":%" PRIu64 ",\"size\":%" PRIu64
			",\"requested_size\":%" PRIu64 ",\"state\":\"%s\",\"frames\":%s}",
			*any ? ",\n" : "", base, size, b && !b->part ? b->asked : 0, state,
			b ? frames_of(c, b->site) : "[]");
		*any = true;
	}
}

static void write_segment(struct ss_convert *c, bool *any, const struct ss_range *run)
{
	const struct ss_trace_pool_def *pool = ss_trace_reader_pool(c->reader, run->pool);
	uint64_t at = run->base, end = run->base + run->size;
	const struct ss_range *b;
	bool any_block = false;

	fprintf(c->out,
		"%s{\"device\":%u,\"address\":%" PRIu64 ",\"total_size\":%" PRIu64
		",\"stream\":%" PRIu64 ",\"segment_type\":\"large\",\"segment_pool_id\":[%u,0],"
		"\"is_expandable\":%s,\"frames\":[],\"blocks\":[\n",
		*any ? ",\n" : "", (unsigned)run->device, run->base, run->size, segment_stream(run),
		pool && strcmp(pool->name, "default") == 0 ? 0 : (unsigned)run->pool,
		run->chunk ? "true" : "false");
	while ((b = ss_ranges_from(&c->memory.blocks, at)) && b->base < end) {
		uint64_t from = b->base > at ? b->base : at;
		uint64_t to = b->base + b->size < end ? b->base + b->size : end;
		write_block(c, &any_block, at, from - at, NULL);
		write_block(c, &any_block, from, to - from, b);
		at = to;
		if (at == end)
			break;
	}
	write_block(c, &any_block, at, end - at, NULL);
	fputs("]}", c->out);
	*any = true;
}

static void write_segments(struct ss_convert *c)
{
	const struct ss_range *at;
	bool any = false;

	for (uint64_t from = 0; (at = ss_ranges_from(&c->memory.mapped, from));) {
		struct ss_range run = *at;
		from = run.base + run.size;
		while (run.chunk && (at = ss_ranges_from(&c->memory.mapped, from)) && at->chunk &&
		       at->base == from && at->pool == run.pool && at->device == run.device)
			from += at->size;
		run.size = from - run.base;
		if (run.device != SS_NO_DEVICE && ss_convert_wants(c, run.device))
			write_segment(c, &any, &run);
	}
	for (uint64_t from = 0; (at = ss_ranges_from(&((struct state *)c->state)->made, from));
	     from = at->base + at->size)
		write_segment(c, &any, at);
}

bool ss_convert_memory_viz(struct ss_convert *c)
{
	struct state s = {0};
	uint64_t devices;
	bool ok = true;
	char err[256];

	c->state = &s;
	s.frames = calloc(c->sites.count, sizeof(*s.frames));
	if (!s.frames || !ss_convert_devices(c->config->path, &devices, err, sizeof(err))) {
		free(s.frames);
		return false;
	}
	fputs("{\"device_traces\":[", c->out);
	for (s.device = 0; ok && (s.device == 0 || (s.device < 64 && devices >> s.device));
	     s.device++) {
		fputs(s.device ? ",[\n" : "[\n", c->out);
		s.any = false;
		bool wanted = ss_convert_wants(c, s.device);
		if (s.device == 0 || ((devices >> s.device & 1) && wanted)) {
			ss_trace_memory_finish(&c->memory);
			ss_trace_reader_rewind(c->reader);
			ok = ss_convert_walk(c, wanted ? changed : NULL, wanted ? failed : NULL) &&
			     !s.failed;
		}
		fputs("]", c->out);
	}
	fputs("],\n\"segments\":[", c->out);
	if (ok)
		write_segments(c);
	fputs("],\n\"allocator_settings\":{}}\n", c->out);
	for (size_t i = 0; i < c->sites.count; i++)
		free(s.frames[i]);
	free(s.frames);
	ss_ranges_finish(&s.made);
	return ok;
}
