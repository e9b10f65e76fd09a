/* SPDX-License-Identifier: MIT */
/*
 * Call sites: the call stacks of a trace with names. Stacks whose frames have the same names are
 * one site. Outermost frames of the C library that start a program or a thread (_start, clone3) are
 * left out. Not thread safe.
 */
#ifndef SS_ANALYSIS_SITES_H
#define SS_ANALYSIS_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "trace/reader.h"
#include "trace/symbolize.h"

/* The kinds of groups that a report can make. */
enum ss_by {
	SS_BY_SITE, /* no groups: each call site by itself */
	/* By the frame that counts: the innermost one that is not in a wrapper */
	SS_BY_FUNCTION,
	SS_BY_FILE,
	SS_BY_MODULE,
	SS_BY_STREAM, /* of the allocation */
	SS_BY_THREAD,
	SS_BYS,
};

struct ss_frame {
	const char *function; /* never NULL; MODULE+0xOFFSET if the name is not known */
	const char *source;   /* "" if not known */
	const char *module;   /* path; "" if not known */
	int line;             /* 0 if not known */
};

/* The figures of one call site. Bytes are those that blocks take in the pool. */
struct ss_site {
	const uint32_t *frame; /* indices of frames, innermost first */
	uint32_t frames;
	bool cut; /* outer frames are missing */
	/* Inner frames that it has in common with the site that is most like it, */
	uint32_t shared;
	uint32_t beside; /* and the number of that site */

	bool allocates;  /* some of its events are allocations */
	bool suppressed; /* the user says that its live blocks are no leak */

	uint64_t allocs, frees;
	uint64_t bytes;             /* of all allocations */
	uint64_t live, live_blocks; /* at the end: what was never freed */
	uint64_t live_asked;
	uint64_t largest_live, oldest_ns; /* of those blocks: the largest, and the first's time */
	uint32_t kept_in; /* a bit for each 32nd of the recording in which one was allocated */
	uint64_t peak, peak_ns;           /* the most that was live at once, and when */
	double byte_ns;                   /* live bytes, summed over time */
	uint64_t changed_ns;              /* when `live` changed last */
	uint64_t lifetime_ns, longest_ns; /* sum and maximum of the freed blocks' lifetimes */
	uint64_t repeats; /* allocations of a size whose block this site had freed before */
	uint64_t freed_size, freed_blocks; /* for `repeats`: the size freed last, and its blocks */
	uint64_t waits, wait_ns;
	uint64_t failed; /* allocations that ran out of memory or met a limit */
};

struct ss_sites_key {
	/* A thread, or a stream and, if each thread has its own, the thread */
	uint64_t key;
	uint32_t site;
};

/* With `by` other than SS_BY_SITE a "site" is a group: it has one frame, whose function is the name
 * of the group. */
struct ss_sites {
	struct ss_site *site; /* site 0 has no frames: the stack is not known */
	struct ss_frame *frame;
	size_t count, frame_count;
	uint32_t *of_stack; /* site by the number of a stack, below `stacks` */
	uint32_t stacks;
	uint32_t *stack; /* the frames of all sites, one after the other */
	/* A module that was built after the recording, so its names are missing; NULL: none was
	 * seen */
	char *rebuilt;
	struct ss_sites_tables *tables;

	enum ss_by by;
	const struct ss_sites *calls; /* groups: the call sites that are in them */
	uint32_t *of_site;        /* groups by function, file or module: the group of a call site */
	struct ss_sites_key *key; /* groups by stream or thread, sorted */
	size_t keys;
};

/* Names all stacks of the file. Without `files` each frame is a module and an offset, and no other
 * file is opened. The result stays valid after the reader and the files are closed. False: out of
 * memory. */
bool ss_sites_read(struct ss_sites *s, const struct ss_trace_reader *r,
		   struct ss_symbol_files *files);
void ss_sites_finish(struct ss_sites *s);
/* Makes groups of call sites, which must stay valid, or of the streams or threads of the file. A
 * function counts as a wrapper (as of hipMalloc) if most call sites go through it, and if more
 * lines call it than it has itself; its callers count in its place. False: out of memory. */
bool ss_sites_put_together(struct ss_sites *g, const struct ss_sites *calls,
			   const struct ss_trace_reader *r, enum ss_by by);
/* Frees what only ss_sites_of() and ss_sites_group() need, which is most of the memory. */
void ss_sites_end_lookups(struct ss_sites *s);
/* The group of a block that `tid` allocated at that call site for that stream. */
uint32_t ss_sites_group(const struct ss_sites *g, uint32_t call, uint32_t stream, uint32_t tid);
/* "function" or "functions". */
const char *ss_by_name(enum ss_by by, bool many);
/* Makes each call stack of the recording a site of its own, by the stack's number. *s is empty. The
 * caller frees s->of_stack. False: out of memory. */
bool ss_sites_of_stacks(struct ss_sites *s, const struct ss_trace_reader *r);
/* Fills in `shared` and `beside` of all sites; ss_sites_read() calls it. False: out of memory. */
bool ss_sites_tell_apart(struct ss_sites *s);

/* The site, or group, of an event. */
static inline uint32_t ss_sites_of(const struct ss_sites *s, const struct ss_trace_item *e)
{
	const struct ss_sites *calls = s->calls ? s->calls : s;
	uint32_t call = e->stack < calls->stacks ? calls->of_stack[e->stack] : 0;

	return s->calls ? ss_sites_group(s, call, e->stream, e->tid) : call;
}

/* The name of a frame's source file, without its folders; "" if it is not known. */
static inline const char *ss_frame_file(const struct ss_frame *f)
{
	const char *slash = strrchr(f->source, '/');

	return slash ? slash + 1 : f->source;
}

/* Does the site hold more and more? It does if, from some moment in the first 5/8 of the recording
 * on, blocks that live at the end were allocated in each quarter of the rest. */
static inline bool ss_site_grows(const struct ss_site *site)
{
	for (unsigned begin = site->suppressed ? 21 : 0; begin <= 20; begin += 4) {
		unsigned quarter = (32 - begin) / 4, with = 0;
		for (unsigned at = begin; at < 32; at += quarter)
			with += (site->kept_in >> at & ((1u << quarter) - 1)) != 0;
		if (with == 4)
			return true;
	}
	return false;
}

/* All frames as one text, with their lines or only the functions: call sites of different
 * recordings are the same if these are. The caller frees it. NULL: out of memory. */
char *ss_site_text(const struct ss_sites *s, const struct ss_site *site, bool lines);

/* The frame at position `i` of the site, innermost first; NULL past the end. */
static inline const struct ss_frame *ss_site_frame(const struct ss_sites *s,
						   const struct ss_site *site, uint32_t i)
{
	return i < site->frames ? &s->frame[site->frame[i]] : NULL;
}

#endif
