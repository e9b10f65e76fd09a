/* SPDX-License-Identifier: MIT */
/*
 * Options for sanitizers of the program. A sanitizer's runtime calls the first definition of each
 * of these functions, before any constructor. A program's own definition, and the environment
 * variables, override ours.
 */
#define EXPORT __attribute__((visibility("default")))
#define PLAIN __attribute__((no_sanitize("address", "thread", "undefined")))

EXPORT const char *__asan_default_options(void);
EXPORT const char *__tsan_default_suppressions(void);

/* AddressSanitizer ends a program in which another library is loaded before its runtime, as each
 * preloaded library is: that library could define malloc, and bypass the sanitizer. We define no
 * such function. */
PLAIN const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}

/* ThreadSanitizer sees the calls of libc that we make, but not our atomic operations, which order
 * them. So it would report races between threads of ours. (Not called_from_lib: a call that ends
 * one of our functions is a jump, and looks as if our caller had made it.) In a build with
 * ThreadSanitizer the sanitizer sees both. */
#ifndef __SANITIZE_THREAD__
PLAIN const char *__tsan_default_suppressions(void)
{
	return "race:libsomashim.so\nmutex:libsomashim.so\ndeadlock:libsomashim.so\n"
	       "thread:libsomashim.so\nsignal:libsomashim.so\n";
}
#endif
