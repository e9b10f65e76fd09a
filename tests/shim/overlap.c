/* SPDX-License-Identifier: MIT */
/*
 * One thread is stopped inside the real record, wait, synchronization, query or destroy,
 * either before the call has done anything or when it is about to return. Another thread
 * meanwhile frees, records the same event again, or creates. The freed memory is behind a
 * kernel that has not ended, so it may be handed out again only on the stream where it was
 * freed.
 */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "test.h"

#define SIZE (40u << 20)

static hipStream_t a, b; /* frees; wants the block */
static hipEvent_t e;

/* ---- a thread that stands ----------------------------------------------- */

enum call {
	RECORD,
	WAIT,
	STREAM_SYNC,
	EVENT_SYNC,
	DEVICE_SYNC,
	STREAM_QUERY,
	EVENT_QUERY,
	STREAM_DESTROY,
	EVENT_DESTROY
};

static const char *const names[] = {
	"hipEventRecord",      "hipStreamWaitEvent",   "hipStreamSynchronize",
	"hipEventSynchronize", "hipDeviceSynchronize", "hipStreamQuery",
	"hipEventQuery",       "hipStreamDestroy",     "hipEventDestroy",
};

static pthread_t thread;

static void *call(void *arg)
{
	switch ((enum call)(uintptr_t)arg) {
	case RECORD: OK(hipEventRecord(e, a)); break;
	case WAIT: OK(hipStreamWaitEvent(b, e, 0)); break;
	case STREAM_SYNC: OK(hipStreamSynchronize(a)); break;
	case EVENT_SYNC: OK(hipEventSynchronize(e)); break;
	case DEVICE_SYNC: OK(hipDeviceSynchronize()); break;
	case STREAM_QUERY: OK(hipStreamQuery(a)); break;
	case EVENT_QUERY: OK(hipEventQuery(e)); break;
	case STREAM_DESTROY: OK(hipStreamDestroy(a)); break;
	case EVENT_DESTROY: OK(hipEventDestroy(e)); break;
	}
	return NULL;
}

static void stand_in(enum call what, int at_end)
{
	int (*hold)(const char *, int) = (int (*)(const char *, int))sim_must("somasim_hold");
	int (*holds)(void) = (int (*)(void))sim_must("somasim_holds");

	CHECK(hold(names[what], at_end) == 0);
	CHECK(!pthread_create(&thread, NULL, call, (void *)(uintptr_t)what));
	while (!holds())
		sched_yield();
}

static void go_on(void)
{
	((void (*)(void))sim_call("somasim_let_go"))();
	pthread_join(thread, NULL);
}

/* ---- blocks ------------------------------------------------------------- */

static void *block(void)
{
	void *p;

	OK(hipMallocAsync(&p, SIZE, a));
	return p;
}

static _Atomic bool over;

static void until_over(hipStream_t stream, hipError_t status, void *arg)
{
	while (!over)
		usleep(100);
}

/* Work that does not end, also if the stream is destroyed, and the free behind it. */
static void free_busy(void *p, hipStream_t s)
{
	OK(hipStreamAddCallback(s, until_over, NULL, 0));
	OK(hipMemsetAsync(p, 1, SIZE, s));
	OK(hipFreeAsync(p, s));
}

static void *kept[4];
static int keeps;

static bool comes_back(void *p, hipStream_t stream)
{
	void *q;

	OK(hipMallocAsync(&q, SIZE, stream));
	CHECK(keeps < 4);
	kept[keeps++] = q;
	return q == p;
}

static void begin(void)
{
	over = false;
	OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	OK(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
	OK(hipEventCreateWithFlags(&e, hipEventDisableTiming));
}

static void finish(void)
{
	hipMemPool_t pool;

	over = true;
	OK(hipDeviceSynchronize());
	while (keeps)
		OK(hipFree(kept[--keeps]));
	OK(hipDeviceGetDefaultMemPool(&pool, 0));
	OK(hipMemPoolTrimTo(pool, 0));
	OK(hipDeviceSynchronize());
	OK(hipStreamDestroy(a));
	OK(hipStreamDestroy(b));
	OK(hipEventDestroy(e));
}

/* ---- cases --------------------------------------------------------------- */

/* A free beside a record: it was done before, and proves nothing of it. */
static void free_in_record(void)
{
	void *p;

	begin();
	p = block();
	stand_in(RECORD, 1);
	free_busy(p, a);
	go_on();
	OK(hipStreamWaitEvent(b, e, 0));
	CHECK(!comes_back(p, b));
	/* The next record is behind the free. */
	OK(hipEventRecord(e, a));
	OK(hipStreamWaitEvent(b, e, 0));
	CHECK(comes_back(p, b));
	finish();
}

/* Two records of one event at once: which of them stands is not known, and it is
 * the one that says nothing of the free. */
static void record_in_record(int at_end)
{
	hipStream_t c, freed;
	void *p;

	begin();
	OK(hipStreamCreateWithFlags(&c, hipStreamNonBlocking));
	freed = at_end ? a : c;
	OK(hipMallocAsync(&p, SIZE, freed));
	free_busy(p, freed);
	stand_in(RECORD, at_end); /* on a */
	OK(hipEventRecord(e, c));
	go_on();
	OK(hipStreamWaitEvent(b, e, 0));
	CHECK(!comes_back(p, b));
	OK(hipEventRecord(e, freed)); /* alone, it is worth something again */
	OK(hipStreamWaitEvent(b, e, 0));
	CHECK(comes_back(p, b));
	OK(hipStreamDestroy(c));
	finish();
}

/* The wait was for the record that it found, not for the one after the free. */
static void rerecord_in_wait(void)
{
	void *p;

	begin();
	p = block();
	OK(hipEventRecord(e, a));
	stand_in(WAIT, 1);
	free_busy(p, a);
	OK(hipEventRecord(e, a));
	go_on();
	CHECK(!comes_back(p, b));
	OK(hipStreamWaitEvent(b, e, 0));
	CHECK(comes_back(p, b));
	finish();
}

/* What is freed, or recorded again, when the host has been told already. */
static void free_in_sync(enum call what)
{
	void *p;

	begin();
	p = block();
	OK(hipEventRecord(e, a));
	OK(hipStreamSynchronize(a));
	stand_in(what, 1);
	free_busy(p, a);
	if (what == EVENT_SYNC || what == EVENT_QUERY)
		OK(hipEventRecord(e, a));
	go_on();
	CHECK(!comes_back(p, b));
	finish();
}

/* The handle is free, its stream is not over, and somebody has the handle again. */
static void create_in_destroy(void)
{
	hipStream_t old, again;
	void *p, *q;

	begin();
	old = a;
	p = block();
	free_busy(p, a);
	stand_in(STREAM_DESTROY, 1);
	OK(hipStreamCreateWithFlags(&again, hipStreamNonBlocking));
	CHECK(again == old); /* or this shows nothing: SOMASIM_HANDLE_LIFO */
	CHECK(!comes_back(p, again));
	go_on();
	a = again;
	CHECK(!comes_back(p, again));
	/* It is known as what it is. */
	q = kept[--keeps];
	OK(hipMemsetAsync(q, 1, SIZE, again));
	OK(hipFreeAsync(q, again));
	CHECK(comes_back(q, again));
	OK(hipFreeAsync(kept[--keeps], again));
	OK(hipEventRecord(e, again));
	OK(hipStreamWaitEvent(b, e, 0));
	CHECK(comes_back(q, b));
	finish();
}

/* The same for an event: the new one keeps its clock, and has not the old one's. */
static void create_in_event_destroy(void)
{
	hipEvent_t old, again;
	void *p;

	begin();
	p = block();
	free_busy(p, a);
	OK(hipEventRecord(e, a));
	old = e;
	stand_in(EVENT_DESTROY, 1);
	OK(hipEventCreateWithFlags(&again, hipEventDisableTiming));
	CHECK(again == old);
	OK(hipStreamWaitEvent(b, again, 0)); /* never recorded */
	CHECK(!comes_back(p, b));
	OK(hipEventRecord(again, a));
	go_on();
	OK(hipStreamWaitEvent(b, again, 0));
	CHECK(comes_back(p, b));
	e = again;
	finish();
}

/* Nothing stands still because a thread stands in the runtime. */
static void nobody_waits(enum call what)
{
	void *p, *q;

	begin();
	p = block();
	OK(hipEventRecord(e, a));
	OK(hipStreamSynchronize(a));
	stand_in(what, 0);
	for (int i = 0; i < 100; i++) {
		OK(hipMallocAsync(&q, 1000 + (size_t)i * 5000, b));
		OK(hipFreeAsync(q, b));
	}
	OK(hipMalloc(&q, SIZE)); /* grows */
	OK(hipFreeAsync(p, b));
	go_on();
	OK(hipFree(q));
	if (what == STREAM_DESTROY)
		OK(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
	if (what == EVENT_DESTROY)
		OK(hipEventCreate(&e));
	finish();
}

int main(void)
{
	CHECK(preloaded());
	alarm(120);
	free_in_record();
	record_in_record(0);
	record_in_record(1);
	rerecord_in_wait();
	for (enum call c = STREAM_SYNC; c <= EVENT_QUERY; c++)
		free_in_sync(c);
	if (!on_cuda()) { /* where no new handle is an old one's */
		create_in_destroy();
		create_in_event_destroy();
	}
	for (enum call c = RECORD; c <= EVENT_DESTROY; c++)
		nobody_waits(c);
	return 0;
}
