/* SPDX-License-Identifier: MIT */
/* Blocks, times and the header of a recording that the command makes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/snapshot/builder.h"

#define HEADER_BYTES 4096u

static void fail(struct ss_builder *b, int error)
{
	if (!b->failed) {
		b->failed = true;
		b->error = error ? error : ENOMEM;
	}
}

static void write_at(struct ss_builder *b, const void *data, size_t size, uint64_t offset)
{
	for (size_t done = 0; done < size && !b->failed;) {
		ssize_t n = pwrite(b->fd, (const char *)data + done, size - done,
				   (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			fail(b, n < 0 ? errno : ENOSPC);
		else
			done += (size_t)n;
	}
}

bool ss_builder_open(struct ss_builder *b)
{
	const char *dirs[] = {getenv("TMPDIR"), "/tmp", "/dev/shm"};
	char path[PATH_MAX];

	*b = (struct ss_builder){.fd = -1, .end = HEADER_BYTES};
	for (size_t i = 0; i < 3 && b->fd < 0; i++) {
		if (!dirs[i] || !*dirs[i] ||
		    snprintf(path, sizeof(path), "%s/somashim-snapshot.XXXXXX", dirs[i]) >=
			    (int)sizeof(path))
			continue;
		b->fd = mkostemp(path, O_CLOEXEC);
		if (b->fd >= 0)
			unlink(path);
	}
	return b->fd >= 0;
}

void *ss_builder_record(struct ss_builder_chain *c, enum ss_trace_kind kind, size_t size,
			uint64_t time_ns)
{
	time_ns = time_ns > c->last_ns ? time_ns : c->last_ns;
	if (c->data && c->used + size + sizeof(struct ss_trace_time) > SS_TRACE_BLOCK_SIZE) {
		ss_builder_end(c);
		c->last_ns = time_ns;
	}
	if (!c->data) {
		c->data = calloc(1, SS_TRACE_BLOCK_SIZE);
		if (!c->data) {
			fail(c->to, ENOMEM);
			return NULL;
		}
		*(struct ss_trace_block *)c->data = (struct ss_trace_block){
			.magic = SS_TRACE_BLOCK_MAGIC, .base_ns = time_ns};
		c->used = sizeof(struct ss_trace_block);
		c->base_ns = time_ns;
	}
	if (time_ns - c->base_ns > UINT32_MAX) {
		*(struct ss_trace_time *)(c->data + c->used) = (struct ss_trace_time){
			.r = {.kind = SS_TRACE_TIME, .words = sizeof(struct ss_trace_time) / 8},
			.base_ns = time_ns};
		c->used += sizeof(struct ss_trace_time);
		c->base_ns = time_ns;
	}
	struct ss_trace_record *r = (void *)(c->data + c->used);
	*r = (struct ss_trace_record){.kind = (uint8_t)kind,
				      .words = (uint8_t)(size / 8),
				      .dt = (uint32_t)(time_ns - c->base_ns)};
	c->used += (uint32_t)size;
	c->last_ns = time_ns;
	return r;
}

void ss_builder_end(struct ss_builder_chain *c)
{
	if (c->data) {
		write_at(c->to, c->data, SS_TRACE_BLOCK_SIZE, c->to->end);
		c->to->end += SS_TRACE_BLOCK_SIZE;
	}
	free(c->data);
	c->data = NULL;
	c->used = 0;
}

bool ss_builder_finish(struct ss_builder *b, enum ss_trace_state state, uint64_t begin_ns,
		       char path[64])
{
	struct ss_trace_header h = {.major = SS_TRACE_MAJOR,
				    .minor = SS_TRACE_MINOR,
				    .endian = SS_TRACE_ENDIAN,
				    .header_size = HEADER_BYTES,
				    .block_size = SS_TRACE_BLOCK_SIZE,
				    .page_size = 4096,
				    .state = state,
				    .boottime_ns = begin_ns,
				    .realtime_ns = begin_ns};

	memcpy(h.magic, SS_TRACE_MAGIC, sizeof(h.magic));
	write_at(b, &h, sizeof(h), 0);
	snprintf(path, 64, "/proc/self/fd/%d", b->fd);
	errno = b->error;
	return !b->failed;
}

void ss_builder_close(struct ss_builder *b)
{
	if (b->fd >= 0)
		close(b->fd);
	b->fd = -1;
}
