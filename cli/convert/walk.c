/* SPDX-License-Identifier: MIT */
/* The parts that the writers of all formats share, such as the walk through the events. */
#include "cli/convert/convert.h"
#include "cli/writers/json.h"
#include "trace/rmm.h"

bool ss_convert_wants(const struct ss_convert *c, int device)
{
	return c->config->device < 0 || c->config->device == device;
}

uint64_t ss_convert_stream(const struct ss_convert *c, uint32_t stream, uint32_t tid)
{
	const struct ss_trace_stream_def *s = stream ? ss_trace_reader_stream(c->reader, stream) :
						       NULL;

	return s && s->kind != SS_TRACE_STREAM_NULL ? ss_rmm_stream(s->handle, tid) : 0;
}

void ss_convert_json_text(FILE *out, const char *text)
{
	json_t *string = ss_json_text(text);

	if (!string || json_dumpf(string, out, JSON_ENCODE_ANY) != 0)
		fputs("\"?\"", out);
	json_decref(string);
}

static void watch_wanted(void *arg, enum ss_change change, const struct ss_range *b,
			 const struct ss_trace_item *e)
{
	struct ss_convert *c = arg;

	if (ss_convert_wants(c, b->device))
		c->watch(c, change, b, e);
}

bool ss_convert_walk(struct ss_convert *c, ss_trace_memory_watch *watch,
		     void (*before)(struct ss_convert *c, const struct ss_trace_item *e))
{
	uint64_t all = ss_trace_reader_events(c->reader), at = 0;
	struct ss_trace_item e;
	bool ok = true;

	c->watch = watch;
	if (!ss_trace_memory_init(&c->memory, c->reader, &c->sites, watch ? watch_wanted : NULL, c))
		return false;
	ss_window_finish(&c->window); /* of an earlier walk */
	ss_window_begin(&c->window, c->reader, &c->config->part);
	while (ok && !ferror(c->out) && ss_window_next(&c->window, &e)) {
		if (before)
			before(c, &e);
		ok = ss_trace_memory_apply(&c->memory, &e);
		if (c->config->progress && ++at % 65536 == 0)
			c->config->progress(c->config->arg, (double)at / (double)(all + 1));
	}
	ok = ok && !c->window.failed;
	ss_window_finish(&c->window);
	return ok;
}

bool ss_convert_devices(const char *path, uint64_t *devices, char *err, size_t err_size)
{
	struct ss_trace_reader *r = ss_trace_reader_open(path, err, err_size);
	struct ss_trace_item e;

	if (!r)
		return false;
	*devices = 0;
	while (ss_trace_reader_next(r, &e))
		if (e.kind == SS_TRACE_ALLOC && e.device >= 0 && e.device < 64)
			*devices |= 1ull << e.device;
	ss_trace_reader_close(r);
	return true;
}
