/* SPDX-License-Identifier: MIT */
/*
 * Retires the per-thread streams of a thread that ends. No lock.
 */
#include <pthread.h>

#include "shim/check/checker.h"
#include "shim/process/current_device.h"
#include "shim/process/real.h"
#include "shim/process/service.h"
#include "shim/stream/thread_exit.h"
#include "shim/stream/timeline.h"

/* glibc's registration of destructors of thread-local objects. */
extern int __cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *dso);
extern void *__dso_handle __attribute__((visibility("hidden")));

/* Waits for the calling thread's stream on dev. Legal during any capture but one of that stream.
 * False: the wait failed. */
static bool drain(int dev)
{
	hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
	struct ss_timeline *tl = ss_timeline_thread(ss_core, dev);
	struct ss_token t;
	struct ss_device_switch s;
	hipError_t err;

	if (!tl || ss_timeline_capturing(tl) || !ss_device_switch(&s, dev))
		return false;
	err = REAL(hipThreadExchangeStreamCaptureMode, &mode);
	if (err == hipSuccess) {
		if (unlikely(ss_checking))
			ss_check_call("the end of a thread");
		t = ss_stream_sync_begin(ss_core, tl);
		err = REAL(hipStreamSynchronize, SS_PER_THREAD);
		if (unlikely(ss_checking) && err == hipSuccess)
			ss_check_reached(tl);
		ss_sync_end(ss_core, &t, err == hipSuccess, false);
		(void)REAL(hipThreadExchangeStreamCaptureMode, &mode);
	}
	ss_device_restore(&s);
	return err == hipSuccess;
}

/* Runs before the runtime's destructor. The runtime destroys the thread's stream in a destructor of
 * a thread-local object. If commands are pending then, another thread's use of the null stream may
 * crash (7.2.4: WaitActiveStreams). A program that has waited for its stream must not run that risk
 * because of a marker of ours, so wait here. The runtime would wait as well. */
static void thread_gone(void *arg)
{
	uint64_t streams = ss_tls.own_streams, drained = 0;

	SS_UNCANCELLED;         /* a thread that returns may still be cancelled here */
	ss_tls.own_streams = 0; /* a later destructor may use the stream again */
	if (atomic_load(&ss_state) != SS_ON)
		return;
	for (int dev = 0; dev < SS_MAX_DEVICES; dev++)
		if (streams >> dev & 1)
			drained |= (uint64_t)drain(dev) << dev;
	ss_thread_exit(ss_core, false, drained);
}

/* Destructors of pthread keys run after destructors of thread-local objects. This key is for
 * programs that free in a key's destructor, when thread_gone() has run already. The runtime's
 * stream is gone then, and a call for it makes a later thread crash (7.2.4). */
static pthread_key_t gone_key;
static bool have_gone_key;

static void key_gone(void *arg)
{
	SS_UNCANCELLED;
	if (!ss_tls.own_streams || atomic_load(&ss_state) != SS_ON)
		return;
	ss_tls.own_streams = 0;
	ss_thread_exit(ss_core, true, 0);
}

static void gone_key_make(void)
{
	have_gone_key = !pthread_key_create(&gone_key, key_gone);
}

/* Destructors of thread-local objects run last in, first out. So the runtime must have registered
 * its destructor before us, which any call into the runtime does.
 *
 * In the destructor of a pthread key glibc has run all these destructors already, and nothing tells
 * us so. A registration that is made there leaks 32 bytes in glibc, and key_gone() does its work.
 * (A thread_local object of C++ that is first used there costs as much.) */
void ss_thread_exit_register(int dev)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int current;

	if (!ss_tls.own_streams) {
		(void)REAL(hipGetDevice, &current);
		__cxa_thread_atexit_impl(thread_gone, NULL, &__dso_handle);
		pthread_once(&once, gone_key_make);
		if (have_gone_key)
			(void)pthread_setspecific(gone_key, &gone_key);
	}
	ss_tls.own_streams |= (uint64_t)1 << dev;
}
