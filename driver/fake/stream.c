/* SPDX-License-Identifier: MIT */
/*
 * Streams and fences of the fake device. A stream is two numbers: the enqueued commands and the
 * completed commands. A stream makes progress only when the caller or the clock advances it, and
 * never past a wait whose fence has not completed.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/fake/internal.h"

struct wait {
	uint64_t at; /* the number of the command that waits */
	struct ss_fake_stream *target;
	uint64_t target_at;
};

struct key {
	void *native;
	int64_t dev;
	int64_t thread; /* 0 unless the per-thread stream */
};

struct ss_fake_stream {
	struct key key;
	uint64_t enqueued, done;
	struct wait *waits; /* in order; those before `wait_first` are done */
	size_t wait_first, wait_count, wait_space;
	bool busy; /* in drain(), to detect streams that wait for each other */
	UT_hash_handle hh;
};

struct fence {
	struct ss_fake *owner;
	struct ss_fake_stream *stream;
	uint64_t at;
};

struct ss_fake_stream *ss_fake_stream_get(struct ss_fake *fake, int dev, void *native)
{
	struct ss_fake_stream *s;
	struct key key;

	memset(&key, 0, sizeof(key));
	key.native = native;
	key.dev = dev;
	key.thread = native == SS_NATIVE_PER_THREAD ? (int64_t)syscall(SYS_gettid) : 0;
	HASH_FIND(hh, fake->streams, &key, sizeof(key), s);
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			ss_fake_misuse("out of host memory");
		s->key = key;
		HASH_ADD(hh, fake->streams, key, sizeof(key), s);
	}
	return s;
}

uint64_t ss_fake_stream_enqueue(struct ss_fake_stream *s)
{
	return ++s->enqueued;
}

void ss_fake_stream_progress(struct ss_fake_stream *s, uint64_t target)
{
	if (target > s->enqueued)
		target = s->enqueued;
	for (; s->wait_first < s->wait_count; s->wait_first++) {
		struct wait *w = &s->waits[s->wait_first];
		if (w->at > target)
			break;
		if (w->target->done < w->target_at) {
			target = w->at - 1;
			break;
		}
	}
	if (target > s->done)
		s->done = target;
}

/* Advances the stream to `target`, after the streams that it waits for. Commands before a wait
 * complete first, because the other stream may wait for them. */
static void drain(struct ss_fake_stream *s, uint64_t target)
{
	if (s->busy)
		ss_fake_misuse("streams wait for each other in a circle");
	s->busy = true;
	for (size_t i = s->wait_first; i < s->wait_count && s->waits[i].at <= target; i++) {
		ss_fake_stream_progress(s, s->waits[i].at - 1);
		if (s->waits[i].target->done < s->waits[i].target_at)
			drain(s->waits[i].target, s->waits[i].target_at);
	}
	ss_fake_stream_progress(s, target);
	s->busy = false;
}

void ss_fake_enqueue(struct ss_fake *fake, int dev, void *native)
{
	ss_fake_lock(fake);
	ss_fake_stream_enqueue(ss_fake_stream_get(fake, dev, native));
	ss_fake_unlock(fake);
}

void ss_fake_progress(struct ss_fake *fake, int dev, void *native, uint64_t commands)
{
	ss_fake_lock(fake);
	struct ss_fake_stream *s = ss_fake_stream_get(fake, dev, native);
	uint64_t left = s->enqueued - s->done;
	ss_fake_stream_progress(s, s->done + (commands < left ? commands : left));
	ss_fake_unlock(fake);
}

void ss_fake_drain(struct ss_fake *fake, int dev, void *native)
{
	ss_fake_lock(fake);
	struct ss_fake_stream *s = ss_fake_stream_get(fake, dev, native);
	drain(s, s->enqueued);
	ss_fake_unlock(fake);
}

uint64_t ss_fake_enqueued(struct ss_fake *fake, int dev, void *native)
{
	ss_fake_lock(fake);
	uint64_t n = ss_fake_stream_get(fake, dev, native)->enqueued;
	ss_fake_unlock(fake);
	return n;
}

uint64_t ss_fake_done(struct ss_fake *fake, int dev, void *native)
{
	ss_fake_lock(fake);
	uint64_t n = ss_fake_stream_get(fake, dev, native)->done;
	ss_fake_unlock(fake);
	return n;
}

/* ---- fences ------------------------------------------------------------- */

static enum ss_status fence_record(void *ctx, int dev, void *native, struct ss_fence *out)
{
	struct ss_fake *fake = ctx;

	ss_fake_lock(fake);
	fake->counts.fence_record++;
	enum ss_status st = ss_fake_enter(fake, OP_FENCE_RECORD);
	struct fence *f = st == SS_OK ? calloc(1, sizeof(*f)) : NULL;
	if (f) {
		f->owner = fake;
		f->stream = ss_fake_stream_get(fake, dev, native);
		f->at = f->stream->enqueued;
		fake->fences++;
		*out = (struct ss_fence){f, f->at, SS_FENCE_EVENT, dev};
	} else if (st == SS_OK) {
		st = SS_ERR_NOMEM;
	}
	ss_fake_unlock(fake);
	return st;
}

static struct fence *fence_get(struct ss_fake *fake, const char *op, const struct ss_fence *fence)
{
	struct fence *f = fence->h;
	if (!f || f->owner != fake)
		ss_fake_misuse("%s: not a fence that was recorded here", op);
	return f;
}

static enum ss_status fence_query(void *ctx, const struct ss_fence *fence)
{
	struct ss_fake *fake = ctx;

	ss_fake_lock(fake);
	fake->counts.fence_query++;
	struct fence *f = fence_get(fake, "fence_query", fence);
	enum ss_status st = ss_fake_enter(fake, OP_FENCE_QUERY);
	if (st == SS_OK && !fake->config.idle && f->stream->done < f->at) {
		st = SS_ERR_NOT_READY;
		ss_fake_clock_asked(fake);
	}
	ss_fake_unlock(fake);
	return st;
}

static enum ss_status stream_idle(void *ctx, int dev, void *native)
{
	struct ss_fake *fake = ctx;

	ss_fake_lock(fake);
	struct ss_fake_stream *s = ss_fake_stream_get(fake, dev, native);
	bool idle = fake->config.idle || s->done == s->enqueued;
	if (!idle)
		ss_fake_clock_asked(fake);
	ss_fake_unlock(fake);
	return idle ? SS_OK : SS_ERR_NOT_READY;
}

static enum ss_status fence_wait(void *ctx, int dev, void *native, const struct ss_fence *fence)
{
	struct ss_fake *fake = ctx;

	ss_fake_lock(fake);
	fake->counts.fence_wait++;
	struct fence *f = fence_get(fake, "fence_wait", fence);
	struct ss_fake_stream *s = ss_fake_stream_get(fake, dev, native);
	enum ss_status st = ss_fake_enter(fake, OP_FENCE_WAIT);
	if (st == SS_OK && s->wait_count == s->wait_space) {
		size_t space = s->wait_space ? 2 * s->wait_space : 8;
		void *waits = realloc(s->waits, space * sizeof(*s->waits));
		if (waits) {
			s->waits = waits;
			s->wait_space = space;
		} else {
			st = SS_ERR_NOMEM;
		}
	}
	if (st == SS_OK) {
		/* The next command of the stream; the device spends no time on it. */
		uint64_t at = s->enqueued + 1;
		s->waits[s->wait_count++] = (struct wait){at, f->stream, f->at};
		ss_fake_clock_enqueue(fake, s, 0);
	}
	ss_fake_unlock(fake);
	return st;
}

static void fence_release(void *ctx, struct ss_fence *fence)
{
	struct ss_fake *fake = ctx;

	ss_fake_lock(fake);
	fake->counts.fence_release++;
	struct fence *f = fence_get(fake, "fence_release", fence);
	f->owner = NULL;
	free(f);
	fence->h = NULL;
	fake->fences--;
	ss_fake_unlock(fake);
}

void ss_fake_stream_ops(struct ss_driver *drv)
{
	drv->fence_record = fence_record;
	drv->fence_query = fence_query;
	drv->fence_wait = fence_wait;
	drv->fence_release = fence_release;
	drv->stream_idle = stream_idle;
}

void ss_fake_streams_finish(struct ss_fake *fake)
{
	struct ss_fake_stream *s, *tmp;

	if (fake->fences)
		ss_fake_misuse("%llu fences leaked", (unsigned long long)fake->fences);
	HASH_ITER(hh, fake->streams, s, tmp) {
		HASH_DEL(fake->streams, s);
		free(s->waits);
		free(s);
	}
}
