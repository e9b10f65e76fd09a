/* SPDX-License-Identifier: MIT */
/*
 * Call stacks: those that the recording finds with its table are the same as those of an
 * unwinder, also through functions with frames of a changing size, in modules that come and go,
 * and on stacks that the program switches. Names are found for them.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "trace/fortran_name.h"
#include "trace/symbolize.h"
#include "trace/unwind.h"
#include "trace_test.h"

#define EVENTS 20000
#define DEPTH 64

struct truth { /* what backtrace() says about each event */
	int frames[EVENTS];
	void *ip[EVENTS][DEPTH];
};

static struct truth *truth; /* shared with the child */
static unsigned seed;
static const char *plugin_path;
static const char *self_path;

static __attribute__((noinline)) void leaf(int n)
{
	truth->frames[n] = backtrace(truth->ip[n], DEPTH);
	ss_trace_alloc(address(0, (uint64_t)n), 1, 1, 0, POOL, STREAM, 0);
}

static void branch(int n, int depth, uint64_t random);

static __attribute__((noinline)) void fixed(int n, int depth, uint64_t random)
{
	volatile char room[100];

	room[0] = 1;
	branch(n, depth, random);
	(void)room[0];
}

static __attribute__((noinline)) void changing(int n, int depth, uint64_t random)
{
	volatile char *room = alloca(16 + random % 300);

	room[0] = 1;
	branch(n, depth, random);
	(void)room[0];
}

static __attribute__((noinline)) void aligned(int n, int depth, uint64_t random)
{
	volatile char room[64] __attribute__((aligned(64)));

	room[0] = 1;
	branch(n, depth, random);
	(void)room[0];
}

static __attribute__((noinline)) void branch(int n, int depth, uint64_t random)
{
	uint64_t rest = random * 6364136223846793005ull + 1442695040888963407ull;

	if (depth == 0)
		leaf(n);
	else if (random >> 60 < 8)
		fixed(n, depth - 1, rest);
	else if (random >> 60 < 12)
		changing(n, depth - 1, rest);
	else
		aligned(n, depth - 1, rest);
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

static void record_random(void *path)
{
	MUST(ss_trace_open(path, NULL));
	for (int n = 0; n < EVENTS; n++) {
		uint64_t random = (seed + (uint64_t)(n % 2000)) * 0x9e3779b97f4a7c15ull;
		branch(n, (int)((random >> 20) % 12), random);
	}
	ss_trace_close();
}

/* All frames but those in front of leaf() and leaf() itself are equal. */
static void compare(const struct ss_trace_stack_def *s, int n)
{
	uint32_t frames = s->frames, real = (uint32_t)truth->frames[n];

	assert_true(real > 3 && real < DEPTH && frames >= real - 1);
	for (uint32_t i = 1; i <= real - 2; i++) { /* from the outermost on */
		if ((uint64_t)(uintptr_t)truth->ip[n][real - i] != s->ip[frames - i]) {
			fail_msg("seed %u: event %d: frame %u from the outside differs", seed, n,
				 i);
		}
	}
}

static void test_random_stacks(void **state)
{
	const char *path = path_in("random");
	struct ss_trace_item e;
	int n = 0;

	assert_int_equal(in_child(record_random, (void *)path), 0);
	struct ss_trace_reader *r = open_one(path);
	while (ss_trace_reader_next(r, &e)) {
		const struct ss_trace_stack_def *s = ss_trace_reader_stack(r, e.stack);
		assert_non_null(s);
		compare(s, n++);
	}
	assert_int_equal(n, EVENTS);
	ss_trace_reader_close(r);
}

/* ---- stacks that the program switches ----------------------------------- */

static ucontext_t main_context, fiber_context;
static int next_event;

static void fiber(void)
{
	for (;;) {
		uint64_t random = (uint64_t)next_event * 0x9e3779b97f4a7c15ull;
		branch(next_event++, 3, random);
		swapcontext(&fiber_context, &main_context);
	}
}

static void record_fibers(void *path)
{
	const size_t size = 256 << 10;
	char *volatile stack = NULL;

	MUST(ss_trace_open(path, NULL));
	while (next_event < EVENTS) {
		if (next_event % 1000 == 0) { /* a new fiber; the stack of the old one goes */
			if (stack)
				munmap(stack, size);
			stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			MUST(stack != MAP_FAILED);
			getcontext(&fiber_context);
			fiber_context.uc_stack.ss_sp = stack;
			fiber_context.uc_stack.ss_size = size;
			makecontext(&fiber_context, fiber, 0);
		}
		swapcontext(&main_context, &fiber_context);
		branch(next_event, 2, (uint64_t)next_event * 0x9e3779b97f4a7c15ull);
		next_event++;
	}
	ss_trace_close();
}

static void test_fibers(void **state)
{
	const char *path = path_in("fibers");
	struct ss_trace_item e;
	int n = 0;

	assert_int_equal(in_child(record_fibers, (void *)path), 0);
	struct ss_trace_reader *r = open_one(path);
	while (ss_trace_reader_next(r, &e))
		compare(ss_trace_reader_stack(r, e.stack), n++);
	assert_int_equal(n, EVENTS);
	ss_trace_reader_close(r);
}

/* ---- deep recursion ----------------------------------------------------- */

static __attribute__((noinline)) void recurse(int depth)
{
	if (depth)
		recurse(depth - 1);
	else
		ss_trace_alloc(POOL, 1, 1, 0, POOL, STREAM, 0);
	__asm__ volatile("" ::: "memory");
}

static void record_deep(void *path)
{
	MUST(ss_trace_open(path, NULL));
	for (int i = 0; i < 100; i++) {
		recurse(5);
		recurse(1000);
		recurse(400); /* the inner frames are the same, and only those fit */
	}
	ss_trace_close();
}

static void test_deep(void **state)
{
	const char *path = path_in("deep");
	size_t count, cut = 0;

	assert_int_equal(in_child(record_deep, (void *)path), 0);
	struct ss_trace_reader *r = open_one(path);
	const struct ss_trace_stack_def *s = ss_trace_reader_stacks(r, &count);
	assert_int_equal(count, 2);
	for (size_t i = 0; i < count; i++) {
		cut += s[i].cut;
		assert_true(s[i].frames <= SS_TRACE_FRAMES_MAX);
	}
	assert_int_equal(cut, 1);
	ss_trace_reader_close(r);
}

/* ---- without an unwinder ------------------------------------------------ */

static bool count_frame(struct ss_frame frame, void *arg)
{
	int n = truth->frames[0]++;

	truth->ip[0][n] = (void *)frame.ip;
	return n < DEPTH - 2;
}

/* This process has not called ss_unwind_init(), so that frame pointers are followed. */
static __attribute__((noinline)) void chain_leaf(void)
{
	uintptr_t fp = (uintptr_t)__builtin_frame_address(0);
	struct ss_frame first = {.ip = (uintptr_t)__builtin_return_address(0),
				 .sp = fp + 2 * sizeof(void *)};

	truth->frames[0] = 0;
	truth->frames[1] = backtrace(truth->ip[1], DEPTH);
	ss_unwind(&first, fp, count_frame, NULL);
}

static __attribute__((noinline)) void chain_middle(int depth)
{
	if (depth)
		chain_middle(depth - 1);
	else
		chain_leaf();
	__asm__ volatile("" ::: "memory");
}

static void test_frame_pointers(void **state)
{
	int inner = 0; /* frames of backtrace() and of chain_leaf() */

	chain_middle(5);
	assert_true(truth->frames[0] >= 7);
	while (inner < truth->frames[1] && truth->ip[1][inner] != truth->ip[0][0])
		inner++;
	assert_true(inner + 7 <= truth->frames[1]);
	for (int i = 0; i < 7; i++) /* frames of libraries may have no frame pointer */
		assert_ptr_equal(truth->ip[0][i], truth->ip[1][inner + i]);
}

/* ---- modules ------------------------------------------------------------ */

static void record_plugin(void *path)
{
	void (*call)(void (*)(int), int);

	MUST(ss_trace_open(path, NULL));
	leaf(0);
	for (int i = 1; i <= 3; i++) {
		void *lib = dlopen(plugin_path, RTLD_NOW);
		MUST(lib);
		*(void **)&call = dlsym(lib, "plugin_call");
		MUST(call);
		call(leaf, 2 * i - 1);
		dlclose(lib);
		/* Noticed at the next stack that is new. */
		branch(2 * i, i, 0);
	}
	ss_trace_close();
}

static void test_modules(void **state)
{
	const char *path = path_in("plugin");
	size_t count, loads = 0, gone = 0;
	struct ss_trace_item e;
	int n = 0;

	assert_int_equal(in_child(record_plugin, (void *)path), 0);
	struct ss_trace_reader *r = open_one(path);
	const struct ss_trace_module_def *m = ss_trace_reader_modules(r, &count);
	for (size_t i = 0; i < count; i++) {
		if (strstr(m[i].path, "trace_plugin")) {
			loads++;
			gone += m[i].gone_ns != UINT64_MAX;
			assert_true(m[i].build_id_length > 0 && m[i].segments > 0);
		}
	}
	assert_int_equal(loads, 3);
	assert_int_equal(gone, 3);
	while (ss_trace_reader_next(r, &e)) {
		const struct ss_trace_stack_def *s = ss_trace_reader_stack(r, e.stack);
		bool through = false;
		for (uint32_t i = 0; i < s->frames; i++) {
			m = ss_trace_reader_module_at(r, s->ip[i] - 1, e.time_ns);
			assert_non_null(m);
			through |= strstr(m->path, "trace_plugin") != NULL;
		}
		assert_int_equal(through, n % 2);
		n++;
	}
	assert_int_equal(n, 7);
	ss_trace_reader_close(r);
}

/* ---- names -------------------------------------------------------------- */

static inline __attribute__((always_inline)) void inlined_into_outer(void)
{
	ss_trace_alloc(POOL, 1, 1, 0, POOL, STREAM, 0);
}

static __attribute__((noinline)) void chain_inner(void)
{
	inlined_into_outer();
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void chain_outer(void)
{
	chain_inner();
	__asm__ volatile("" ::: "memory");
}

/* The functions that the stack of the first event has, in order; NULL ends the list. */
static void check_names(const char *path, const char *debug_path, const char *const *want)
{
	struct ss_trace_item e;
	struct ss_trace_reader *r = open_one(path);
	struct ss_symbol_files *files = ss_symbol_files_open(debug_path);
	struct ss_symbolizer *names = ss_symbolizer_open(r, files);

	assert_non_null(names);
	assert_true(ss_trace_reader_next(r, &e));
	const struct ss_trace_stack_def *s = ss_trace_reader_stack(r, e.stack);
	for (uint32_t i = 0; i < s->frames; i++) {
		const struct ss_symbol *symbol;
		uint32_t n = ss_symbolize(names, s->ip[i], e.time_ns, &symbol);
		for (uint32_t k = 0; k < n; k++) {
			assert_int_equal(symbol[k].inlined, k + 1 < n);
			if (*want && symbol[k].function && strcmp(symbol[k].function, *want) == 0) {
				assert_non_null(strstr(symbol[k].source, "test_stack.c"));
				assert_true(symbol[k].line > 0);
				want++;
			}
		}
	}
	if (*want)
		fail_msg("%s is not in the stack, or not in its place", *want);
	ss_symbolizer_close(names);
	ss_symbol_files_close(files);
	ss_trace_reader_close(r);
}

static void record_chain(void *path)
{
	MUST(ss_trace_open(path, NULL));
	chain_outer();
	ss_trace_close();
}

static const char *const chain[] = {"inlined_into_outer", "chain_inner", "chain_outer", NULL};
static const char *const nothing[] = {NULL};

static void test_names(void **state)
{
	const char *path = path_in("names");

	assert_int_equal(in_child(record_chain, (void *)path), 0);
	check_names(path, NULL, chain);
	check_names(path, "/no/such/folder:", chain);
}

/* The program is not where it was, as on another machine. */
static void test_names_elsewhere(void **state)
{
	const char *path = path_in("elsewhere");
	char command[1024];

	snprintf(command, sizeof(command),
		 "mkdir -p %s/moved && cp %s %s/program && %s/program --chain %s && mv %s/program "
		 "%s",
		 dir, self_path, dir, dir, path, dir, path_in("moved/program"));
	assert_int_equal(system(command), 0);
	check_names(path, NULL, nothing);
	check_names(path, path_in("moved"), chain);
	snprintf(command, sizeof(command), "cp /bin/true %s", path_in("moved/program"));
	assert_int_equal(system(command), 0); /* another build must not give wrong names */
	check_names(path, path_in("moved"), nothing);
}

static void test_fortran(void **state)
{
	static const char *const names[][2] = {
		{"__solver_MOD_assemble", "solver::assemble"},
		{"__mesh_parts_MOD_split_2", "mesh_parts::split_2"},
		{"_QMsolverPassemble", "solver::assemble"},
		{"_QMmeshSpartsPsplit", "mesh::parts::split"},
		{"_QFmainPstep", "main::step"},
		{"_QPmatmul_", "matmul_"},
		{"__MOD_", NULL},
		{"___MOD_", NULL},
		{"_Z3foov", NULL},
		{"_QMsolver", NULL},
		{"_Q", NULL},
		{"_QP", NULL},
		{"_QQmain", NULL},
		{"__libc_start_main", NULL},
	};
	char out[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		bool is = ss_fortran_name(names[i][0], out, sizeof(out));
		if (is != (names[i][1] != NULL) || (is && strcmp(out, names[i][1]) != 0))
			fail_msg("%s: %s", names[i][0], is ? out : "no name");
	}
	assert_false(ss_fortran_name("__solver_MOD_assemble", out, 16));
	assert_false(ss_fortran_name("_QMsolverPassemble", out, 16));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fortran),        cmocka_unit_test(test_random_stacks),
		cmocka_unit_test(test_fibers),         cmocka_unit_test(test_deep),
		cmocka_unit_test(test_frame_pointers), cmocka_unit_test(test_modules),
		cmocka_unit_test(test_names),          cmocka_unit_test(test_names_elsewhere),
	};

	if (argc == 3 && strcmp(argv[1], "--chain") == 0) {
		record_chain(argv[2]);
		return 0;
	}
	self_path = argv[0];
	plugin_path = argv[1];
	seed = argc > 2 ? (unsigned)atoi(argv[2]) : (unsigned)getpid();
	printf("seed %u\n", seed);
	truth = mmap(NULL, sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	backtrace(truth->ip[0], DEPTH); /* loads what it needs */
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
