/* SPDX-License-Identifier: MIT */
/* Code for devices in the file itself, as a compiler puts it there. FATBIN is a file of it. */
#ifndef TEST_CHECK_OWN_CODE_H
#define TEST_CHECK_OWN_CODE_H

__asm__(".pushsection .hip_fatbin,\"a\",@progbits\n"
	".balign 4096\n"
	".incbin \"" FATBIN "\"\n"
	".popsection\n");

#endif
