/* SPDX-License-Identifier: MIT */
/* Reads an allocation log of any known format: opens it, and picks the reader. */
#include <stdio.h>

#include "cli/readers/events.h"
#include "cli/readers/input.h"
#include "cli/readers/rmm_csv.h"
#include "cli/readers/torch_snapshot.h"
#include "trace/rmm.h"

#define PICKLE_PROTOCOL 0x80 /* the first byte of a pickle of protocol 2 or later */
#define LEGACY 1             /* hipStreamLegacy, another name of the null stream */

static bool read_rmm(struct ss_events *ev, struct ss_input *in, char *err, size_t err_size)
{
	struct ss_rmm_entry e = {0};
	struct ss_rmm_reader *reader = ss_rmm_open(in, err, err_size);
	int st = -1;

	while (reader && (st = ss_rmm_next(reader, &e, err, err_size)) == 1) {
		uint64_t stream = e.stream == LEGACY ? 0 : ss_rmm_stream(e.stream, e.thread);

		ev->failures += e.is_failure;
		ev->at = (uint32_t)e.line;
		if (e.is_failure)
			continue;
		const char *wrong = e.is_free ? ss_events_free(ev, e.pointer, e.size, stream,
							       e.time_us) :
						ss_events_alloc(ev, e.pointer, e.size, stream,
								e.time_us);
		if (wrong) {
			snprintf(err, err_size, "line %llu: %s", e.line, wrong);
			st = -1;
			break;
		}
	}
	ss_rmm_close(reader);
	ev->cut = st == 0 && e.cut ? e.line : 0;
	return st == 0;
}

static bool read_any(struct ss_events *ev, struct ss_input *in, int device, char *err,
		     size_t err_size)
{
	if (in->first == '(' || in->first == '}') {
		snprintf(err, err_size,
			 "a pickle of protocol 0 or 1: write it with protocol 2 or "
			 "later");
		return false;
	}
	if (in->first == '{' || in->first == '[') {
		snprintf(err, err_size,
			 "JSON: a snapshot is read as the pickle that PyTorch writes, and of a "
			 "recording `somashim convert --to rmm' makes a log");
		return false;
	}
	if (in->first != PICKLE_PROTOCOL && device > 0) {
		snprintf(err, err_size, "--device is for memory snapshots; a CSV is of one device");
		return false;
	}
	if (in->first != PICKLE_PROTOCOL)
		return read_rmm(ev, in, err, err_size);
	if (!ss_snapshot_read(ev, in->file, device, err, err_size))
		return false;
	if (!ss_input_complete(in)) {
		snprintf(err, err_size, "%s failed", in->tool);
		return false;
	}
	return true;
}

bool ss_events_read(struct ss_events *ev, const char *path, int device, char *err, size_t err_size)
{
	struct ss_input in;

	if (!ss_input_open(&in, path, err, err_size))
		return false;
	if (!ss_events_begin(ev)) {
		snprintf(err, err_size, "out of memory");
		ss_input_close(&in);
		return false;
	}
	bool ok = read_any(ev, &in, device, err, err_size);
	ss_input_close(&in);
	if (!ss_events_end(ev) && ok) {
		snprintf(err, err_size, "out of memory");
		ok = false;
	}
	if (ok && ev->count == 0) {
		snprintf(err, err_size, "no allocation in it");
		ok = false;
	}
	if (!ok)
		ss_events_finish(ev);
	return ok;
}
