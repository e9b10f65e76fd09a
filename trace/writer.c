/* SPDX-License-Identifier: MIT */
/*
 * The recording: starts and ends it, gives each thread a block of the file, and appends records
 * to that block. Threads share no lock. See writer.h and docs/trace-format.md.
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/uncancelled.h"
#include "trace/cut_guard.h"
#include "trace/modules.h"
#include "trace/process_info.h"
#include "trace/record.h"
#include "trace/unwind.h"
#include "trace/writer.h"

#define PATTERN_SIZE 4096
/* A generation that makes the next event of a forked child start a recording. */
#define GENERATION_FORKED UINT64_MAX
/* A block with less room than this is not given to another thread. */
#define PARTIAL_LEAST 4096u

static _Atomic uint64_t no_generation;
_Atomic uint64_t *ss_trace_generation = &no_generation;

static struct ss_trace_live *live; /* mapped by the first ss_trace_open(), never unmapped */
static char pattern[PATTERN_SIZE];
static uint32_t ring; /* blocks; 0: no ring */
static void (*say)(const char *line);
static pthread_key_t thread_key;
/* Number of recordings of this process and of its ancestors by fork */
static uint64_t generations;
static bool recording;            /* a child that is forked now will be recorded, too */
static bool forked;               /* `file` is the parent's */
static struct ss_trace_file file; /* a copy that the kernel does not clear */

static _Thread_local struct ss_trace_thread_state self __attribute__((tls_model("initial-exec")));

uint64_t ss_trace_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- blocks ------------------------------------------------------------- */

/* Ends the recording because the file cannot grow. */
static void stop(struct ss_trace_live *l, int err)
{
	char line[160], why[96];

	if (atomic_exchange(&l->generation, 0) == 0)
		return; /* another thread did */
	recording = false;
	l->file.header->state = SS_TRACE_FULL;
	if (say) {
		snprintf(line, sizeof(line), "the recording ends here: %s",
			 err == SS_TRACE_CUT ? "something has cut its file" :
					       strerror_r(err, why, sizeof(why)));
		say(line);
	}
}

/* For the handler of the guard. A thread writes to the header and to its own block only. */
static bool find_mapping(const void *at, void **from, size_t *size)
{
	const struct {
		void *from;
		size_t size;
	} mapped[] = {{live ? live->file.header : NULL, live ? live->file.header_size : 0},
		      {self.block, SS_TRACE_BLOCK_SIZE}};

	for (size_t i = 0; i < sizeof(mapped) / sizeof(mapped[0]); i++) {
		if (!mapped[i].from || (uintptr_t)at - (uintptr_t)mapped[i].from >= mapped[i].size)
			continue;
		*from = mapped[i].from;
		*size = mapped[i].size;
		atomic_store(&live->cut, true);
		return true;
	}
	return false;
}

static uint32_t gettid_now(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

/* Keeps the rest of a block for another thread, if there is enough of it. */
static void give_away(struct ss_trace_live *l, struct ss_trace_thread_state *t)
{
	uint64_t word = (uint64_t)(uintptr_t)t->block | (uint64_t)(t->used / 8) << 48;

	if (t->used <= SS_TRACE_BLOCK_SIZE - PARTIAL_LEAST) {
		for (uint32_t i = 0; i < SS_TRACE_PARTIAL; i++) {
			uint64_t none = 0;
			uint32_t no_number = 0;
			/* The number is set first, so a thread that finds a block also finds its
			 * number. */
			if (atomic_compare_exchange_strong(&l->partial_number[i], &no_number,
							   t->number + 1)) {
				atomic_store(&l->partial_last[i], t->last);
				atomic_compare_exchange_strong(&l->partial[i], &none, word);
				t->block = NULL;
				return;
			}
		}
	}
	ss_trace_file_done(&l->file, t->block, t->last);
	t->block = NULL;
}

/* Records in a block are in the order of time, so the block must have none after `now`. */
static bool take_partial(struct ss_trace_live *l, struct ss_trace_thread_state *t, uint64_t now)
{
	for (uint32_t i = 0; i < SS_TRACE_PARTIAL; i++) {
		uint64_t word = atomic_load_explicit(&l->partial[i], memory_order_relaxed);

		if (word && atomic_load(&l->partial_last[i]) <= now &&
		    atomic_compare_exchange_strong(&l->partial[i], &word, 0)) {
			t->block = (char *)(uintptr_t)(word & 0xffffffffffffull);
			t->used = (uint32_t)(word >> 48) * 8;
			t->number = atomic_exchange(&l->partial_number[i], 0) - 1;
			return true;
		}
	}
	return false;
}

static struct ss_trace_record *append(struct ss_trace_thread_state *t, uint32_t size)
{
	struct ss_trace_record *r = (void *)(t->block + t->used);

	t->used += size;
	return r;
}

static void publish(struct ss_trace_record *r, enum ss_trace_kind kind, uint32_t size)
{
	r->words = (uint8_t)(size / 8);
	/* When the process is killed, the kernel keeps all stores so far, in this order. */
	__atomic_store_n(&r->kind, (uint8_t)kind, __ATOMIC_RELEASE);
}

static void set_base(struct ss_trace_thread_state *t, uint64_t now)
{
	struct ss_trace_time *r = (void *)append(t, sizeof(*r));

	r->base_ns = now;
	t->base = now;
	publish(&r->r, SS_TRACE_TIME, sizeof(*r));
}

static void name_thread(struct ss_trace_thread_state *t, uint32_t tid)
{
	struct ss_trace_thread *r = (void *)append(t, sizeof(*r));

	r->tid = tid;
	prctl(PR_GET_NAME, r->name);
	r->name[sizeof(r->name) - 1] = '\0';
	publish(&r->r, SS_TRACE_THREAD, sizeof(*r));
}

/* Gives the thread a block with room for a record of the longest kind. */
static bool next_block(struct ss_trace_context *c)
{
	struct ss_trace_thread_state *t = c->thread;
	bool first = !t->block;
	int err = 0;

	if (t->block) {
		ss_trace_file_done(&c->live->file, t->block, t->last);
		t->block = NULL;
	}
	if (first) /* the thread's destructor passes the block on */
		pthread_setspecific(thread_key, t);
	if (first && take_partial(c->live, t, c->now)) {
		name_thread(t, gettid_now());
		set_base(t, c->now);
	} else {
		t->block = ss_trace_file_block(&c->live->file, &t->number);
		err = errno;
		if (t->block) {
			struct ss_trace_block *b = (void *)t->block;
			b->tid = gettid_now();
			b->base_ns = c->now;
			__atomic_store_n(&b->magic, SS_TRACE_BLOCK_MAGIC, __ATOMIC_RELEASE);
			t->used = sizeof(*b);
			t->base = c->now;
			if (first)
				name_thread(t, b->tid);
		}
	}
	if (!t->block && err == EBUSY)
		__atomic_fetch_add(&c->live->file.header->lost_events, 1, __ATOMIC_RELAXED);
	else if (!t->block)
		stop(c->live, err);
	return t->block != NULL;
}

void *ss_trace_begin(struct ss_trace_context *c, uint32_t size)
{
	struct ss_trace_thread_state *t = c->thread;

	/* The last 8 bytes of a block stay 0. */
	if ((!t->block ||
	     t->used + size + sizeof(struct ss_trace_time) + 8 > SS_TRACE_BLOCK_SIZE) &&
	    !next_block(c))
		return NULL;
	if (c->now - t->base > UINT32_MAX)
		set_base(t, c->now);
	struct ss_trace_record *r = append(t, size);
	r->dt = (uint32_t)(c->now - t->base);
	return r;
}

void ss_trace_commit(struct ss_trace_context *c, void *record, enum ss_trace_kind kind,
		     uint32_t size, uint32_t pool)
{
	struct ss_trace_record *r = record;

	r->pool = (uint16_t)pool;
	publish(r, kind, size);
	c->thread->last = c->now;
}

/* ---- threads ------------------------------------------------------------ */

static void thread_ended(void *arg)
{
	struct ss_trace_thread_state *t = arg;

	SS_UNCANCELLED; /* a thread that returns may still be cancelled here */
	if (live && t->block &&
	    t->generation == atomic_load_explicit(&live->generation, memory_order_relaxed))
		give_away(live, t);
	t->block = NULL;
}

static bool start(uint64_t generation, struct ss_trace_thread_state *t);

bool ss_trace_enter(struct ss_trace_context *c, uint64_t when)
{
	struct ss_trace_thread_state *t = &self;
	uint64_t generation = atomic_load_explicit(&live->generation, memory_order_acquire);

	if (generation == GENERATION_FORKED) {
		if (!atomic_compare_exchange_strong(&live->generation, &generation, 0) ||
		    !start(++generations, t))
			return false;
		generation = generations;
	}
	if (generation == 0)
		return false;
	if (t->generation != generation) /* the first event of the thread, or after a fork */
		*t = (struct ss_trace_thread_state){.generation = generation};
	if (t->busy) {
		__atomic_fetch_add(&live->file.header->lost_events, 1, __ATOMIC_RELAXED);
		return false;
	}
	t->busy = true;
	c->live = live;
	c->thread = t;
	c->now = when ? when : ss_trace_clock();
	c->now = c->now < t->last ? t->last : c->now;
	return true;
}

void ss_trace_leave(struct ss_trace_context *c)
{
	if (atomic_load_explicit(&c->live->cut, memory_order_relaxed))
		stop(c->live, SS_TRACE_CUT);
	c->thread->busy = false;
}

/* ---- start, fork, end --------------------------------------------------- */

static void fill_header(struct ss_trace_header *h)
{
	struct timespec real;
	uint64_t magic;

	h->major = SS_TRACE_MAJOR;
	h->minor = SS_TRACE_MINOR;
	h->endian = SS_TRACE_ENDIAN;
	h->header_size = live->file.header_size;
	h->block_size = SS_TRACE_BLOCK_SIZE;
	h->pid = (uint32_t)getpid();
	h->ppid = (uint32_t)getppid();
	h->page_size = (uint32_t)sysconf(_SC_PAGESIZE);
	h->boottime_ns = ss_trace_clock();
	clock_gettime(CLOCK_REALTIME, &real);
	h->realtime_ns = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
	memcpy(&magic, SS_TRACE_MAGIC, sizeof(magic));
	__atomic_store_n((uint64_t *)(void *)h->magic, magic, __ATOMIC_RELEASE);
}

/* Starts a recording in `live`, which is all zero. False with errno set. */
static bool start(uint64_t generation, struct ss_trace_thread_state *t)
{
	/* Static, because the stack of a thread may be small. */
	static char path[PATTERN_SIZE + 1024], line[sizeof(path) + 64], why[96];
	struct ss_trace_context c = {.live = live, .thread = t};
	unsigned number;

	if (forked) {
		ss_trace_file_close(&file);
		forked = false;
	}
	bool opened = ss_trace_file_open(&live->file, pattern, ring, path, sizeof(path), &number);
	if (opened) {
		file = live->file;
		fill_header(live->file.header);
		*t = (struct ss_trace_thread_state){.generation = generation, .busy = true};
		c.now = ss_trace_clock();
		ss_trace_process_info(&c);
		ss_trace_modules_update(&c);
		t->busy = false;
		if (!t->block) {
			opened = false;
			ss_trace_file_undo(&live->file);
		}
	}
	if (opened && number > 1 && say) {
		snprintf(line, sizeof(line), "its name is taken, so this recording is %s", path);
		say(line);
	}
	if (opened) {
		recording = true;
		atomic_store_explicit(&live->generation, generation, memory_order_release);
	} else if (say && generation > 1) { /* no other code reports the failure for a child */
		snprintf(line, sizeof(line), "no recording of the forked process: %s",
			 strerror_r(errno, why, sizeof(why)));
		say(line);
	}
	return opened;
}

static void before_fork(void)
{
	ss_trace_modules_wait(live);
}

/* The kernel has cleared `live`. */
static void after_fork_in_child(void)
{
	if (recording) {
		forked = true;
		recording = false;
		atomic_store(&live->generation, GENERATION_FORKED);
	}
}

void ss_trace_set_ring(uint64_t bytes)
{
	uint64_t blocks = bytes / SS_TRACE_BLOCK_SIZE;

	ring = blocks < SS_TRACE_RING_MOST ? (uint32_t)blocks : SS_TRACE_RING_MOST;
	ring = bytes && ring < SS_TRACE_RING_LEAST ? SS_TRACE_RING_LEAST : ring;
}

void ss_trace_prepare(void)
{
	ss_unwind_init();
}

bool ss_trace_open(const char *path, void (*say_line)(const char *line))
{
	if (live || strlen(path) >= sizeof(pattern)) {
		errno = live ? EBUSY : ENAMETOOLONG;
		return false;
	}
	struct ss_trace_live *l = mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (l == MAP_FAILED)
		return false;
	if (madvise(l, sizeof(*l), MADV_WIPEONFORK) != 0) /* Linux before 4.14 */
		goto error_map;
	int rc = pthread_key_create(&thread_key, thread_ended);
	if (rc != 0) {
		errno = rc;
		goto error_map;
	}
	strcpy(pattern, path);
	say = say_line;
	ss_trace_prepare();
	live = l;
	ss_trace_generation = &live->generation;
	generations = 1;
	if (!start(generations, &self))
		return false; /* the prepared state stays unused */
	ss_cut_guard(find_mapping);
	pthread_atfork(before_fork, NULL, after_fork_in_child);
	return true;

error_map:;
	int err = errno;
	munmap(l, sizeof(*l));
	errno = err;
	return false;
}

void ss_trace_close(void)
{
	uint64_t generation = live ? atomic_exchange(&live->generation, 0) : 0;
	struct ss_trace_thread_state rest;

	if (generation == 0 || generation == GENERATION_FORKED)
		return;
	recording = false;
	live->file.header->state = SS_TRACE_CLOSED;
	if (self.generation == generation && self.block) {
		ss_trace_file_punch(&live->file, self.number, self.used);
		self.block = NULL;
	}
	while (take_partial(live, &rest, UINT64_MAX))
		ss_trace_file_punch(&live->file, rest.number, rest.used);
	/* The file stays open and mapped: other threads may be in the middle of an event. */
}

uint64_t ss_trace_bytes(void)
{
	const struct ss_trace_file *f = live ? &live->file : NULL;

	return !f ? 0 :
		    f->header_size + SS_TRACE_BLOCK_SIZE *
					     (uint64_t)(f->ring ?
								__atomic_load_n(&f->ring->next,
										__ATOMIC_RELAXED) :
								atomic_load(&f->next));
}
