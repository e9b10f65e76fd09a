/* SPDX-License-Identifier: MIT */
/*
 * Chrome's trace JSON: counters per device, the life of each block as an asynchronous slice, waits
 * as slices of their thread, failures as instants. Times are CLOCK_BOOTTIME as in rocprofv3's
 * traces, so that both can be opened together.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/convert/convert.h"

struct state {
	bool any; /* an event was written */
	uint32_t pid;
};

/* The start of an event, up to and without its name. */
static void begin(struct ss_convert *c, const char *phase, uint32_t tid, uint64_t ns)
{
	struct state *s = c->state;

	fprintf(c->out,
		"%s{\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"ts\":%" PRIu64
		".%03" PRIu64,
		s->any ? ",\n" : "", phase, s->pid, tid, ns / 1000, ns % 1000);
	s->any = true;
}

static void write_counter(struct ss_convert *c, int device, uint64_t ns)
{
	const struct ss_level *l = &c->memory.device[device];

	begin(c, "C", 0, ns);
	if (device == SS_NO_DEVICE)
		fputs(",\"name\":\"no device\"", c->out);
	else
		fprintf(c->out, ",\"name\":\"GPU%d\"", device);
	fprintf(c->out,
		",\"args\":{\"used\":%" PRIu64 ",\"reserved\":%" PRIu64
		",\"free_in_flight\":%" PRIu64 "}}",
		l->used, l->reserved, l->in_flight);
}

static void write_block(struct ss_convert *c, const char *phase, const struct ss_range *b,
			const struct ss_trace_item *e, const char *category)
{
	uint64_t stream = ss_convert_stream(c, b->stream, e->tid);

	begin(c, phase, e->tid, e->time_ns);
	/* A local id: processes whose traces are opened together have blocks at the same
	 * addresses. */
	fprintf(c->out,
		",\"cat\":\"%s\",\"id2\":{\"local\":\"0x%" PRIx64 "\"},\"name\":\"%" PRIu64
		" bytes\",\"args\":{\"asked\":%" PRIu64 ",\"stream\":\"0x%" PRIx64 "\"",
		category, b->base, b->size, b->asked, stream);
	if (phase[0] == 'b') {
		const struct ss_frame *f = ss_site_frame(&c->sites, &c->sites.site[b->site], 0);
		fprintf(c->out, ",\"pool\":%u,\"by\":", (unsigned)b->pool);
		ss_convert_json_text(c->out, f ? f->function : "");
	}
	fputs("}}", c->out);
}

static void changed(void *arg, enum ss_change change, const struct ss_range *b,
		    const struct ss_trace_item *e)
{
	struct ss_convert *c = arg;

	write_counter(c, b->device, e->time_ns);
	switch (change) {
	case SS_CHANGE_ALLOC: write_block(c, "b", b, e, "block"); break;
	case SS_CHANGE_FREE:
		write_block(c, "e", b, e, "block");
		if (b->freed)
			write_block(c, "b", b, e, "in flight");
		break;
	case SS_CHANGE_IN_FLIGHT: write_block(c, "b", b, e, "in flight"); break;
	case SS_CHANGE_REUSABLE:
		if (b->freed)
			write_block(c, "e", b, e, "in flight");
		break;
	default: break;
	}
}

/* Ranges of roctx: slices of the thread, or asynchronous ones. */
static void write_phase(struct ss_convert *c, const struct ss_trace_item *e)
{
	static const char *const kind[SS_TRACE_PHASE_STEPS] = {
		[SS_TRACE_PHASE_PUSH] = "B",  [SS_TRACE_PHASE_POP] = "E",
		[SS_TRACE_PHASE_START] = "b", [SS_TRACE_PHASE_STOP] = "e",
		[SS_TRACE_PHASE_MARK] = "i",
	};
	const char *name = ss_trace_reader_phase(c->reader, e->phase);

	if (e->flags >= SS_TRACE_PHASE_STEPS)
		return;
	begin(c, kind[e->flags], e->tid, e->time_ns);
	if (e->flags == SS_TRACE_PHASE_START || e->flags == SS_TRACE_PHASE_STOP)
		fprintf(c->out, ",\"cat\":\"roctx\",\"id\":\"0x%" PRIx64 "\"", e->range);
	if (e->flags == SS_TRACE_PHASE_MARK)
		fputs(",\"s\":\"t\"", c->out);
	fputs(",\"name\":", c->out);
	ss_convert_json_text(c->out, name ? name : "range");
	fputs("}", c->out);
}

static void other_event(struct ss_convert *c, const struct ss_trace_item *e)
{
	if (e->kind == SS_TRACE_PHASE)
		write_phase(c, e);
	if (!ss_convert_wants(c, e->device))
		return;
	if (e->kind == SS_TRACE_OOM || e->kind == SS_TRACE_LIMIT) {
		begin(c, "i", e->tid, e->time_ns);
		fprintf(c->out,
			",\"s\":\"p\",\"name\":\"%s\",\"args\":{\"asked\":%" PRIu64
			",\"%s\":%" PRIu64 "}}",
			e->kind == SS_TRACE_OOM ? "out of memory" : "limit", e->size,
			e->kind == SS_TRACE_OOM ? "free" : "limit", e->device_free);
	} else if (e->kind == SS_TRACE_WAIT) {
		uint64_t ns = e->duration_ns < e->time_ns ? e->duration_ns : e->time_ns;
		begin(c, "X", e->tid, e->time_ns - ns);
		fprintf(c->out, ",\"dur\":%" PRIu64 ".%03" PRIu64 ",\"name\":\"%s\"}", ns / 1000,
			ns % 1000, ss_wait_name(e->flags));
	}
}

static void write_names(struct ss_convert *c, const struct ss_trace_process_def *p)
{
	struct state *s = c->state;
	size_t count;
	const struct ss_trace_thread_def *t = ss_trace_reader_threads(c->reader, &count);
	char name[512], rank[32] = "";

	if (p->rank >= 0)
		snprintf(rank, sizeof(rank), " (rank %d)", p->rank);
	snprintf(name, sizeof(name), "%s%s", p->exe, rank);
	begin(c, "M", 0, 0);
	fputs(",\"name\":\"process_name\",\"args\":{\"name\":", c->out);
	ss_convert_json_text(c->out, name);
	fputs("}}", c->out);
	for (size_t i = 0; i < count; i++) {
		if (t[i].name[0]) {
			begin(c, "M", t[i].tid, 0);
			fputs(",\"name\":\"thread_name\",\"args\":{\"name\":", c->out);
			ss_convert_json_text(c->out, t[i].name);
			fputs("}}", c->out);
		}
	}
	s->any = true;
}

bool ss_convert_perfetto(struct ss_convert *c)
{
	const struct ss_trace_process_def *p = ss_trace_reader_process(c->reader);
	struct state state = {.pid = p->pid};

	c->state = &state;
	fputs("{\"traceEvents\":[\n", c->out);
	write_names(c, p);
	bool ok = ss_convert_walk(c, changed, other_event);
	fputs("\n]}\n", c->out);
	return ok;
}
