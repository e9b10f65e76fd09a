/* SPDX-License-Identifier: MIT */
/*
 * When the threads run. Two programs are made of the same tests: in one the system runs the threads
 * (parallel.c), in the other one thread runs at a time and may lose its turn at any branch of the
 * core (preempt.c).
 */
#ifndef TESTS_SCHEDULE_H
#define TESTS_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#define MOST_THREADS 6

/* The main thread calls it before it makes `threads` threads. `random` decides who loses its
 * turn. */
void schedule_create(int threads, uint64_t random);
/* Thread `index` waits for the next round. The first call begins the thread. */
void schedule_wait(int index);
/* The main thread waits until the thread that it has just made is there. */
void schedule_began(void);
/* The main thread starts a round and calls `meanwhile` again and again until all threads wait. */
void schedule_round(void (*meanwhile)(void));
/* Has the program run long enough? Where device memory is out all the time, it waits most of the
 * time. */
bool schedule_long(void);
/* The main thread lets all threads go on, one after another, and calls `join` for each. */
void schedule_destroy(void (*join)(int index));

#endif
