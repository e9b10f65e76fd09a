/* SPDX-License-Identifier: MIT */
/* Name, file and line of a frame of Python. All of it is read through the kernel. */
#include <string.h>

#include "trace/python.h"

#define NAME_MAX_BYTES SS_PYTHON_TEXT
#define FILE_MAX_BYTES (2 * SS_PYTHON_TEXT)
#define CODE_PROBES 32u
#define LINES_MOST (1u << 20) /* bytes of a table of lines; a longer table is not read */

/* ---- texts -------------------------------------------------------------- */

static uint32_t put_utf8(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | (c >> 18 & 7));
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* Copies a str as UTF-8, without an end. Returns its length; text that does not fit is left out. */
static uint32_t read_text(const struct ss_python_layout *l, uintptr_t object, char *out,
			  uint32_t size)
{
	uint32_t state, used = 0;
	uint64_t length;
	unsigned char chars[256];

	if (!object || !ss_python_peek(object + l->text_state, &state, sizeof(state)) ||
	    !ss_python_peek(object + l->text_length, &length, sizeof(length)))
		return 0;
	uint32_t width = state >> 2 & 7; /* bytes of a character */
	bool compact = state >> 5 & 1, ascii = state >> 6 & 1;
	if (!compact || (width != 1 && width != 2 && width != 4))
		return 0;
	uintptr_t at = object + (ascii ? l->text_ascii : l->text_other);
	while (length && used + 4 <= size) {
		uint64_t n = sizeof(chars) / width;
		n = length < n ? length : n;
		if (!ss_python_peek(at, chars, n * width))
			return used;
		for (uint64_t i = 0; i < n && used + 4 <= size; i++) {
			uint32_t c = 0;
			memcpy(&c, chars + i * width, width); /* little endian */
			used += put_utf8(out + used, c);
		}
		at += n * width;
		length -= n;
	}
	return used;
}

/* ---- lines -------------------------------------------------------------- */

/* A bytes object that is read piece by piece. */
struct bytes {
	uintptr_t at;
	uint64_t rest;
	uint32_t next, room;
	unsigned char piece[128];
};

static int next_byte(struct bytes *b)
{
	if (b->next == b->room) {
		b->room = b->rest < sizeof(b->piece) ? (uint32_t)b->rest :
						       (uint32_t)sizeof(b->piece);
		if (b->room == 0 || !ss_python_peek(b->at, b->piece, b->room)) {
			b->room = b->next = 0;
			b->rest = 0;
			return -1;
		}
		b->at += b->room;
		b->rest -= b->room;
		b->next = 0;
	}
	return b->piece[b->next++];
}

/* A number in pieces of 6 bits, the lowest first. */
static bool next_number(struct bytes *b, uint32_t *out)
{
	uint32_t shift = 0;
	int byte;

	*out = 0;
	do {
		byte = next_byte(b);
		if (byte < 0)
			return false;
		*out |= shift < 32 ? (uint32_t)(byte & 63) << shift : 0;
		shift += 6;
	} while (byte & 64);
	return true;
}

/* The difference of lines in an entry of the table, whose kind is `code`. */
static bool next_difference(struct bytes *b, int code, int64_t *out)
{
	uint32_t n;

	*out = 0;
	switch (code) {
	case 15: /* no line */ return true;
	case 13: /* a line without columns */
	case 14: /* the long form; the columns are skipped by the caller */
		if (!next_number(b, &n))
			return false;
		*out = n & 1 ? -(int64_t)(n >> 1) : (int64_t)(n >> 1);
		return true;
	case 11:
	case 12: *out = code - 10; return true;
	default: return true;
	}
}

/* The line of an instruction, which is `unit` units of 2 bytes after the first one. The table has
 * an entry for each run of instructions: a byte with the highest bit set gives the kind and the
 * number of units. Without a table the result is the first line of the function. */
static uint32_t line_of(const struct ss_python_layout *l, uintptr_t code, uint64_t unit)
{
	struct bytes b = {0};
	uintptr_t table;
	int32_t first;
	uint64_t units = 0;

	if (!ss_python_peek(code + l->code_first_line, &first, sizeof(first)) || first < 0)
		return 0;
	if (!ss_python_peek(code + l->code_lines, &table, sizeof(table)) ||
	    !ss_python_peek(table + l->bytes_size, &b.rest, sizeof(b.rest)) || b.rest > LINES_MOST)
		return (uint32_t)first;
	b.at = table + l->bytes_data;
	int64_t line = first;
	int byte = next_byte(&b);
	while (byte >= 0) {
		int64_t difference;

		if (!(byte & 128)) { /* a column of the last entry */
			byte = next_byte(&b);
			continue;
		}
		int kind = byte >> 3 & 15;
		if (!next_difference(&b, kind, &difference))
			break;
		line += difference;
		units += (uint64_t)(byte & 7) + 1;
		if (unit < units) {
			return kind == 15 || line < 0 || line > INT32_MAX ? (uint32_t)first :
									    (uint32_t)line;
		}
		byte = next_byte(&b);
	}
	return (uint32_t)first;
}

/* ---- definitions --------------------------------------------------------- */

static void write_code(struct ss_trace_context *c, uint32_t id, uintptr_t file, uintptr_t name,
		       uint32_t first)
{
	const struct ss_python_layout *l = &c->live->python.layout;
	char name_text[NAME_MAX_BYTES], file_text[FILE_MAX_BYTES];
	uint32_t name_length = read_text(l, name, name_text, sizeof(name_text));
	uint32_t file_length = read_text(l, file, file_text, sizeof(file_text));
	uint32_t size = ((uint32_t)sizeof(struct ss_trace_python) + name_length + file_length + 7) &
			~7u;
	struct ss_trace_python *r = ss_trace_begin(c, size);

	if (r) {
		r->id = id;
		r->first_line = first;
		r->name_length = (uint16_t)name_length;
		r->file_length = (uint16_t)file_length;
		memcpy(r->text, name_text, name_length);
		memcpy(r->text + name_length, file_text, file_length);
		ss_trace_commit(c, r, SS_TRACE_PYTHON, size, 0);
	}
}

/* The number of a function. 0: the table is full. */
static uint32_t code_id(struct ss_trace_context *c, uintptr_t code)
{
	const struct ss_python_layout *l = &c->live->python.layout;
	uintptr_t file = 0, name = 0;
	uint32_t first = 0;

	(void)(ss_python_peek(code + l->code_file, &file, sizeof(file)) &&
	       ss_python_peek(code + l->code_name, &name, sizeof(name)) &&
	       ss_python_peek(code + l->code_first_line, &first, sizeof(first)));
	uint64_t hash = ((uint64_t)code * 0x9e3779b97f4a7c15ull ^ name) * 0xbf58476d1ce4e5b9ull ^
			(file + first) * 0x94d049bb133111ebull;
	uint32_t i = (uint32_t)(hash >> 40);
	hash = hash ? hash : 1;
	for (uint32_t n = 0; n < CODE_PROBES; n++, i++) {
		uint32_t index = i % SS_TRACE_PYTHON_CODES;
		_Atomic uint64_t *slot = &c->live->python_codes[index];
		uint64_t there = atomic_load_explicit(slot, memory_order_relaxed);

		if (there == 0 && atomic_compare_exchange_strong(slot, &there, hash)) {
			write_code(c, index + 1, file, name, first);
			return index + 1;
		}
		if (there == hash)
			return index + 1;
	}
	__atomic_fetch_add(&c->live->file.header->lost_names, 1, __ATOMIC_RELAXED);
	return 0;
}

static uint32_t line_of_frame(const struct ss_python_layout *l, const struct ss_python_frame *f)
{
	uintptr_t start = f->code + l->code_bytes;

	return line_of(l, f->code, f->instruction >= start ? (f->instruction - start) / 2 : 0);
}

uint64_t ss_python_frame_value(struct ss_trace_context *c, const struct ss_python_frame *f)
{
	return SS_TRACE_PYTHON_FRAME | (uint64_t)code_id(c, f->code) << 32 |
	       line_of_frame(&c->live->python.layout, f);
}

void ss_python_place(const struct ss_python *p, const struct ss_python_frame *f,
		     struct ss_python_place *out)
{
	const struct ss_python_layout *l = &p->layout;
	uintptr_t file = 0, name = 0;

	(void)(ss_python_peek(f->code + l->code_file, &file, sizeof(file)) &&
	       ss_python_peek(f->code + l->code_name, &name, sizeof(name)));
	out->function[read_text(l, name, out->function, sizeof(out->function) - 1)] = '\0';
	out->file[read_text(l, file, out->file, sizeof(out->file) - 1)] = '\0';
	out->line = line_of_frame(l, f);
}
