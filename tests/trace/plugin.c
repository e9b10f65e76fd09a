/* SPDX-License-Identifier: MIT */
/* A library that test_stack.c loads and unloads. */
void plugin_call(void (*fn)(int), int n);

__attribute__((visibility("default"))) void plugin_call(void (*fn)(int), int n)
{
	fn(n);
	__asm__ volatile("" ::: "memory");
}
