/* SPDX-License-Identifier: MIT */
/*
 * What sanitizers of the program are told about us. Their runtimes call these functions of whoever
 * defines them first, before any constructor. A program that has its own, or sets the variables,
 * has the last word.
 */
#define EXPORT __attribute__((visibility("default")))
#define PLAIN __attribute__((no_sanitize("address", "thread", "undefined")))

EXPORT const char *__asan_default_options(void);
EXPORT const char *__tsan_default_suppressions(void);

/* AddressSanitizer ends a program in which another library stands before its runtime, as each
 * preloaded library does: that library could define malloc, and go past the sanitizer. We define no
 * such function. */
PLAIN const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}

/* ThreadSanitizer sees the calls of libc that we make, but not our atomic operations, which order
 * them. So it would report races between threads of ours. (Not called_from_lib: a call that ends
 * one of our functions is a jump, and looks as if our caller had made it.) In a build with
 * ThreadSanitizer it sees both. */
#ifndef __SANITIZE_THREAD__
PLAIN const char *__tsan_default_suppressions(void)
{
	return "race:libsomashim.so\nmutex:libsomashim.so\ndeadlock:libsomashim.so\n"
	       "thread:libsomashim.so\nsignal:libsomashim.so\n";
}
#endif
