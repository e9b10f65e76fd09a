/* SPDX-License-Identifier: MIT */
/*
 * A program that the preload cannot serve: linked statically, or with HIP linked into it.
 */
#ifdef STATIC_HIP
__attribute__((section(".hip_fatbin"), used)) static const char code[64] = "code";
#endif

int main(void)
{
	return 0;
}
