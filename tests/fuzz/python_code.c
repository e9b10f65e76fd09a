/* SPDX-License-Identifier: MIT */
/* Objects of Python in the memory of the program, which may be damaged. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/python_code.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE 0x10000u

static const uint8_t *memory;
static size_t memory_size;
static void *record;

/* In the place of those of trace/. */
bool ss_python_peek(uintptr_t from, void *to, size_t size)
{
	from -= BASE;
	if (from > memory_size || size > memory_size - from)
		return false;
	memcpy(to, memory + from, size);
	return true;
}

void *ss_trace_begin(struct ss_trace_context *c, uint32_t size)
{
	record = malloc(size);
	return record;
}

void ss_trace_commit(struct ss_trace_context *c, void *r, enum ss_trace_kind kind, uint32_t size,
		     uint32_t pool)
{
	free(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ss_trace_context context;
	static struct ss_trace_live *live;
	struct ss_python_place place;

	if (!live) {
		live = calloc(1, sizeof(*live));
		context.live = live;
		live->python.layout = (struct ss_python_layout){.code_file = 0,
								.code_name = 8,
								.code_lines = 16,
								.code_first_line = 24,
								.code_bytes = 32,
								.object_type = 8,
								.bytes_data = 8,
								.text_state = 8,
								.text_ascii = 16,
								.text_other = 24};
	}
	if (size < 8)
		return 0;
	memory = data;
	memory_size = size;
	struct ss_python_frame frame = {
		.code = BASE, .instruction = BASE + 32 + (data[size - 1] | data[size - 2] << 8)};
	ss_python_place(&live->python, &frame, &place);
	if (strnlen(place.function, sizeof(place.function)) == sizeof(place.function) ||
	    strnlen(place.file, sizeof(place.file)) == sizeof(place.file))
		abort();
	(void)ss_python_frame_value(&context, &frame);
	memset(live->python_codes, 0, sizeof(live->python_codes));
	return 0;
}
