/* SPDX-License-Identifier: MIT */
/* RMM's CSV. The format has allocations and frees; events between them, such as REUSABLE, are
 * lost. */
#include "cli/convert/convert.h"
#include "cli/writers/rmm_csv.h"

static void row(struct ss_convert *c, const struct ss_trace_item *e, const char *action,
		uint64_t pointer, uint64_t size, uint32_t stream)
{
	ss_rmm_write_row(c->out, e->tid, e->real_ns / 1000, action, pointer, size,
			 ss_convert_stream(c, stream, e->tid));
}

static void changed(void *arg, enum ss_change change, const struct ss_range *b,
		    const struct ss_trace_item *e)
{
	struct ss_convert *c = arg;

	if (change == SS_CHANGE_ALLOC)
		row(c, e, "allocate", b->base, b->asked, b->stream);
	else if (change == SS_CHANGE_FREE)
		row(c, e, "free", b->base, b->asked, b->stream);
}

static void failed(struct ss_convert *c, const struct ss_trace_item *e)
{
	if ((e->kind == SS_TRACE_OOM || e->kind == SS_TRACE_LIMIT) &&
	    ss_convert_wants(c, e->device))
		row(c, e, "allocate failure", 0, e->size, e->stream);
}

bool ss_convert_rmm(struct ss_convert *c)
{
	ss_rmm_write_header(c->out);
	return ss_convert_walk(c, changed, failed);
}
