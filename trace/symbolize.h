/* SPDX-License-Identifier: MIT */
/*
 * Finds the names of raw addresses with elfutils: function, source file and line. Debug files are
 * found by build id, also those of another machine. Not thread safe.
 */
#ifndef SS_TRACE_SYMBOLIZE_H
#define SS_TRACE_SYMBOLIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"

/* The files of modules, opened once for any number of recordings. */
struct ss_symbol_files;
struct ss_symbolizer;

struct ss_symbol {
	const char *function; /* demangled if possible; NULL if not known */
	const char *source;   /* source file; NULL if not known */
	const char *folder;   /* base of a relative `source`; NULL if not known */
	int line;             /* 0 if not known */
	const char *module;   /* path of the module; NULL if not known */
	uint64_t offset;      /* offset of the address in the module */
	bool inlined;         /* the next symbol is the function that contains this one */
};

/* Can this build read the files of modules? Otherwise symbols have a module and an offset, and
 * symbols of Python have their names. */
bool ss_symbols_can(void);

/* `debug_path` is a list of directories, divided by colons, with debug files and copies of the
 * modules: by build id (.build-id/xx/yyyy.debug), by path, or by file name. NULL: the usual places
 * of this machine. NULL: out of memory. */
struct ss_symbol_files *ss_symbol_files_open(const char *debug_path);
/* Call it after the last symbolizer that uses the files was closed. NULL is allowed. */
void ss_symbol_files_close(struct ss_symbol_files *f);

/* The symbols of a return address `offset` bytes after the start of the mapped module file, as from
 * ss_symbolize(), without a recording. */
uint32_t ss_symbolize_file(struct ss_symbol_files *f, const char *path, uint64_t offset,
			   const struct ss_symbol **out);
/* The name as in the source, or the name itself. Valid until the files are closed. */
const char *ss_symbol_readable(struct ss_symbol_files *f, const char *name);

/* Names for the addresses of one file of the reader, which must stay open. NULL: out of memory. */
struct ss_symbolizer *ss_symbolizer_open(const struct ss_trace_reader *r,
					 struct ss_symbol_files *files);
void ss_symbolizer_close(struct ss_symbolizer *s);
/* The first module whose names are missing because its file was built again after the recording;
 * NULL: there is none so far. Valid as long as the reader. */
const char *ss_symbolizer_rebuilt(const struct ss_symbolizer *s);

/* The symbols of a return address, innermost first: inlined functions, then the function itself.
 * Returns their number, at least 1. `time_ns` is the time at which the stack was seen. The symbols
 * stay valid until the files are closed. */
uint32_t ss_symbolize(struct ss_symbolizer *s, uint64_t address, uint64_t time_ns,
		      const struct ss_symbol **out);

#endif
