/* SPDX-License-Identifier: MIT */
/* Functions, source files and lines of frames, from the files of their modules, and the names of
 * kernels. */
#include <fnmatch.h>
#include <string.h>

#include "cli/check/fields.h"
#include "cli/check/found.h"
#include "trace/symbolize.h"

static void put(json_t *frame, const struct ss_symbol *s)
{
	if (s->function)
		json_object_set_new(frame, "function", json_string(s->function));
	if (s->source) {
		json_object_set_new(frame, "source", json_string(s->source));
		json_object_set_new(frame, "line", json_integer(s->line));
	}
	if (s->source && s->source[0] != '/' && s->folder)
		json_object_set_new(frame, "folder", json_string(s->folder));
	if (s->inlined)
		json_object_set_new(frame, "inlined", json_true());
}

/* Names a frame, and adds it to `to` behind those of the functions that were inlined there. */
static void add(struct ss_symbol_files *files, json_t *frame, json_t *to)
{
	const char *path = text(frame, "module");
	const struct ss_symbol *symbol;
	uint32_t count = 0;

	if (path[0])
		count = ss_symbolize_file(files, path, number(frame, "offset"), &symbol);
	for (uint32_t i = 0; i < count; i++) {
		json_t *one = json_copy(frame);
		put(one, &symbol[i]);
		json_array_append_new(to, one);
	}
	if (!count)
		json_array_append(to, frame);
}

/* Is it what calls main() and the functions of threads? */
static bool is_start(const json_t *frame)
{
	static const char *const modules[] = {"libc.so*", "libc-*.so", "libpthread*.so*",
					      "ld-linux*", "ld-*.so"};
	const char *path = text(frame, "module"), *base = strrchr(path, '/');
	bool is = strcmp(text(frame, "function"), "_start") == 0;

	base = base ? base + 1 : path;
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		is |= fnmatch(modules[i], base, 0) == 0;
	return is;
}

void ss_frame_names_add(struct ss_symbol_files *files, json_t *site)
{
	const json_t *frames = json_object_get(site, "frames");
	json_t *named = json_array();

	for (size_t i = 0; i < json_array_size(frames); i++)
		add(files, json_array_get(frames, i), named);
	for (size_t n = json_array_size(named); n > 1 && is_start(json_array_get(named, n - 1));
	     n--)
		json_array_remove(named, n - 1);
	if (frames)
		json_object_set(site, "frames", named);
	json_decref(named);
}

void ss_kernel_name_add(struct ss_symbol_files *files, json_t *site)
{
	const char *readable = ss_symbol_readable(files, text(site, "kernel"));

	if (is_harmless(readable))
		json_object_set_new(site, "kernel", json_string(readable));
	else
		json_object_set_new(site, "kernel", harmless(readable));
}
