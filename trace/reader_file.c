/* SPDX-License-Identifier: MIT */
/* Opens one trace file, checks it, and finds its blocks. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/reader_file.h"
#include "trace/steady.h"

#define HEADER_MOST (1u << 20) /* bytes; a larger header is rejected */
#define BLOCK_LEAST 4096u
#define BLOCK_MOST (1u << 20)

/* The least length of each kind of record, in bytes; 0: an unknown kind. */
static const uint8_t least[256] = {
	[SS_TRACE_TIME] = sizeof(struct ss_trace_time),
	[SS_TRACE_THREAD] = sizeof(struct ss_trace_thread),
	[SS_TRACE_INFO] = sizeof(struct ss_trace_info),
	[SS_TRACE_MODULE] = sizeof(struct ss_trace_module),
	[SS_TRACE_MODULE_GONE] = sizeof(struct ss_trace_module_gone),
	[SS_TRACE_STACK] = sizeof(struct ss_trace_stack),
	[SS_TRACE_STREAM] = sizeof(struct ss_trace_stream),
	[SS_TRACE_DEVICE] = sizeof(struct ss_trace_device),
	[SS_TRACE_POOL] = sizeof(struct ss_trace_pool),
	[SS_TRACE_PYTHON] = sizeof(struct ss_trace_python),
	[SS_TRACE_ALLOC] = sizeof(struct ss_trace_alloc),
	[SS_TRACE_FREE] = sizeof(struct ss_trace_free),
	[SS_TRACE_REUSABLE] = sizeof(struct ss_trace_reusable),
	[SS_TRACE_SEGMENT_ALLOC] = sizeof(struct ss_trace_segment),
	[SS_TRACE_SEGMENT_FREE] = sizeof(struct ss_trace_segment),
	[SS_TRACE_MAP] = sizeof(struct ss_trace_segment),
	[SS_TRACE_UNMAP] = sizeof(struct ss_trace_segment),
	[SS_TRACE_TRIM] = sizeof(struct ss_trace_trim),
	[SS_TRACE_OOM] = sizeof(struct ss_trace_oom),
	[SS_TRACE_LIMIT] = sizeof(struct ss_trace_oom),
	[SS_TRACE_WAIT] = sizeof(struct ss_trace_wait),
	[SS_TRACE_POOL_CREATE] = sizeof(struct ss_trace_pool),
	[SS_TRACE_POOL_DESTROY] = sizeof(struct ss_trace_pool),
	[SS_TRACE_IN_FLIGHT] = sizeof(struct ss_trace_lived),
	[SS_TRACE_PHASE] = sizeof(struct ss_trace_phase),
	[SS_TRACE_OUTSIDE] = sizeof(struct ss_trace_outside),
};

size_t ss_trace_read_at(int fd, void *to, size_t size, uint64_t offset)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = pread(fd, (char *)to + got, size - got, (off_t)(offset + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return got;
}

bool ss_trace_grow(struct ss_trace_file_def *f, void *array, size_t element)
{
	struct {
		void *at;
		size_t count, room;
	} *a = array;

	if (a->count < a->room)
		return true;
	size_t room = a->room ? a->room * 2 : 16;
	void *at = realloc(a->at, room * element);
	if (!at) {
		f->no_memory = true;
		return false;
	}
	a->at = at;
	a->room = room;
	return true;
}

uint32_t ss_trace_id_find(const struct ss_trace_id_table *t, uint32_t id)
{
	const uint32_t *page = id >> 2 * SS_TRACE_ID_BITS ? NULL : t->page[id >> SS_TRACE_ID_BITS];

	return page ? page[id & ((1u << SS_TRACE_ID_BITS) - 1)] : 0;
}

bool ss_trace_id_add(struct ss_trace_file_def *f, struct ss_trace_id_table *t, uint32_t id,
		     size_t index)
{
	if (id == 0 || id >> 2 * SS_TRACE_ID_BITS)
		return false;
	uint32_t **page = &t->page[id >> SS_TRACE_ID_BITS];
	if (!*page)
		*page = calloc(1u << SS_TRACE_ID_BITS, sizeof(**page));
	if (!*page) {
		f->no_memory = true;
		return false;
	}
	(*page)[id & ((1u << SS_TRACE_ID_BITS) - 1)] = (uint32_t)index + 1;
	return true;
}

/* ---- records of a block ------------------------------------------------- */

bool ss_trace_cursor_start(struct ss_trace_cursor *c, const uint8_t *data, uint32_t length)
{
	const struct ss_trace_block *b = (const void *)data;

	if (length < sizeof(*b) ||
	    (b->magic != SS_TRACE_BLOCK_MAGIC && !ss_trace_has_tail(b->magic)))
		return false;
	length -= ss_trace_has_tail(b->magic) ? SS_TRACE_TAIL : 0;
	*c = (struct ss_trace_cursor){.data = data,
				      .at = sizeof(*b),
				      .end = length,
				      .base = b->base_ns,
				      .time_ns = b->base_ns,
				      .tid = b->tid};
	return true;
}

const struct ss_trace_record *ss_trace_cursor_next(struct ss_trace_cursor *c, const char **damage)
{
	*damage = NULL;
	while (c->at + sizeof(struct ss_trace_record) <= c->end) {
		const struct ss_trace_record *r = (const void *)(c->data + c->at);
		uint32_t length = r->words * 8u;

		if (r->kind == SS_TRACE_NONE)
			return NULL;
		if (length < sizeof(*r) || length < least[r->kind]) {
			*damage = "a record is too short for its kind";
			return NULL;
		}
		if (length > c->end - c->at) {
			*damage = "a record is longer than its block";
			return NULL;
		}
		c->at += length;
		if (r->kind == SS_TRACE_TIME) {
			c->base = ((const struct ss_trace_time *)r)->base_ns;
			continue;
		}
		if (r->kind == SS_TRACE_THREAD)
			c->tid = ((const struct ss_trace_thread *)r)->tid;
		/* A THREAD record that takes over a block has dt 0 against the old base; this
		 * record and damaged times count as the time before them. */
		uint64_t time_ns = c->base + r->dt;
		c->time_ns = time_ns > c->time_ns ? time_ns : c->time_ns;
		if (least[r->kind])
			return r;
	}
	return NULL;
}

/* ---- the file ----------------------------------------------------------- */

static void add_problem(struct ss_trace_file_def *f, uint64_t offset, const char *what)
{
	if (f->problems++ == 0) {
		snprintf(f->problem, sizeof(f->problem), "%s: offset %" PRIu64 ": %s", f->path,
			 offset, what);
	}
}

static void note_stack(struct ss_trace_file_def *f, uint32_t stack_device)
{
	uint32_t stack = SS_TRACE_LOW24(stack_device);

	if (!ss_trace_id_find(&f->allocating, stack))
		ss_trace_id_add(f, &f->allocating, stack, 0);
}

/* Reads the definitions of a block, and finds the end of its readable part. */
static void read_block(struct ss_trace_file_def *f, uint8_t *data, uint32_t length, uint64_t offset)
{
	const struct ss_trace_record *r;
	struct ss_trace_cursor c;
	const char *damage;

	if (!ss_trace_cursor_start(&c, data, length)) {
		uint32_t magic = 0;
		memcpy(&magic, data, length < sizeof(magic) ? length : sizeof(magic));
		if (magic != 0) /* otherwise the block was reserved and never used */
			add_problem(f, offset, "this is no block of a trace");
		return;
	}
	uint32_t tail = ss_trace_has_tail(((const struct ss_trace_block *)data)->magic) ?
				SS_TRACE_TAIL :
				0;
	if (((const struct ss_trace_block *)data)->magic == SS_TRACE_BLOCK_BASE &&
	    memcmp(data + length - SS_TRACE_TAIL, &f->header.begin_ns, SS_TRACE_TAIL) != 0)
		/* Block of another beginning, which was being written, or is about to be removed */
		return;
	f->base_blocks += ((const struct ss_trace_block *)data)->magic == SS_TRACE_BLOCK_BASE;
	struct ss_trace_block_info info = {.offset = offset, .start_ns = c.base};
	uint32_t end = 0, before = c.at; /* end: of the block for this reader; 0: all of it */
	for (; (r = ss_trace_cursor_next(&c, &damage)); before = c.at) {
		if (r->kind >= SS_TRACE_ALLOC && c.time_ns > f->end_ns) {
			end = end ? end : before;
			continue;
		}
		if (r->kind >= SS_TRACE_ALLOC && c.time_ns >= f->header.begin_ns) {
			info.events = true;
			f->events++;
			if (r->kind == SS_TRACE_ALLOC)
				note_stack(f, ((const struct ss_trace_event *)r)->stack_device);
		}
		ss_trace_define(f, r, &c);
	}
	info.length = (end ? end : c.at) + tail;
	if (length < f->header.block_size && (damage || c.at + sizeof(*r) > c.end))
		damage = f->process.end == SS_TRACE_END_CUT ? NULL : /* reported already */
				 "the file ends in the middle of a block";
	if (damage)
		add_problem(f, offset + c.at, damage);
	if (info.events && ss_trace_grow(f, &f->blocks, sizeof(*f->blocks.at)))
		f->blocks.at[f->blocks.count++] = info;
}

enum ss_trace_writer ss_trace_writer_of(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB) != 0)
		return errno == EWOULDBLOCK ? SS_TRACE_WRITER_RUNS : SS_TRACE_WRITER_UNKNOWN;
	flock(fd, LOCK_UN);
	return SS_TRACE_WRITER_GONE;
}

static enum ss_trace_end end_of(struct ss_trace_file_def *f, enum ss_trace_writer writer)
{
	if (f->size < f->header.size) {
		add_problem(f, f->size, "the file was cut off here");
		return SS_TRACE_END_CUT;
	}
	switch (f->header.state) {
	case SS_TRACE_CLOSED: return SS_TRACE_END_CLOSED;
	case SS_TRACE_FULL: return SS_TRACE_END_FULL;
	case SS_TRACE_SNAPSHOT: return SS_TRACE_END_SNAPSHOT;
	default:
		return writer == SS_TRACE_WRITER_RUNS ? SS_TRACE_END_NONE :
		       writer == SS_TRACE_WRITER_GONE ? SS_TRACE_END_KILLED :
							SS_TRACE_END_UNKNOWN;
	}
}

static const char *check_header(const struct ss_trace_header *h, size_t got, char *text,
				size_t text_size, uint64_t *offset)
{
	*offset = 0;
	if (got < sizeof(h->magic) || memcmp(h->magic, SS_TRACE_MAGIC, sizeof(h->magic)) != 0)
		return got ? "this is no recording of somashim" : "the file is empty";
	if (got < sizeof(*h)) {
		*offset = got;
		return "the file ends in the middle of its header";
	}
	*offset = offsetof(struct ss_trace_header, endian);
	if (h->endian != SS_TRACE_ENDIAN)
		return "written on a machine with another byte order";
	*offset = offsetof(struct ss_trace_header, major);
	if (h->major != SS_TRACE_MAJOR) {
		snprintf(text, text_size,
			 "version %u of the format; this somashim reads version %u", h->major,
			 SS_TRACE_MAJOR);
		return text;
	}
	*offset = offsetof(struct ss_trace_header, header_size);
	if (h->header_size < sizeof(*h) || h->header_size > HEADER_MOST || h->header_size % 8)
		return "the size of the header makes no sense";
	*offset = offsetof(struct ss_trace_header, block_size);
	if (h->block_size < BLOCK_LEAST || h->block_size > BLOCK_MOST || h->block_size % 8)
		return "the size of the blocks makes no sense";
	return NULL;
}

/* Without its base a ring is incomplete: blocks would be freed that were never allocated. */
static bool has_base(const struct ss_trace_file_def *f)
{
	const struct ss_trace_header *h = &f->header;

	if (h->begin_ns == 0)
		return true;
	return h->base_for_ns == h->begin_ns ? f->base_blocks >= h->base_blocks :
					       f->base_blocks > 0;
}

bool ss_trace_file_def_open(struct ss_trace_file_def *f, const char *path, bool held, char *err,
			    size_t err_size)
{
	struct stat st;
	char text[96];
	uint64_t offset;
	uint8_t *data = NULL;

	*f = (struct ss_trace_file_def){.fd = -1,
					.end_ns = UINT64_MAX,
					.process = {.rank = -1, .ranks = -1, .local_rank = -1}};
	f->path = strdup(path);
	f->fd = f->path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	if (f->fd < 0 || fstat(f->fd, &st) != 0) {
		snprintf(err, err_size, "%s: %s", path, strerror(errno));
		goto error;
	}
	if (!S_ISREG(st.st_mode)) {
		snprintf(err, err_size, "%s: not a regular file", path);
		goto error;
	}
	enum ss_trace_writer writer = SS_TRACE_WRITER_RUNS;
	size_t got = ss_trace_read_at(f->fd, &f->header, sizeof(f->header), 0);
	const char *wrong = check_header(&f->header, got, text, sizeof(text), &offset);
	if (wrong) {
		snprintf(err, err_size, "%s: offset %" PRIu64 ": %s", path, offset, wrong);
		goto error;
	}
	if (!held && !ss_trace_steady(f, &writer, err, err_size))
		goto error;
	f->size = fstat(f->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
	f->process.end = end_of(f, writer);
	data = malloc(f->header.block_size);
	f->no_memory = !data;
	for (offset = f->header.header_size; data && !f->no_memory && offset < f->size;
	     offset += f->header.block_size) {
		uint64_t rest = f->size - offset;
		size_t want = rest < f->header.block_size ? (size_t)rest : f->header.block_size;
		size_t n = ss_trace_read_at(f->fd, data, want, offset);
		read_block(f, data, (uint32_t)(n & ~(size_t)7), offset);
	}
	free(data);
	if (!f->no_memory && !has_base(f)) {
		snprintf(
			err, err_size,
			"%s: the blocks that lived when it begins are missing: it is a ring "
			"that was cut off, or copied while it was written (`somashim dump --trace' "
			"copies it whole)",
			path);
		goto error;
	}
	if (!f->no_memory)
		ss_trace_define_end(f);
	if (f->no_memory) {
		snprintf(err, err_size, "%s: out of memory", path);
		goto error;
	}
	return true;

error:
	ss_trace_file_def_close(f);
	return false;
}

static void free_ids(struct ss_trace_id_table *t)
{
	for (size_t i = 0; i < sizeof(t->page) / sizeof(t->page[0]); i++)
		free(t->page[i]);
}

void ss_trace_file_def_close(struct ss_trace_file_def *f)
{
	if (f->fd >= 0)
		close(f->fd);
	for (size_t i = 0; i < f->owned.count; i++)
		free(f->owned.at[i]);
	free_ids(&f->pool_ids);
	free_ids(&f->stream_ids);
	free_ids(&f->stack_ids);
	free_ids(&f->python_ids);
	free_ids(&f->thread_ids);
	free_ids(&f->allocating);
	free(f->owned.at);
	free(f->blocks.at);
	free(f->process.args);
	free(f->process.options);
	free(f->devices.at);
	free(f->pools.at);
	free(f->streams.at);
	free(f->stacks.at);
	free(f->pythons.at);
	free(f->threads.at);
	free(f->modules.at);
	free(f->gone.at);
	free(f->path);
	*f = (struct ss_trace_file_def){.fd = -1};
}
