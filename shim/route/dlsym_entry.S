/* SPDX-License-Identifier: MIT */
/*
 * The exported dlsym() and dlvsym(). Each gets a verdict on the call (dlsym_early.c). Then the entry point
 * returns the answer, or jumps to the real function with unchanged arguments and return address:
 * the return address tells glibc which caller's RTLD_NEXT and RTLD_DEFAULT is meant.
 *
 * Both functions are exported under each symbol version that glibc has had for them, so that another
 * interposer, which asks for the next definition of one of these versions, finds them, too.
 */
#if defined(__CET__)
#include <cet.h>
#else
#define _CET_ENDBR
#endif

	.text

#if defined(__x86_64__)
#define OLD_NODE GLIBC_2.2.5

.macro ENTRY name, decide, caller
	.globl	ss_\name, ss_\name\()_old
	.type	ss_\name, @function
	.type	ss_\name\()_old, @function
	.p2align 4
ss_\name:
ss_\name\()_old:
	.cfi_startproc
	_CET_ENDBR
	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%rsi
	.cfi_adjust_cfa_offset 8
	push	%rdx
	.cfi_adjust_cfa_offset 8
	mov	24(%rsp), %\caller
	call	\decide
	mov	%rdx, %rcx
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	test	%rcx, %rcx
	jnz	1f
	jmp	*%rax
1:	ret
	.cfi_endproc
	.size	ss_\name, . - ss_\name
	.size	ss_\name\()_old, . - ss_\name\()_old
.endm

	ENTRY	dlsym, ss_dlsym_decide, rdx
	ENTRY	dlvsym, ss_dlvsym_decide, rcx

#else /* aarch64 */
#define OLD_NODE GLIBC_2.17

.macro ENTRY name, decide, caller
	.globl	ss_\name, ss_\name\()_old
	.type	ss_\name, %function
	.type	ss_\name\()_old, %function
	.p2align 4
ss_\name:
ss_\name\()_old:
	.cfi_startproc
	hint	34 /* bti c */
	stp	x29, x30, [sp, -48]!
	.cfi_def_cfa_offset 48
	.cfi_offset 29, -48
	.cfi_offset 30, -40
	mov	x29, sp
	stp	x0, x1, [sp, 16]
	str	x2, [sp, 32]
	mov	\caller, x30
	bl	\decide
	mov	x16, x0
	cbnz	x1, 1f
	ldp	x0, x1, [sp, 16]
	ldr	x2, [sp, 32]
	ldp	x29, x30, [sp], 48
	.cfi_remember_state
	.cfi_restore 30
	.cfi_restore 29
	.cfi_def_cfa_offset 0
	br	x16
	.cfi_restore_state
1:	ldp	x29, x30, [sp], 48
	.cfi_restore 30
	.cfi_restore 29
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size	ss_\name, . - ss_\name
	.size	ss_\name\()_old, . - ss_\name\()_old
.endm

	ENTRY	dlsym, ss_dlsym_decide, x2
	ENTRY	dlvsym, ss_dlvsym_decide, x3
#endif

#define VERSION2(name, node) .symver ss_##name##_old, name@node
#define VERSION(name, node) VERSION2(name, node)
	VERSION(dlsym, OLD_NODE)
	VERSION(dlvsym, OLD_NODE)
	.symver ss_dlsym, dlsym@@GLIBC_2.34
	.symver ss_dlvsym, dlvsym@@GLIBC_2.34

	.section .note.GNU-stack, "", %progbits
