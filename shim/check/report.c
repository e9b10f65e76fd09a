/* SPDX-License-Identifier: MIT */
/*
 * Findings as text in the log, or as lines of JSON in the file of SOMASHIM_CHECK_FILE, which
 * `somashim check` reads. A finding is written when it is made, so it is not lost if the program
 * crashes later. The lines of the file: {"kind": "finding", ..} for each finding. A call with its
 * place ("use", "other", "alloc", "free") is told once: later lines have only its number, "site".
 * The first line with the number of a call stack, "stack", has its frames; the first line with a
 * stream has its handle, device and kind. At the end {"kind": "count", ..} with the number of
 * occurrences of a finding, if more than one, and {"kind": "summary", ..}.
 *
 * Locks: none of its own; core/check calls it under its lock.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/sink.h"
#include "core/base/hash.h"
#include "core/base/utf8.h"
#include "shim/check/inside.h"
#include "shim/process/log.h"
#include "shim/process/report.h"
#include "trace/process_job.h"

#define LINE "========= "

static struct ss_sink sink;
static bool to_file;
static pid_t owner;

/* `somashim check` must not call a program correct if it did not get all findings. */
static void count_unwritten(void)
{
	static atomic_bool counted;

	if (ss_options.check_file[0] && !atomic_exchange(&counted, true))
		ss_report_add(&somashim_report.r.unwritten);
}

/* From now on findings go to the log. */
static void leave_file(int error)
{
	to_file = false;
	ss_sink_close(&sink);
	count_unwritten();
	ss_shim_log("cannot write SOMASHIM_CHECK_FILE %s: %s: findings come here",
		    ss_options.check_file, strerror(error));
}

void ss_check_report_open(void)
{
	char path[sizeof(ss_options.check_file) + 32];
	unsigned number;

	owner = getpid();
	sink.fd = -1;
	if (!ss_options.check_file[0])
		return;
	to_file = ss_sink_new(&sink, ss_options.check_file, path, sizeof(path), &number);
	if (!to_file)
		leave_file(errno);
}

/* ---- text --------------------------------------------------------------------- */

static const char *or_unknown(const char *text)
{
	return text ? text : "unknown";
}

static void put_frames(FILE *out, uint32_t stack)
{
	const struct ss_check_frame *frame;
	uint32_t count = ss_check_stack_frames(stack, &frame);

	for (uint32_t i = 0; i < count; i++) {
		uintptr_t ip = frame[i].ip;
		Dl_info info;

		if (!ip)
			fprintf(out, LINE "        Python Frame: %s (%s:%" PRIu32 ")\n",
				or_unknown(frame[i].function), or_unknown(frame[i].file),
				frame[i].line);
		else if (!dladdr((void *)(ip - 1), &info) || !info.dli_fname)
			fprintf(out, LINE "        Host Frame: [%#" PRIxPTR "]\n", ip);
		else
			fprintf(out, LINE "        Host Frame: %s [%#" PRIxPTR "] in %s\n",
				info.dli_sname ? info.dli_sname : "",
				ip - (uintptr_t)info.dli_fbase, info.dli_fname);
	}
}

static void put_site(FILE *out, const char *did, const struct ss_check_site *site)
{
	char stream[128], argument[SS_KERNEL_NAME + 64];

	if (!site->what)
		return;
	ss_stream_text(&site->stream, stream, sizeof(stream));
	fprintf(out, LINE "    %s by %s%s%s\n", did, site->what, site->stream.number ? " on " : "",
		site->stream.number ? stream : "");
	if (ss_site_argument(site, argument, sizeof(argument)))
		fprintf(out, LINE "        %s\n", argument);
	put_frames(out, site->stack);
}

static void put_text(FILE *out, const struct ss_finding *f)
{
	char text[SS_KERNEL_NAME + 512];

	ss_fault_text(f, text, sizeof(text));
	fprintf(out, LINE "%s\n", text);
	if (f->fault == SS_FAULT_LEAK) {
		put_frames(out, f->alloc.stack);
	} else if (f->fault == SS_FAULT_API_ERROR) {
		put_frames(out, f->use.stack);
	} else {
		if (f->block)
			fprintf(out,
				LINE "    Address %#" PRIx64 " is at offset %" PRIu64
				     " of block %" PRIu64 " of %" PRIu64 " bytes at %#" PRIx64 "\n",
				f->address ? f->address : f->base,
				f->address ? f->address - f->base : 0, f->block, f->size, f->base);
		else
			fprintf(out, LINE "    Address %#" PRIx64 "\n", f->address);
		put_site(out, ss_fault_did(f->fault), &f->use);
		put_site(out, "Also used", &f->other);
		put_site(out, "Allocated", &f->alloc);
		put_site(out, "Freed", &f->free);
	}
	ss_fault_mend(f, text, sizeof(text));
	if (text[0])
		fprintf(out, LINE "    %s\n", text);
	fprintf(out, LINE "    Fault: %s\n", ss_fault_name(f->fault));
	fprintf(out, LINE "\n");
}

/* ---- JSON ---------------------------------------------------------------------- */

/* A path need not be UTF-8, as JSON has to be. */
static void put_string(FILE *out, const char *s)
{
	fputc('"', out);
	while (*s) {
		size_t length = 0;

		while (s[length] >= ' ' && s[length] != '"' && s[length] != '\\')
			length++; /* ASCII, as nearly all are */
		fwrite(s, 1, length, out);
		s += length;
		if (!*s)
			break;
		length = ss_utf8_length(s);
		if (!length)
			fprintf(out, "\\ufffd");
		else if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if ((unsigned char)*s < ' ')
			fprintf(out, "\\u%04x", (unsigned char)*s);
		else
			fwrite(s, 1, length, out);
		s += length ? length : 1;
	}
	fputc('"', out);
}

static void put_json_address(FILE *out, uintptr_t ip)
{
	Dl_info info;
	bool known = dladdr((void *)(ip - 1), &info) && info.dli_fname;

	fprintf(out, "\"offset\": %" PRIuPTR, known ? ip - (uintptr_t)info.dli_fbase : ip);
	if (known && info.dli_sname) {
		fprintf(out, ", \"function\": ");
		put_string(out, info.dli_sname);
	}
	if (known) {
		fprintf(out, ", \"module\": ");
		put_string(out, info.dli_fname);
	}
}

static void put_json_python(FILE *out, const struct ss_check_frame *frame)
{
	fprintf(out, "\"language\": \"python\", \"function\": ");
	put_string(out, or_unknown(frame->function));
	fprintf(out, ", \"source\": ");
	put_string(out, or_unknown(frame->file));
	fprintf(out, ", \"line\": %" PRIu32, frame->line);
}

/* The first line that names a stack has its frames. */
static void put_json_frames(FILE *out, uint32_t stack)
{
	static uint8_t written[SS_CHECK_STACKS / 8 + 1];
	const struct ss_check_frame *frame;
	uint32_t count = ss_check_stack_frames(stack, &frame);

	if (stack)
		fprintf(out, ", \"stack\": %" PRIu32, stack);
	if (stack && written[stack / 8] & 1u << stack % 8)
		return;
	written[stack / 8] |= (uint8_t)(1u << stack % 8);
	fprintf(out, ", \"frames\": [");
	for (uint32_t i = 0; i < count; i++) {
		fprintf(out, "%s{", i ? ", " : "");
		if (frame[i].ip)
			put_json_address(out, frame[i].ip);
		else
			put_json_python(out, &frame[i]);
		fputc('}', out);
	}
	fputc(']', out);
}

/* The first line with a stream's number describes the stream, too. */
static void put_json_stream(FILE *out, const struct ss_check_stream *s)
{
	static const char *const kinds[] = {"null", "blocking", "non-blocking"};
	/* For the first streams; later ones are described each time */
	static uint8_t written[4096];
	const bool may_be = s->number < 8 * sizeof(written);

	fprintf(out, ", \"stream\": {\"number\": %" PRIu64, s->number);
	if (!may_be || !(written[s->number / 8] & 1u << s->number % 8))
		fprintf(out, ", \"handle\": %" PRIuPTR ", \"device\": %d, \"kind\": \"%s\"",
			(uintptr_t)s->handle, s->dev, kinds[s->kind]);
	if (may_be)
		written[s->number / 8] |= (uint8_t)(1u << s->number % 8);
	fputc('}', out);
}

/* A site that the file has. */
struct told {
	struct {
		const char *what, *kernel;
		uint64_t stream;
		uint32_t stack, argument, at, unused;
	} key;
	uint32_t number;
	UT_hash_handle hh;
};

/* The number of a site; *is_new: no line has it yet. 0: host memory is out. */
static uint32_t number_of(const struct ss_check_site *site, bool *is_new)
{
	static struct told *known;
	struct told *t, new = {.key = {site->what, site->kernel, site->stream.number, site->stack,
				       site->argument, site->at, 0}};

	HASH_FIND(hh, known, &new.key, sizeof(new.key), t);
	*is_new = !t;
	if (t)
		return t->number;
	t = malloc(sizeof(*t));
	if (!t)
		return 0;
	*t = new;
	t->number = HASH_COUNT(known) + 1;
	HASH_ADD(hh, known, key, sizeof(t->key), t);
	if (SS_HASH_HAS(t))
		return t->number;
	free(t);
	return 0;
}

static void put_json_site(FILE *out, const char *name, const struct ss_check_site *site)
{
	uint32_t number;
	bool is_new;

	if (!site->what)
		return;
	number = number_of(site, &is_new);
	if (!is_new) {
		fprintf(out, ", \"%s\": %" PRIu32, name, number);
		return;
	}
	fprintf(out, ", \"%s\": {\"site\": %" PRIu32 ", \"call\": \"%s\"", name, number,
		site->what);
	if (site->stream.number)
		put_json_stream(out, &site->stream);
	if (site->kernel) {
		fprintf(out, ", \"kernel\": ");
		put_string(out, site->kernel);
		fprintf(out, ", \"argument\": %" PRIu32 ", \"argument_offset\": %" PRIu32,
			site->argument, site->at);
	}
	put_json_frames(out, site->stack);
	fputc('}', out);
}

static void put_json(FILE *out, const struct ss_finding *f)
{
	char text[SS_KERNEL_NAME + 512], mend[512];

	ss_fault_text(f, text, sizeof(text));
	ss_fault_mend(f, mend, sizeof(mend));
	fprintf(out,
		"{\"kind\": \"finding\", \"number\": %" PRIu64 ", \"fault\": \"%s\", \"text\": ",
		f->number, ss_fault_name(f->fault));
	put_string(out, text);
	if (f->possible)
		fprintf(out, ", \"possible\": true");
	if (f->error) {
		fprintf(out, ", \"error\": ");
		put_string(out, f->error);
		fprintf(out, ", \"error_number\": %d", f->error_number);
	}
	fprintf(out, ", \"did\": \"%s\", \"mend\": ", ss_fault_did(f->fault));
	put_string(out, mend);
	fprintf(out,
		", \"block\": %" PRIu64 ", \"base\": %" PRIu64 ", \"size\": %" PRIu64
		", \"address\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"count\": %" PRIu64,
		f->block, f->base, f->size, f->address, f->bytes, f->count);
	put_json_site(out, "use", &f->use);
	put_json_site(out, "other", &f->other);
	put_json_site(out, "alloc", &f->alloc);
	put_json_site(out, "free", &f->free);
	fprintf(out, "}\n");
}

/* Writes the number of occurrences of a finding, which was reported once. */
static void put_count(FILE *out, const struct ss_finding *f)
{
	if (!to_file)
		return;
	fprintf(out, "{\"kind\": \"count\", \"number\": %" PRIu64 ", \"count\": %" PRIu64 "}\n",
		f->number, f->count);
}

/* ---- both ----------------------------------------------------------------------- */

/* Uses one write, so that lines of threads and processes do not mix. `put` checks whether it writes
 * to the file. */
static void put_whole(void (*put)(FILE *, const struct ss_finding *), const struct ss_finding *f)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	ssize_t n;

	if (!out) {
		count_unwritten();
		return;
	}
	put(out, f);
	if (fclose(out) != 0) {
		count_unwritten();
	} else if (!to_file) {
		ss_shim_log_write(text, size);
	} else if ((n = ss_sink_write(&sink, text, size)) != (ssize_t)size) {
		leave_file(n < 0 ? errno : ENOSPC);
		put_whole(put, f);
	}
	free(text);
}

static void put_finding(FILE *out, const struct ss_finding *f)
{
	to_file ? put_json(out, f) : put_text(out, f);
}

void ss_check_report_finding(const struct ss_finding *f, void *unused)
{
	(void)unused;
	put_whole(put_finding, f);
}

struct totals {
	uint64_t errors, distinct, possible, leaked_bytes, leaked_blocks;
};

static void total(const struct ss_finding *f, void *arg)
{
	struct totals *t = arg;

	if (f->fault != SS_FAULT_LEAK) {
		*(f->possible ? &t->possible : &t->errors) += f->count;
		t->distinct += !f->possible;
		if (f->count > 1)
			put_whole(put_count, f);
		return;
	}
	t->leaked_bytes += f->size;
	t->leaked_blocks += f->count;
	ss_check_report_finding(f, NULL);
}

static void put_summary(FILE *out, const struct ss_finding *unused);
static struct totals totals;

void ss_check_report_end(bool leaks)
{
	static atomic_bool done;

	/* A child of fork() has no findings of its own. */
	if (getpid() != owner || atomic_exchange(&done, true))
		return;
	ss_check_findings(ss_check_state, leaks, total, &totals);
	put_whole(put_summary, NULL);
}

static void put_summary(FILE *out, const struct ss_finding *unused)
{
	struct ss_check_skipped skipped;
	struct ss_check_counts counts;
	struct ss_process_job job;
	int rank = ss_process_job(&job) ? ss_process_number(job.rank) : -1;

	(void)unused;
	ss_check_count(ss_check_state, &counts);
	ss_check_skips(&skipped);
	if (to_file) {
		fprintf(out, "{\"kind\": \"summary\", \"pid\": %d, \"rank\": ", (int)owner);
		rank < 0 ? fprintf(out, "null") : fprintf(out, "%d", rank);
		fprintf(out,
			", \"errors\": %" PRIu64 ", \"distinct\": %" PRIu64
			", \"leaked_bytes\": %" PRIu64 ", \"leaked_blocks\": %" PRIu64
			", \"checked\": %" PRIu64 ", \"unknown_order\": %" PRIu64
			", \"bypassed\": %" PRIu64 ", \"forgotten\": %" PRIu64
			", \"unknown_kernels\": %" PRIu64 ", \"unknown_graphs\": %" PRIu64
			", \"not_compared\": %" PRIu64 ", \"possible\": %" PRIu64 "}\n",
			totals.errors, totals.distinct, totals.leaked_bytes, totals.leaked_blocks,
			counts.checked, counts.unknown, counts.blind, counts.forgotten,
			skipped.kernels, skipped.graphs, skipped.bytes,
			counts.possible + totals.possible);
		return;
	}
	if (ss_options.check & SS_CHECK_LEAK)
		fprintf(out,
			LINE "LEAK SUMMARY: %" PRIu64 " bytes leaked in %" PRIu64 " allocations\n",
			totals.leaked_bytes, totals.leaked_blocks);
	fprintf(out, LINE "ERROR SUMMARY: %" PRIu64 " error%s, %" PRIu64 " of them different\n",
		totals.errors, totals.errors == 1 ? "" : "s", totals.distinct);
	if (counts.possible)
		fprintf(out,
			LINE "NOT TOLD: %" PRIu64
			     " possible errors (SOMASHIM_CHECK_POSSIBLE=1 tells them)\n",
			counts.possible);
	fprintf(out,
		LINE "CHECKED: %" PRIu64 " uses and frees. NOT CHECKED: %" PRIu64
		     " whose order is not known, %" PRIu64
		     " after a call that went past somashim, %" PRIu64
		     " kernel launches and %" PRIu64
		     " graph launches whose pointers are not known, and the bytes of %" PRIu64
		     " blocks\n",
		counts.checked, counts.unknown, counts.blind, skipped.kernels, skipped.graphs,
		skipped.bytes);
}
