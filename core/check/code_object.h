/* SPDX-License-Identifier: MIT */
/*
 * Reads kernel metadata from the code of AMD's GPUs: the layout of the arguments, from the metadata
 * note (MessagePack, code objects of version 3 and later) of an ELF file, or of each ELF file of a
 * bundle of clang (__CLANG_OFFLOAD_BUNDLE__), which may be compressed (CCOB, versions 1 to 3). The
 * input may be any bytes.
 */
#ifndef SS_CHECK_CODE_OBJECT_H
#define SS_CHECK_CODE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_KERNEL_ARGS_MAX 256

struct ss_kernel_arg {
	uint32_t offset, size;
	bool pointer;       /* else it is passed by value */
	bool reads, writes; /* only one is set: the kernel does nothing else with the argument */
	bool idle;          /* the code loads other arguments, but not this pointer */
};

struct ss_kernel_layout {
	const char *name; /* not ended by 0 */
	size_t name_size;
	uint32_t count; /* number of arguments that the program passes */
	struct ss_kernel_arg arg[SS_KERNEL_ARGS_MAX];
};

enum ss_packing { SS_PACKED_ZLIB, SS_PACKED_ZSTD };

/* Unpacks the stream at `data`, which is at most `size` bytes, into the `room` bytes at `out`.
 * False: unpacking failed, or the size differs. NULL: nothing can be unpacked. */
typedef bool ss_unpack_fn(enum ss_packing how, const void *data, size_t size, void *out,
			  size_t room);

/* Calls `fn` for each kernel. `size` is the number of readable bytes, which may be more than the
 * image has. False: the bytes are no such image, or a broken one; `fn` may have been called. */
bool ss_code_object_read(const void *image, size_t size, ss_unpack_fn *unpack,
			 void (*fn)(const struct ss_kernel_layout *kernel, void *arg), void *arg);
/* The same. Reads only the parts of a bundle for one of these architectures ("gfx90a"; the list
 * ends with NULL), if it has any. `length`: the number of bytes of the image; 0: unknown. */
bool ss_code_object_read_for(const void *image, size_t size, const char *const *archs,
			     ss_unpack_fn *unpack,
			     void (*fn)(const struct ss_kernel_layout *kernel, void *arg),
			     void *arg, size_t *length);

#endif
