/* SPDX-License-Identifier: MIT */
/*
 * The state of core/order: the tables of streams and events, and what is known of each device.
 * Files of other folders include this only through watched.h.
 */
#ifndef SS_ORDER_STATE_H
#define SS_ORDER_STATE_H

#include <pthread.h>

#include "core/base/lock.h"
#include "core/base/table.h"
#include "core/order/order.h"

struct ss_event;

#define SS_MAX_SLOTS 65536

/* The virtual timeline ALL of a device (all.c). */
struct ss_all {
	_Atomic uint64_t now;       /* position of the next mark */
	_Atomic uint64_t completed; /* highest position known to be reached */
	/* ... that is covered by a device-wide wait of the application which has returned */
	_Atomic uint64_t waited;
	/* Written under order->lock. */
	_Atomic uint64_t access; /* devices whose streams count, a bit each */
	atomic_bool unclosed;    /* marks above the newest snapshot were given */
	/* Guarded by order->lock: */
	uint32_t turn;                 /* of the streams in ss_all_open() */
	struct ss_snapshot *snapshots; /* not reached, the oldest first */
};

struct ss_order_device {
	struct ss_timeline *null; /* read without the lock; NULL until it is first used */
	struct ss_all all;
	_Atomic uint32_t joiners;  /* live streams that join the null stream */
	_Atomic uint32_t streams;  /* live streams but the null stream */
	atomic_bool classic;       /* it has handed out hipMalloc memory */
	atomic_uint report;        /* not 0: synchronizations are reported (ss_order_report) */
	_Atomic uint64_t fence_ms; /* ss_fence_ms() */
	/* Threads inside a wait: for all streams, for the null stream, for a stream that joins
	 * it */
	atomic_uint waiting, waiting_null, waiting_joiner;
};

struct ss_order {
	/* Read by every watched call, and seldom written. Tables are written with the lock held. */
	struct ss_table by_handle; /* timelines */
	struct ss_table events;
	struct ss_timeline **slots; /* an entry never changes once it is set */
	ss_synchronized *synchronized;
	atomic_bool distrust; /* the application bypassed the shim */

	_Alignas(64) pthread_mutex_t lock;
	struct ss_event *spare_events; /* forgotten events, for reuse */
	uint64_t begun;                /* streams that ever existed */
	/* Slots of streams, but null streams, that ended and were not used again */
	uint32_t slots_ended;
	/* These are written with the lock held, and read without it. */
	_Atomic uint32_t slot_count;
	_Atomic uint32_t capturing; /* streams */
	/* Ended streams that may still run; an upper bound, and 0 only if there are none */
	_Atomic uint32_t zombies;
	_Atomic uint32_t fences_pending;
	_Atomic uint64_t fences;       /* recorded so far */
	_Atomic uint64_t busy_queries; /* queries that found a stream busy, so far */
	_Atomic uint64_t visited;      /* devices whose memory streams of other devices use */
	/* Numbers of calls that enqueue commands which may need the host (host.c): calls that
	 * began, calls that ended, and the last call up to which all such commands have
	 * completed. */
	_Atomic uint64_t host_begun, host_ended, host_reached;

	struct ss_order_device dev[SS_MAX_DEVICES];
};

#endif
