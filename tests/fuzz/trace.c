/* SPDX-License-Identifier: MIT */
/* Trace files as hostile input: whatever the bytes are, the reader comes to an end. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	char path[64], err[512];
	struct ss_trace_item e;
	uint64_t events = 0, last = 0;
	size_t count;

	if (fd < 0)
		fd = memfd_create("trace", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	struct ss_trace_reader *r = ss_trace_reader_open(path, err, sizeof(err));
	if (!r)
		return 0;
	while (ss_trace_reader_next(r, &e)) {
		const struct ss_trace_stack_def *s = ss_trace_reader_stack(r, e.stack);
		for (uint32_t i = 0; s && i < s->frames; i++) {
			ss_trace_reader_module_at(r, s->ip[i], e.time_ns);
			const struct ss_trace_python_def *f = ss_trace_reader_python(
				r, (uint32_t)(s->ip[i] >> 32));
			count = f ? strlen(f->name) + strlen(f->file) : 0;
		}
		if (e.real_ns < last)
			abort();
		last = e.real_ns;
		events++;
	}
	if (events != ss_trace_reader_events(r))
		abort();
	const struct ss_trace_process_def *p = ss_trace_reader_process(r);
	for (size_t i = 0; i < p->arg_count; i++)
		count = strlen(p->args[i]);
	ss_trace_reader_problem(r, &count);
	ss_trace_reader_close(r);
	return 0;
}
