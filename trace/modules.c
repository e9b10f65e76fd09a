/* SPDX-License-Identifier: MIT */
/* Records the loaded executables and libraries, from the dynamic linker's list. */
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "core/base/backoff.h"
#include "trace/modules.h"
#include "trace/python.h"

#define WAIT_ROUNDS 1000 /* before a fork: about a second */

struct update {
	struct ss_trace_context *c;
	uint64_t added, removed;
	uint32_t index; /* of the module; 0 is the program */
	bool checked;
};

/* Copies the build id. Returns its length, 0 if there is none. */
static uint8_t build_id(const struct dl_phdr_info *info, uint8_t *out)
{
	for (uint16_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_NOTE)
			continue;
		const char *at = (const char *)(info->dlpi_addr + p->p_vaddr);
		const char *end = at + p->p_memsz;
		size_t align = p->p_align == 8 ? 8 : 4;
		while (at + sizeof(ElfW(Nhdr)) <= end) {
			const ElfW(Nhdr) *note = (const void *)at;
			const char *name = at + sizeof(*note);
			const char *desc = name + ((note->n_namesz + align - 1) & ~(align - 1));
			if (note->n_descsz > (size_t)(end - at) || desc > end - note->n_descsz)
				break;
			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
			    memcmp(name, "GNU", 4) == 0 &&
			    note->n_descsz <= SS_TRACE_BUILD_ID_MAX) {
				memcpy(out, desc, note->n_descsz);
				return (uint8_t)note->n_descsz;
			}
			at = desc + ((note->n_descsz + align - 1) & ~(align - 1));
		}
	}
	return 0;
}

/* The absolute path, if it is known. */
static void path_of(const struct dl_phdr_info *info, bool program, char *out, size_t size)
{
	const char *name = info->dlpi_name ? info->dlpi_name : "";
	size_t length = 0;

	if (program) {
		ssize_t n = readlink("/proc/self/exe", out, size - 1);
		out[n > 0 ? n : 0] = '\0';
		return;
	}
	/* A path from the working directory that the program had when it loaded the module. */
	if (name[0] != '/' && strchr(name, '/') && getcwd(out, size - 2)) {
		length = strlen(out);
		out[length++] = '/';
	}
	size_t rest = strnlen(name, size - 1 - length);
	memcpy(out + length, name, rest);
	out[length + rest] = '\0';
}

static void write_module(struct ss_trace_context *c, const struct dl_phdr_info *info,
			 uint64_t start, uint64_t end, bool program)
{
	uint64_t segment[SS_TRACE_SEGMENTS_MAX * 2];
	uint32_t segments = 0;
	char *path = c->live->path;

	for (uint16_t i = 0; i < info->dlpi_phnum && segments < SS_TRACE_SEGMENTS_MAX; i++) {
		if (info->dlpi_phdr[i].p_type == PT_LOAD) {
			segment[segments * 2] = info->dlpi_phdr[i].p_vaddr;
			segment[segments * 2 + 1] = info->dlpi_phdr[i].p_memsz;
			segments++;
		}
	}
	path_of(info, program, path, sizeof(c->live->path));
	size_t length = strlen(path);
	uint32_t size = (uint32_t)(sizeof(struct ss_trace_module) + segments * 16 + length + 7) &
			~7u;
	struct ss_trace_module *r = ss_trace_begin(c, size);
	if (r) {
		r->bias = info->dlpi_addr;
		r->start = start;
		r->end = end;
		r->build_id_length = build_id(info, r->build_id);
		r->segments = (uint8_t)segments;
		r->path_length = (uint16_t)length;
		r->flags = program ? SS_TRACE_MODULE_EXE : 0;
		memcpy(r->tail, segment, segments * 16);
		memcpy(r->tail + segments * 2, path, length);
		ss_trace_commit(c, r, SS_TRACE_MODULE, size, 0);
	}
}

static struct ss_trace_module_range *find(struct ss_trace_live *live, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < live->module_count; i++)
		if (live->module[i].start == start && live->module[i].end == end)
			return &live->module[i];
	return NULL;
}

static int each_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct update *u = arg;
	struct ss_trace_live *live = u->c->live;
	uint64_t start = UINT64_MAX, end = 0;
	bool program = u->index++ == 0;

	if (!u->checked) {
		u->checked = true;
		u->added = info->dlpi_adds;
		u->removed = info->dlpi_subs;
		if (u->added == live->modules_added && u->removed == live->modules_removed)
			return 1; /* nothing changed: ends the walk */
		for (uint32_t i = 0; i < live->module_count; i++)
			live->module[i].seen = false;
	}
	for (uint16_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_LOAD) {
			uint64_t from = info->dlpi_addr + p->p_vaddr;
			start = from < start ? from : start;
			end = from + p->p_memsz > end ? from + p->p_memsz : end;
		}
	}
	if (end == 0)
		return 0;
	struct ss_trace_module_range *known = find(live, start, end);
	if (known) {
		known->seen = true;
		return 0;
	}
	if (live->module_count < SS_TRACE_MODULES) {
		live->module[live->module_count++] = (struct ss_trace_module_range){
			.start = start, .end = end, .seen = true};
	}
	write_module(u->c, info, start, end, program);
	uint64_t here = (uint64_t)(uintptr_t)each_module;
	if (!program && here >= start && here < end) {
		live->own_start = start;
		live->own_end = end;
	}
	return 0;
}

/* Records the modules that were unloaded, and forgets them. */
static void remove_unseen(struct ss_trace_context *c)
{
	struct ss_trace_live *live = c->live;

	for (uint32_t i = 0; i < live->module_count;) {
		if (live->module[i].seen) {
			i++;
			continue;
		}
		struct ss_trace_module_gone *r = ss_trace_begin(c, sizeof(*r));
		if (r) {
			r->start = live->module[i].start;
			ss_trace_commit(c, r, SS_TRACE_MODULE_GONE, sizeof(*r), 0);
		}
		live->module[i] = live->module[--live->module_count];
		atomic_fetch_add(&live->modules_epoch, 1);
	}
}

void ss_trace_modules_update(struct ss_trace_context *c)
{
	struct update u = {.c = c};
	struct ss_trace_live *live = c->live;

	if (atomic_exchange(&live->modules_busy, true))
		return;
	if (dl_iterate_phdr(each_module, &u) == 0 && u.checked) {
		if (u.removed != live->modules_removed)
			remove_unseen(c);
		ss_python_look(&live->python);
		live->modules_added = u.added;
		live->modules_removed = u.removed;
	}
	atomic_store(&live->modules_busy, false);
}

void ss_trace_modules_wait(struct ss_trace_live *live)
{
	for (unsigned turn = 0; turn < WAIT_ROUNDS && atomic_load(&live->modules_busy);)
		ss_backoff(&turn);
}
