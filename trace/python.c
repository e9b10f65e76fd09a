/* SPDX-License-Identifier: MIT */
/* Finds CPython and the frames of a thread in it. See python.h. */
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "trace/python.h"

#define OFFSET_MOST 4096u /* larger offsets are rejected */
/* 3.12 on: a frame that only marks an entry of the interpreter's loop */
#define OWNED_BY_C 3

/* CPython 3.11 and 3.12 have no table of their offsets. The offsets of a minor version never
 * change. */
static const struct ss_python_layout layout_3_11 = {
	.state_frame = 56,
	.by_cframe = true,
	.cframe_frame = 8,
	.frame_code = 32,
	.frame_previous = 48,
	.frame_instruction = 56,
	.frame_entry = 68,
	.code_file = 112,
	.code_name = 128,
	.code_lines = 136,
	.code_first_line = 72,
	.code_bytes = 184,
	.object_type = 8,
	.bytes_size = 16,
	.bytes_data = 32,
	.text_state = 32,
	.text_length = 16,
	.text_ascii = 48,
	.text_other = 72,
};
static const struct ss_python_layout layout_3_12 = {
	.state_frame = 56,
	.by_cframe = true,
	.cframe_frame = 0,
	.frame_code = 0,
	.frame_previous = 8,
	.frame_instruction = 56,
	.frame_entry = 70,
	.by_owner = true,
	.code_file = 112,
	.code_name = 128,
	.code_lines = 136,
	.code_first_line = 68,
	.code_bytes = 192,
	.object_type = 8,
	.bytes_size = 16,
	.bytes_data = 32,
	.text_state = 32,
	.text_length = 16,
	.text_ascii = 40,
	.text_other = 56,
};

/* The table of offsets at the start of _PyRuntime, for debuggers, as of 3.13. */
struct debug_offsets {
	char cookie[8];
	uint64_t version, free_threaded;
	uint64_t runtime_state[3], interpreter_state[13];
	struct {
		uint64_t size, prev, next, interp, current_frame, others[4];
	} thread_state;
	struct {
		uint64_t size, previous, executable, instr_ptr, localsplus, owner;
	} frame;
	struct {
		uint64_t size, filename, name, qualname, linetable, firstlineno, others[3],
			code_adaptive;
	} code;
	struct {
		uint64_t size, ob_type;
	} object;
	uint64_t type[4], tuple[3], list[3], dict[3], floating[2], integer[3];
	struct {
		uint64_t size, ob_size, ob_sval;
	} bytes;
	struct {
		uint64_t size, state, length, asciiobject_size;
	} text;
};

bool ss_python_peek(uintptr_t from, void *to, size_t size)
{
	struct iovec local = {.iov_base = to, .iov_len = size};
	struct iovec remote = {.iov_base = (void *)from, .iov_len = size};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* ---- the interpreter ---------------------------------------------------- */

static bool take_offsets(struct ss_python_layout *l, uintptr_t runtime, uint64_t version)
{
	struct debug_offsets d;

	if (!ss_python_peek(runtime, &d, sizeof(d)) || memcmp(d.cookie, "xdebugpy", 8) != 0 ||
	    d.version != version)
		return false;
	const uint64_t offset[] = {d.thread_state.current_frame,
				   d.frame.previous,
				   d.frame.executable,
				   d.frame.instr_ptr,
				   d.frame.owner,
				   d.code.filename,
				   d.code.qualname,
				   d.code.linetable,
				   d.code.firstlineno,
				   d.code.code_adaptive,
				   d.object.ob_type,
				   d.bytes.ob_size,
				   d.bytes.ob_sval,
				   d.text.state,
				   d.text.length,
				   d.text.asciiobject_size};
	for (size_t i = 0; i < sizeof(offset) / sizeof(offset[0]); i++)
		if (offset[i] > OFFSET_MOST)
			return false;
	*l = (struct ss_python_layout){
		.state_frame = (uint16_t)d.thread_state.current_frame,
		.frame_code = (uint16_t)d.frame.executable,
		.frame_previous = (uint16_t)d.frame.previous,
		.frame_instruction = (uint16_t)d.frame.instr_ptr,
		.frame_entry = (uint16_t)d.frame.owner,
		.by_owner = true,
		.code_file = (uint16_t)d.code.filename,
		.code_name = (uint16_t)d.code.qualname,
		.code_lines = (uint16_t)d.code.linetable,
		.code_first_line = (uint16_t)d.code.firstlineno,
		.code_bytes = (uint16_t)d.code.code_adaptive,
		.object_type = (uint16_t)d.object.ob_type,
		.bytes_size = (uint16_t)d.bytes.ob_size,
		.bytes_data = (uint16_t)d.bytes.ob_sval,
		.text_state = (uint16_t)d.text.state,
		.text_length = (uint16_t)d.text.length,
		.text_ascii = (uint16_t)d.text.asciiobject_size,
		/* A length and a pointer to UTF-8 follow in texts that are not ASCII. */
		.text_other = (uint16_t)(d.text.asciiobject_size + 16),
	};
	return true;
}

struct search {
	struct ss_python *p;
	uintptr_t address;
};

static int find_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct search *s = arg;
	uintptr_t start = UINTPTR_MAX, end = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		start = at < start ? at : start;
		end = at + info->dlpi_phdr[i].p_memsz > end ? at + info->dlpi_phdr[i].p_memsz : end;
	}
	if (s->address < start || s->address >= end)
		return 0;
	s->p->own_start = start;
	s->p->own_end = end;
	return 1;
}

/* The module of the interpreter, and the extent of its loop. */
static void find_code(struct ss_python *p, uintptr_t runtime)
{
	void *loop = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
	const ElfW(Sym) *symbol = NULL;
	struct search s = {p, runtime};
	Dl_info info;

	(void)dl_iterate_phdr(find_module, &s);
	if (loop && dladdr1(loop, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol) {
		p->loop_start = (uintptr_t)loop;
		p->loop_end = (uintptr_t)loop + symbol->st_size;
	}
}

void ss_python_look(struct ss_python *p)
{
	if (atomic_load_explicit(&p->state, memory_order_relaxed) != SS_PYTHON_NONE)
		return;
	const unsigned long *version = dlsym(RTLD_DEFAULT, "Py_Version"); /* from 3.11 on */
	if (!version)
		return;
	uintptr_t runtime = (uintptr_t)dlsym(RTLD_DEFAULT, "_PyRuntime");
	bool known = false;
	*(void **)&p->thread_state = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
	*(void **)&p->is_finalizing = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
	if (!p->is_finalizing) /* the function's name before 3.13 */
		*(void **)&p->is_finalizing = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
	p->code_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyCode_Type");
	switch (*version >> 16) {
	case 0x30b:
		p->layout = layout_3_11;
		known = true;
		break;
	case 0x30c:
		p->layout = layout_3_12;
		known = true;
		break;
	case 0x30d: known = runtime && take_offsets(&p->layout, runtime, *version); break;
	default: break;
	}
	known = known && runtime && p->thread_state && p->is_finalizing && p->code_type;
	if (known)
		find_code(p, runtime);
	atomic_store_explicit(&p->state, known ? SS_PYTHON_FOUND : SS_PYTHON_OFF,
			      memory_order_release);
}

/* ---- frames ------------------------------------------------------------- */

#define AT(type, address, offset) (*(const type *)((address) + (offset)))

/* The innermost frame of the calling thread; 0 if it runs no Python. */
__attribute__((no_sanitize_address, no_sanitize_thread)) static uintptr_t first_frame(
	const struct ss_python *p)
{
	/* When the interpreter ends, it frees the states of threads that still run. */
	uintptr_t state = p->is_finalizing() ? 0 : (uintptr_t)p->thread_state();

	if (state && p->layout.by_cframe) {
		state = AT(uintptr_t, state, p->layout.state_frame);
		return state ? AT(uintptr_t, state, p->layout.cframe_frame) : 0;
	}
	return state ? AT(uintptr_t, state, p->layout.state_frame) : 0;
}

/* Reads one frame, and returns the address of the next outer one. */
__attribute__((no_sanitize_address, no_sanitize_thread)) static uintptr_t read_frame(
	const struct ss_python_layout *l, uintptr_t at, struct ss_python_frame *f)
{
	unsigned char entry = AT(unsigned char, at, l->frame_entry);

	f->code = AT(uintptr_t, at, l->frame_code);
	f->instruction = AT(uintptr_t, at, l->frame_instruction);
	f->entry = l->by_owner ? entry == OWNED_BY_C : entry;
	return AT(uintptr_t, at, l->frame_previous);
}

/* A frame of 3.12 and later that marks an entry runs no code of Python. */
static bool is_marker(const struct ss_python_layout *l, const struct ss_python_frame *f)
{
	return l->by_owner && f->entry;
}

/* Bytes of a frame up to the last field that is read. */
static size_t frame_size(const struct ss_python_layout *l)
{
	const size_t end[] = {l->frame_code + sizeof(void *), l->frame_previous + sizeof(void *),
			      l->frame_instruction + sizeof(void *), l->frame_entry + 1u};
	size_t most = 0;

	for (size_t i = 0; i < sizeof(end) / sizeof(end[0]); i++)
		most = end[i] > most ? end[i] : most;
	return most;
}

/* Follows the chain through the kernel. The layout is trusted only if all frames have code. */
static bool prove(struct ss_python *p)
{
	const struct ss_python_layout *l = &p->layout;
	uintptr_t state = p->is_finalizing() ? 0 : (uintptr_t)p->thread_state(), at = 0, type;
	unsigned char room[128];
	size_t size = frame_size(l);
	uint32_t count = 0;
	bool good;

	if (!state)
		return false; /* no Python on this thread: not known yet */
	good = ss_python_peek(state + l->state_frame, &at, sizeof(at)) &&
	       (!l->by_cframe || ss_python_peek(at + l->cframe_frame, &at, sizeof(at)));
	if (good && !at)
		return false;
	good = good && size <= sizeof(room);
	for (; good && at && count < SS_PYTHON_FRAMES; count++) {
		struct ss_python_frame f;

		good = at % sizeof(void *) == 0 && ss_python_peek(at, room, size);
		if (good) {
			at = read_frame(l, (uintptr_t)room, &f);
			good = is_marker(l, &f) ||
			       (ss_python_peek(f.code + l->object_type, &type, sizeof(type)) &&
				type == p->code_type);
		}
	}
	atomic_store_explicit(&p->state, good ? SS_PYTHON_PROVEN : SS_PYTHON_OFF,
			      memory_order_release);
	return good;
}

static bool is_usable(struct ss_python *p)
{
	enum ss_python_state state = atomic_load_explicit(&p->state, memory_order_acquire);

	return state == SS_PYTHON_PROVEN || (state == SS_PYTHON_FOUND && prove(p));
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

__attribute__((no_sanitize_address, no_sanitize_thread)) uint64_t ss_python_hash(
	struct ss_python *p, uint64_t hash)
{
	const struct ss_python_layout *l = &p->layout;
	struct ss_python_frame f;

	if (!is_usable(p))
		return hash;
	uintptr_t at = first_frame(p);
	for (uint32_t n = 0; at && n < SS_PYTHON_FRAMES;) {
		at = read_frame(l, at, &f);
		if (!is_marker(l, &f)) {
			/* New code may lie at the address of freed code; then its name and line lie
			 * at another address. */
			hash = mix(hash, f.instruction);
			hash = mix(hash, AT(uintptr_t, f.code, l->code_name) ^
						 AT(uint32_t, f.code, l->code_first_line));
			n++;
		}
	}
	return hash ? hash : 1;
}

uint32_t ss_python_frames(struct ss_python *p, struct ss_python_frame *frames, bool *cut)
{
	struct ss_python_frame f;
	uint32_t n = 0;

	*cut = false;
	if (!is_usable(p))
		return 0;
	for (uintptr_t at = first_frame(p); at;) {
		at = read_frame(&p->layout, at, &f);
		if (!is_marker(&p->layout, &f)) {
			if (n == SS_PYTHON_FRAMES) {
				*cut = true;
				break;
			}
			frames[n++] = f;
		} else if (n) {
			frames[n - 1].entry = true;
		}
	}
	return n;
}

/* Is this return address in the interpreter, and in its loop, which runs Python frames? */
static bool is_own(const struct ss_python *p, uintptr_t ip, bool *in_loop)
{
	*in_loop = ip > p->loop_start && ip <= p->loop_end;
	return ip >= p->own_start && ip < p->own_end;
}

void ss_python_merge(const struct ss_python *p, const uintptr_t *ip, uint32_t count,
		     const struct ss_python_frame *frames, uint32_t frame_count,
		     void (*each)(uintptr_t ip, const struct ss_python_frame *frame, void *arg),
		     void *arg)
{
	bool in_loop = false;
	uint32_t next = 0;

	for (uint32_t i = 0; i < count && frame_count; i++) {
		bool last_of_loop = in_loop && i + 1 == count;

		if (!is_own(p, ip[i], &in_loop)) {
			/* Otherwise a trampoline of `python -X perf`, at which unwinding ends */
			if (!last_of_loop)
				each(ip[i], NULL, arg);
			continue;
		}
		for (bool inside = in_loop; inside && next < frame_count; next++) {
			each(0, &frames[next], arg);
			inside = !frames[next].entry;
		}
	}
	for (; next < frame_count; next++)
		each(0, &frames[next], arg);
}
