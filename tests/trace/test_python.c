/* SPDX-License-Identifier: MIT */
/*
 * Frames of Python, from a stand-in for the interpreter: this program exports what CPython 3.13
 * exports, with offsets of its own, and frames that are good or broken in every way. A broken one
 * is found out without a crash, and the stack then has the addresses only.
 */
#include <search.h>
#include <sys/mman.h>

#include "trace/symbolize.h"
#include "trace_test.h"

/* ---- the stand-in -------------------------------------------------------- */

struct code {
	void *before, *type, *file, *name, *lines;
	int32_t first_line, between;
	uint16_t unit[64];
};

struct frame {
	struct frame *previous;
	uint8_t owner;
	uint16_t *instruction;
	struct code *code;
};

struct text {
	uint64_t before;
	uint32_t state;
	uint64_t length;
	unsigned char data[64]; /* of ASCII; others start 16 bytes further on */
};

struct bytes {
	uint64_t before, size;
	unsigned char data[64];
};

struct thread {
	uint64_t before[3];
	struct frame *frame;
};

/* What the interpreter exports. */
#define EXPORT __attribute__((visibility("default")))
EXPORT unsigned long Py_Version = 0x030d0100;
EXPORT uint64_t _PyRuntime[128];
EXPORT int PyCode_Type;
static struct thread thread;
static bool finalizing;
EXPORT void *PyGILState_GetThisThreadState(void);
void *PyGILState_GetThisThreadState(void)
{
	return &thread;
}
EXPORT int Py_IsFinalizing(void);
int Py_IsFinalizing(void)
{
	return finalizing;
}

static void fill_offsets(void)
{
	memcpy(_PyRuntime, "xdebugpy", 8);
	_PyRuntime[1] = Py_Version;
	_PyRuntime[23] = offsetof(struct thread, frame);
	_PyRuntime[29] = offsetof(struct frame, previous);
	_PyRuntime[30] = offsetof(struct frame, code);
	_PyRuntime[31] = offsetof(struct frame, instruction);
	_PyRuntime[33] = offsetof(struct frame, owner);
	_PyRuntime[35] = offsetof(struct code, file);
	_PyRuntime[37] = offsetof(struct code, name);
	_PyRuntime[38] = offsetof(struct code, lines);
	_PyRuntime[39] = offsetof(struct code, first_line);
	_PyRuntime[43] = offsetof(struct code, unit);
	_PyRuntime[45] = offsetof(struct code, type);
	_PyRuntime[65] = offsetof(struct bytes, size);
	_PyRuntime[66] = offsetof(struct bytes, data);
	_PyRuntime[68] = offsetof(struct text, state);
	_PyRuntime[69] = offsetof(struct text, length);
	_PyRuntime[70] = offsetof(struct text, data);
}

/* A str of `length` characters of `width` bytes. */
#define TEXT(name, width, ascii, length_, ...) static struct text name = { \
	.state = (width) << 2 | 1 << 5 | (ascii) << 6, .length = (length_), .data = { __VA_ARGS__ } }
#define GAP 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
TEXT(file_text, 1, 1, 4, 'm', '.', 'p', 'y');
TEXT(inner_text, 1, 1, 3, 'M', '.', 'f');
TEXT(outer_text, 1, 0, 2, GAP, 'g', 0xe9);
TEXT(wide_text, 2, 0, 2, GAP, 0xac, 0x20, 'x', 0);
TEXT(widest_text, 4, 0, 1, GAP, 0x40, 0xf6, 1, 0);

/* Units 0 and 1: line 10. 2: line 12, with columns. 3: none. 4: line 300, by the long form. 5: line
 * 299, without columns. 6 to 13: line 300. */
static struct bytes lines = {.size = 17,
			     .data = {0x80 | 0 << 3 | 1, 0x11, 0x80 | 12 << 3, 5, 6, 0x80 | 15 << 3,
				      0x80 | 14 << 3, 0x40, 0x09, 0, 1, 2, 0x80 | 13 << 3, 3,
				      0x80 | 11 << 3 | 7, 1, 2}};

static struct code inner_code = {.type = &PyCode_Type,
				 .file = &file_text,
				 .lines = &lines,
				 .first_line = 10,
				 .name = &inner_text};
static struct code outer_code = {.type = &PyCode_Type,
				 .file = &file_text,
				 .lines = &lines,
				 .first_line = 10,
				 .name = &outer_text};
static struct code wide_code = {
	.type = &PyCode_Type, .file = &file_text, .first_line = 77, .name = &wide_text};
static struct code widest_code = {
	.type = &PyCode_Type, .file = &file_text, .first_line = 1, .name = &widest_text};
static struct frame marker, innermost, inner, outer, outer_marker, wide, widest;

static void make_frames(void)
{
	/* Two loops: the inner one runs three frames, then comes its marker, and the outer one has
	 * two. */
	outer_marker = (struct frame){.owner = 3};
	widest = (struct frame){
		.previous = &outer_marker, .code = &widest_code, .instruction = widest_code.unit};
	wide = (struct frame){
		.previous = &widest, .code = &wide_code, .instruction = wide_code.unit};
	marker = (struct frame){.previous = &wide, .owner = 3};
	outer = (struct frame){
		.previous = &marker, .code = &outer_code, .instruction = &outer_code.unit[4]};
	inner = (struct frame){
		.previous = &outer, .code = &inner_code, .instruction = &inner_code.unit[2]};
	innermost = (struct frame){
		.previous = &inner, .code = &inner_code, .instruction = &inner_code.unit[5]};
	thread.frame = &innermost;
}

/* The loop, which enters itself again by way of another library. */
EXPORT int _PyEval_EvalFrameDefault(int depth);

static int compare(const void *key, const void *element)
{
	return _PyEval_EvalFrameDefault(0);
}

__attribute__((noinline)) int _PyEval_EvalFrameDefault(int depth)
{
	int one = 1;
	size_t count = 1;

	if (depth)
		lfind(&one, &one, &count, sizeof(one), compare);
	else
		ss_trace_alloc(POOL, 1, 1, 0, POOL, STREAM, 0);
	__asm__ volatile("" : : "r"(&one) : "memory");
	return depth;
}

/* ---- tests --------------------------------------------------------------- */

enum fault {
	NOTHING,
	COOKIE,
	OLD,
	NEW,
	OFFSET,
	WILD_FRAME,
	ODD_FRAME,
	WILD_CODE,
	OTHER_TYPE,
	WILD_NAME,
	LONG_NAME,
	WILD_LINES,
	LONG_LINES,
	ENDLESS,
	ENDING
};

static void break_it(enum fault fault, char *nowhere)
{
	switch (fault) {
	case NOTHING: break;
	case COOKIE: _PyRuntime[0]++; break;
	case OLD: Py_Version = 0x030a0000; break;
	case NEW: _PyRuntime[1] = Py_Version = 0x03ff0000; break;
	case OFFSET: _PyRuntime[31] = 1ull << 40; break;
	case WILD_FRAME: outer.previous = (void *)nowhere; break;
	case ODD_FRAME: outer.previous = (void *)((char *)&wide + 1); break;
	case WILD_CODE: outer.code = (void *)nowhere; break;
	case OTHER_TYPE: outer_code.type = &thread; break;
	case WILD_NAME: inner_code.name = nowhere; break;
	case LONG_NAME: inner_text.length = UINT64_MAX; break;
	case WILD_LINES: inner_code.lines = nowhere; break;
	case LONG_LINES: lines.size = UINT64_MAX; break;
	case ENDLESS: outer.previous = &innermost; break;
	case ENDING: finalizing = true; break;
	}
}

struct job {
	const char *path;
	enum fault fault;
};

static void record(void *arg)
{
	struct job *job = arg;
	char *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	fill_offsets();
	make_frames();
	break_it(job->fault, nowhere);
	MUST(ss_trace_open(job->path, NULL));
	for (volatile int i = 0; i < 600; i++) /* the unwinder is asked now and then */
		_PyEval_EvalFrameDefault(1);
	ss_trace_close();
}

/* "name:line" of the frames of Python in the only stack, and " | " where others stand between
 * them. */
static void frames_with(enum fault fault, char *out, size_t size, uint32_t *count, bool *cut)
{
	struct job job = {.path = path_in("python"), .fault = fault};
	size_t stacks, used = 0, events = 0;
	struct ss_trace_item e;
	bool between = false;

	remove(job.path);
	assert_int_equal(in_child(record, &job), 0);
	struct ss_trace_reader *r = open_one(job.path);
	struct ss_symbol_files *files = ss_symbol_files_open(NULL);
	struct ss_symbolizer *names = ss_symbolizer_open(r, files);
	while (ss_trace_reader_next(r, &e))
		events += e.kind == SS_TRACE_ALLOC;
	assert_int_equal(events, 600);
	const struct ss_trace_stack_def *s = ss_trace_reader_stacks(r, &stacks);
	assert_int_equal(stacks, 1);
	out[0] = '\0';
	*count = 0;
	*cut = s->cut;
	for (uint32_t i = 0; i < s->frames; i++) {
		const struct ss_symbol *symbol;
		if (!(s->ip[i] & SS_TRACE_PYTHON_FRAME)) {
			between = *count > 0;
			continue;
		}
		assert_int_equal(ss_symbolize(names, s->ip[i], s->seen_ns, &symbol), 1);
		if (used < size) {
			used += (size_t)snprintf(out + used, size - used, "%s%s:%d ",
						 between ? "| " : "", symbol->function,
						 symbol->line);
		}
		between = false;
		(*count)++;
	}
	ss_symbolizer_close(names);
	ss_symbol_files_close(files);
	ss_trace_reader_close(r);
}

static void expect(enum fault fault, const char *want)
{
	char got[4096];
	uint32_t count;
	bool cut;

	frames_with(fault, got, sizeof(got), &count, &cut);
	assert_string_equal(got, want);
	assert_false(cut);
}

static void test_good(void **state)
{
	expect(NOTHING, "M.f:299 M.f:12 g\u00e9:300 | \u20acx:77 \U0001f640:1 ");
}

static void test_not_python(void **state)
{
	const enum fault none[] = {COOKIE,    OLD,       NEW,        OFFSET, WILD_FRAME,
				   ODD_FRAME, WILD_CODE, OTHER_TYPE, ENDING};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		expect(none[i], "");
}

/* What cannot be read is not known; the rest is. */
static void test_parts(void **state)
{
	char got[4096];
	uint32_t count;
	bool cut;

	expect(WILD_NAME, "a function of Python:299 a function of Python:12 g\u00e9:300 | "
			  "\u20acx:77 \U0001f640:1 ");
	expect(WILD_LINES, "M.f:10 M.f:10 g\u00e9:300 | \u20acx:77 \U0001f640:1 ");
	expect(LONG_LINES, "M.f:10 M.f:10 g\u00e9:10 | \u20acx:77 \U0001f640:1 ");
	frames_with(LONG_NAME, got, sizeof(got), &count, &cut);
	assert_int_equal(count, 5);
}

static void test_endless(void **state)
{
	char got[64];
	uint32_t count;
	bool cut;

	frames_with(ENDLESS, got, sizeof(got), &count, &cut);
	assert_int_equal(count, 96);
	assert_true(cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_not_python),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_endless),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
