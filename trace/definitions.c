/* SPDX-License-Identifier: MIT */
/* Collects the definitions of a trace file: process, devices, pools, streams, stacks, modules. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "trace/reader_file.h"

/* Keeps memory until the file is closed. NULL if host memory is out. */
static void *own(struct ss_trace_file_def *f, void *memory)
{
	if (!memory || !ss_trace_grow(f, &f->owned, sizeof(*f->owned.at))) {
		f->no_memory = true;
		free(memory);
		return NULL;
	}
	f->owned.at[f->owned.count++] = memory;
	return memory;
}

/* A copy of a text that may have no end; "" if host memory is out. */
static const char *text_of(struct ss_trace_file_def *f, const char *text, size_t length)
{
	char *copy = own(f, strndup(text, length));

	if (!copy)
		return "";
	ss_utf8_clean(copy);
	return copy;
}

static void copy_name(char *to, size_t size, const char *from, size_t length)
{
	size_t n = strnlen(from, length < size - 1 ? length : size - 1);

	memcpy(to, from, n);
	to[n] = '\0';
	ss_utf8_clean(to);
}

static int number_of(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	return *text && !*end && n >= 0 && n <= 0x7fffffff ? (int)n : -1;
}

/* Appends to a list that ends with NULL. */
static void append(struct ss_trace_file_def *f, char ***list, size_t *count, const char *text)
{
	if ((*count & (*count + 1)) == 0) { /* full: the room is a power of two */
		char **more = realloc(*list, (*count + 1) * 2 * sizeof(**list));
		if (!more) {
			f->no_memory = true;
			return;
		}
		*list = more;
	}
	(*list)[(*count)++] = (char *)text;
	(*list)[*count] = NULL;
}

static void define_info(struct ss_trace_file_def *f, const struct ss_trace_info *r)
{
	struct ss_trace_process_def *p = &f->process;
	size_t room = r->r.words * 8u - sizeof(*r);
	const char *text = text_of(f, r->text, r->length < room ? r->length : room);

	switch (r->key) {
	case SS_TRACE_INFO_EXE: p->exe = text; break;
	case SS_TRACE_INFO_ARG: append(f, &p->args, &p->arg_count, text); break;
	case SS_TRACE_INFO_HOST: p->host = text; break;
	case SS_TRACE_INFO_LAUNCHER: p->launcher = text; break;
	case SS_TRACE_INFO_JOB: p->job = text; break;
	case SS_TRACE_INFO_RANK: p->rank = number_of(text); break;
	case SS_TRACE_INFO_RANKS: p->ranks = number_of(text); break;
	case SS_TRACE_INFO_LOCAL_RANK: p->local_rank = number_of(text); break;
	case SS_TRACE_INFO_OPTION: append(f, &p->options, &p->option_count, text); break;
	case SS_TRACE_INFO_VERSION: p->version = text; break;
	case SS_TRACE_INFO_RUNTIME: p->runtime = text; break;
	case SS_TRACE_INFO_CWD: p->cwd = text; break;
	default: /* of a newer version */ break;
	}
}

static void define_module(struct ss_trace_file_def *f, const struct ss_trace_module *r,
			  uint64_t time_ns)
{
	size_t room = r->r.words * 8u - sizeof(*r);
	uint32_t segments = r->segments < SS_TRACE_SEGMENTS_MAX ? r->segments :
								  SS_TRACE_SEGMENTS_MAX;

	if (r->segments * 16u > room || !ss_trace_grow(f, &f->modules, sizeof(*f->modules.at)))
		return;
	struct ss_trace_module_def *m = &f->modules.at[f->modules.count++];
	*m = (struct ss_trace_module_def){.bias = r->bias,
					  .start = r->start,
					  .end = r->end,
					  .loaded_ns = time_ns,
					  .gone_ns = UINT64_MAX,
					  .segments = segments,
					  .program = r->flags & SS_TRACE_MODULE_EXE,
					  .build_id_length = r->build_id_length <=
									     SS_TRACE_BUILD_ID_MAX ?
								     r->build_id_length :
								     0};
	memcpy(m->build_id, r->build_id, sizeof(m->build_id));
	for (uint32_t i = 0; i < segments; i++) {
		m->segment[i][0] = r->tail[i * 2];
		m->segment[i][1] = r->tail[i * 2 + 1];
	}
	room -= r->segments * 16u;
	m->path = text_of(f, (const char *)(r->tail + r->segments * 2),
			  r->path_length < room ? r->path_length : room);
}

static void define_stack(struct ss_trace_file_def *f, const struct ss_trace_stack *r,
			 uint64_t time_ns)
{
	uint32_t room = (r->r.words * 8u - (uint32_t)sizeof(*r)) / 8;
	uint32_t frames = r->frames < room ? r->frames : room;

	if (ss_trace_id_find(&f->stack_ids, r->id) ||
	    !ss_trace_grow(f, &f->stacks, sizeof(*f->stacks.at)) ||
	    !ss_trace_id_add(f, &f->stack_ids, r->id, f->stacks.count))
		return;
	uint64_t *ip = own(f, malloc(frames * sizeof(*ip) + 1));
	if (!ip)
		return;
	memcpy(ip, r->ip, frames * sizeof(*ip));
	f->stacks.at[f->stacks.count++] = (struct ss_trace_stack_def){.id = r->id,
								      .frames = frames,
								      .cut = r->flags &
									     SS_TRACE_STACK_CUT,
								      .seen_ns = time_ns,
								      .ip = ip};
}

static void define_python(struct ss_trace_file_def *f, const struct ss_trace_python *r)
{
	size_t room = r->r.words * 8u - sizeof(*r);
	size_t name = r->name_length < room ? r->name_length : room;
	size_t file = r->file_length < room - name ? r->file_length : room - name;

	if (ss_trace_id_find(&f->python_ids, r->id) ||
	    !ss_trace_grow(f, &f->pythons, sizeof(*f->pythons.at)) ||
	    !ss_trace_id_add(f, &f->python_ids, r->id, f->pythons.count))
		return;
	const char *name_text = text_of(f, r->text, name);
	f->pythons.at[f->pythons.count++] = (struct ss_trace_python_def){
		.id = r->id,
		.first_line = r->first_line,
		.name = name_text,
		.file = text_of(f, r->text + name, file)};
}

static void define_stream(struct ss_trace_file_def *f, const struct ss_trace_stream *r)
{
	uint32_t index = ss_trace_id_find(&f->stream_ids, r->id);
	enum ss_trace_stream_kind kind = r->kind < SS_TRACE_STREAM_UNKNOWN ?
						 r->kind :
						 SS_TRACE_STREAM_UNKNOWN;

	if (index) { /* a later record may know the kind */
		if (kind != SS_TRACE_STREAM_UNKNOWN)
			f->streams.at[index - 1].kind = kind;
		return;
	}
	if (ss_trace_grow(f, &f->streams, sizeof(*f->streams.at)) &&
	    ss_trace_id_add(f, &f->stream_ids, r->id, f->streams.count)) {
		f->streams.at[f->streams.count++] = (struct ss_trace_stream_def){
			.id = r->id, .device = r->device, .kind = kind, .handle = r->handle};
	}
}

static void define_pool(struct ss_trace_file_def *f, const struct ss_trace_pool *r)
{
	if (ss_trace_id_find(&f->pool_ids, r->r.pool) ||
	    !ss_trace_grow(f, &f->pools, sizeof(*f->pools.at)) ||
	    !ss_trace_id_add(f, &f->pool_ids, r->r.pool, f->pools.count))
		return;
	struct ss_trace_pool_def *p = &f->pools.at[f->pools.count++];
	*p = (struct ss_trace_pool_def){.id = r->r.pool, .device = r->device, .handle = r->handle};
	copy_name(p->name, sizeof(p->name), r->name, sizeof(r->name));
}

static void define_device(struct ss_trace_file_def *f, const struct ss_trace_device *r)
{
	for (size_t i = 0; i < f->devices.count; i++)
		if (f->devices.at[i].device == r->device)
			return;
	if (!ss_trace_grow(f, &f->devices, sizeof(*f->devices.at)))
		return;
	struct ss_trace_device_def *d = &f->devices.at[f->devices.count++];
	*d = (struct ss_trace_device_def){.device = r->device, .total = r->total};
	snprintf(d->pci, sizeof(d->pci), "%04x:%02x:%02x.%x", r->pci_domain & 0xffff, r->pci_bus,
		 r->pci_device, r->pci_function & 15);
	memcpy(d->uuid, r->uuid, sizeof(d->uuid));
	copy_name(d->name, sizeof(d->name), r->name, sizeof(r->name));
}

static void define_thread(struct ss_trace_file_def *f, const struct ss_trace_thread *r)
{
	if (ss_trace_id_find(&f->thread_ids, r->tid) ||
	    !ss_trace_grow(f, &f->threads, sizeof(*f->threads.at)) ||
	    !ss_trace_id_add(f, &f->thread_ids, r->tid, f->threads.count))
		return;
	struct ss_trace_thread_def *t = &f->threads.at[f->threads.count++];
	*t = (struct ss_trace_thread_def){.tid = r->tid};
	copy_name(t->name, sizeof(t->name), r->name, sizeof(r->name));
}

void ss_trace_define(struct ss_trace_file_def *f, const struct ss_trace_record *r,
		     const struct ss_trace_cursor *c)
{
	switch (r->kind) {
	case SS_TRACE_THREAD: define_thread(f, (const void *)r); break;
	case SS_TRACE_INFO: define_info(f, (const void *)r); break;
	case SS_TRACE_MODULE: define_module(f, (const void *)r, c->time_ns); break;
	case SS_TRACE_MODULE_GONE:
		if (ss_trace_grow(f, &f->gone, sizeof(*f->gone.at))) {
			size_t n = f->gone.count++;
			f->gone.at[n].start = ((const struct ss_trace_module_gone *)r)->start;
			f->gone.at[n].time_ns = c->time_ns;
		}
		break;
	case SS_TRACE_STACK: define_stack(f, (const void *)r, c->time_ns); break;
	case SS_TRACE_PYTHON: define_python(f, (const void *)r); break;
	case SS_TRACE_STREAM: define_stream(f, (const void *)r); break;
	case SS_TRACE_DEVICE: define_device(f, (const void *)r); break;
	case SS_TRACE_POOL:
	case SS_TRACE_POOL_CREATE: define_pool(f, (const void *)r); break;
	default: break;
	}
}

static int by_load_time(const void *a, const void *b)
{
	const struct ss_trace_module_def *x = a, *y = b;

	if (x->loaded_ns != y->loaded_ns)
		return x->loaded_ns < y->loaded_ns ? -1 : 1;
	return y->program - x->program;
}

void ss_trace_define_end(struct ss_trace_file_def *f)
{
	struct ss_trace_process_def *p = &f->process;
	const struct ss_trace_header *h = &f->header;
	const char **texts[] = {&p->exe,     &p->host,     &p->cwd, &p->version,
				&p->runtime, &p->launcher, &p->job};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		*texts[i] = *texts[i] ? *texts[i] : "";
	p->pid = h->pid;
	p->ppid = h->ppid;
	p->page_size = h->page_size;
	p->boottime_ns = h->boottime_ns;
	p->realtime_ns = h->realtime_ns;
	p->lost_events = h->lost_events;
	p->lost_stacks = h->lost_stacks;
	p->lost_names = h->lost_names;
	if (p->arg_count == 0)
		p->args = calloc(1, sizeof(*p->args));
	if (p->option_count == 0)
		p->options = calloc(1, sizeof(*p->options));
	f->no_memory = f->no_memory || !p->args || !p->options;
	if (f->modules.count)
		qsort(f->modules.at, f->modules.count, sizeof(*f->modules.at), by_load_time);
	for (size_t g = 0; g < f->gone.count; g++) {
		for (size_t i = f->modules.count; i-- > 0;) {
			struct ss_trace_module_def *m = &f->modules.at[i];
			if (m->start == f->gone.at[g].start && m->gone_ns == UINT64_MAX &&
			    m->loaded_ns <= f->gone.at[g].time_ns) {
				m->gone_ns = f->gone.at[g].time_ns;
				break;
			}
		}
	}
}
