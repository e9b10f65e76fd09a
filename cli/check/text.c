/* SPDX-License-Identifier: MIT */
/* Prints what was found as text and JSON. */
#include <inttypes.h>
#include <string.h>

#include "cli/check/fields.h"
#include "cli/check/found.h"
#include "cli/plural.h"
#include "core/base/hash.h"

#define LINE "========= "

static void put_frames(FILE *out, const json_t *frames)
{
	for (size_t i = 0; i < json_array_size(frames); i++) {
		const json_t *frame = json_array_get(frames, i);
		if (text(frame, "language")[0]) {
			fprintf(out, LINE "        Python Frame: %s (%s:%" PRIu64 ")\n",
				text(frame, "function"), text(frame, "source"),
				number(frame, "line"));
			continue;
		}
		fprintf(out, LINE "        Host Frame: %s [0x%" PRIx64 "] in %s",
			text(frame, "function"), number(frame, "offset"), text(frame, "module"));
		if (text(frame, "source")[0]) {
			fprintf(out, " (%s:%" PRIu64 ")", text(frame, "source"),
				number(frame, "line"));
		}
		fprintf(out, "%s\n",
			json_is_true(json_object_get(frame, "inlined")) ? " inlined" : "");
	}
}

/* Call stacks as text. Many findings share an array of frames, so each is made once. */
struct stack_text {
	const json_t *frames;
	char *text;
	UT_hash_handle hh;
};

static void put_stack(FILE *out, const json_t *site, struct stack_text **known)
{
	const json_t *frames = json_object_get(site, "frames");
	struct stack_text *t = NULL;
	size_t size = 0;
	FILE *to;

	if (!frames)
		return;
	HASH_FIND_PTR(*known, &frames, t);
	if (!t && (t = calloc(1, sizeof(*t)))) {
		t->frames = frames;
		to = open_memstream(&t->text, &size);
		if (to)
			put_frames(to, frames);
		if (to && fclose(to) == 0)
			HASH_ADD_PTR(*known, frames, t);
		if (!to || !SS_HASH_HAS(t)) {
			free(t->text);
			free(t);
			t = NULL;
		}
	}
	t ? (void)fputs(t->text, out) : put_frames(out, frames);
}

static void stacks_drop(struct stack_text *known)
{
	struct stack_text *t, *next;

	HASH_ITER(hh, known, t, next) {
		HASH_DEL(known, t);
		free(t->text);
		free(t);
	}
}

static void put_site(FILE *out, const char *did, const json_t *site, struct stack_text **known)
{
	const json_t *stream = json_object_get(site, "stream");
	const char *kind = text(stream, "kind"), *kernel = text(site, "kernel");

	if (!site)
		return;
	fprintf(out, LINE "    %s by %s", did, text(site, "call"));
	if (stream && strcmp(kind, "null") == 0) {
		fprintf(out, " on the null stream of device %" PRIu64, number(stream, "device"));
	} else if (stream) {
		fprintf(out, " on stream %" PRIu64 " (0x%" PRIx64 ", %s, device %" PRIu64 ")",
			number(stream, "number"), number(stream, "handle"), kind,
			number(stream, "device"));
	}
	fputc('\n', out);
	if (kernel[0]) {
		fprintf(out, LINE "        ");
		if (number(site, "argument_offset"))
			fprintf(out, "At offset %" PRIu64 " of argument",
				number(site, "argument_offset"));
		else
			fprintf(out, "Argument");
		fprintf(out, " %" PRIu64 " of kernel %s\n", number(site, "argument"), kernel);
	}
	put_stack(out, site, known);
}

static uint64_t rank_at(const json_t *ranks, size_t i)
{
	return (uint64_t)json_integer_value(json_array_get(ranks, i));
}

/* Three ranks and more that follow each other are a range. */
static void put_ranks(FILE *out, const json_t *ranks)
{
	size_t count = json_array_size(ranks), last;

	if (count)
		fprintf(out, LINE "    In %s ", ss_plural(count, "rank", "ranks"));
	for (size_t i = 0; i < count; i = last + 1) {
		uint64_t first = rank_at(ranks, i);

		for (last = i;
		     last + 1 < count && rank_at(ranks, last + 1) - first == last + 1 - i;)
			last++;
		if (last == i + 1)
			last = i;
		fprintf(out, "%" PRId64, (int64_t)first);
		if (last > i)
			fprintf(out, " to %" PRId64, (int64_t)rank_at(ranks, last));
		fputs(last + 1 < count ? ", " : "\n", out);
	}
}

static void put_place(FILE *out, const json_t *f)
{
	uint64_t address = number(f, "address"), base = number(f, "base");
	uint64_t block = number(f, "block"), size = number(f, "size");

	if (block)
		fprintf(out,
			LINE "    Address 0x%" PRIx64 " is at offset %" PRId64 " of block %" PRIu64
			     " of %" PRIu64 " %s at 0x%" PRIx64 "\n",
			address ? address : base, address ? (int64_t)(address - base) : 0, block,
			size, ss_plural(size, "byte", "bytes"), base);
	else
		fprintf(out, LINE "    Address 0x%" PRIx64 "\n", address);
}

static void put_finding(FILE *out, const json_t *f, struct stack_text **known)
{
	const char *fault = text(f, "fault"), *did = text(f, "did"), *mend = text(f, "mend");
	bool leak = strcmp(fault, "leak") == 0, error = strcmp(fault, "api-error") == 0;
	uint64_t count = number(f, "count");

	fprintf(out, LINE "%s\n", text(f, "text"));
	if (!leak && !error) /* those are about no address */
		put_place(out, f);
	if (!leak && count > 1)
		fprintf(out, LINE "    Seen %" PRIu64 " times\n", count);
	put_ranks(out, json_object_get(f, "ranks"));
	if (error)
		put_stack(out, json_object_get(f, "use"), known);
	else
		put_site(out, did[0] ? did : "Used", json_object_get(f, "use"), known);
	put_site(out, "Also used", json_object_get(f, "other"), known);
	put_site(out, "Allocated", json_object_get(f, "alloc"), known);
	put_site(out, "Freed", json_object_get(f, "free"), known);
	if (mend[0])
		fprintf(out, LINE "    %s\n", mend);
	fprintf(out, LINE "    Fault: %s\n" LINE "\n", fault);
}

static uint64_t sum(const struct ss_check_report *f, const char *key)
{
	uint64_t n = 0;

	for (size_t i = 0; i < json_array_size(f->processes); i++)
		n += number(json_array_get(f->processes, i), key);
	return n;
}

void ss_found_text(const struct ss_check_report *f, size_t limit, FILE *out)
{
	const size_t processes = json_array_size(f->processes);
	const uint64_t checked = sum(f, "checked"), kernels = sum(f, "unknown_kernels");
	const uint64_t graphs = sum(f, "unknown_graphs"), blocks = sum(f, "not_compared");

	struct stack_text *known = NULL;

	fprintf(out, LINE "SOMASHIM CHECK\n");
	const size_t all = json_array_size(f->findings);
	const size_t printed = limit && limit < all ? limit : all;

	for (size_t i = 0; i < printed; i++)
		put_finding(out, json_array_get(f->findings, i), &known);
	stacks_drop(known);
	if (printed < all)
		fprintf(out, LINE "NOT PRINTED: %zu %s (--print-limit %zu)\n", all - printed,
			ss_plural(all - printed, "finding", "findings"), limit);
	if (f->leaked_blocks) {
		fprintf(out, LINE "LEAK SUMMARY: %" PRIu64 " %s leaked in %" PRIu64 " %s\n",
			f->leaked_bytes, ss_plural(f->leaked_bytes, "byte", "bytes"),
			f->leaked_blocks, ss_plural(f->leaked_blocks, "allocation", "allocations"));
	}
	fprintf(out,
		LINE "CHECKED: %" PRIu64 " %s in %zu %s. NOT CHECKED: %" PRIu64
		     " whose order is not known, %" PRIu64
		     " after a call that went past somashim, %" PRIu64 " kernel %s and %" PRIu64
		     " graph %s whose pointers are not known, and the bytes of %" PRIu64 " %s\n",
		checked, ss_plural(checked, "use or free", "uses and frees"), processes,
		ss_plural(processes, "process", "processes"), sum(f, "unknown_order"),
		sum(f, "bypassed"), kernels, ss_plural(kernels, "launch", "launches"), graphs,
		ss_plural(graphs, "launch", "launches"), blocks,
		ss_plural(blocks, "block", "blocks"));
	if (sum(f, "forgotten"))
		fprintf(out, LINE "FORGOTTEN: host memory was out %" PRIu64 " %s\n",
			sum(f, "forgotten"), ss_plural(sum(f, "forgotten"), "time", "times"));
	if (sum(f, "possible") > f->possible)
		fprintf(out, LINE "NOT TOLD: %" PRIu64 " possible %s (--possible)\n",
			sum(f, "possible") - f->possible,
			ss_plural(sum(f, "possible") - f->possible, "error", "errors"));
	if (f->suppressed)
		fprintf(out, LINE "SUPPRESSED: %" PRIu64 " %s\n", f->suppressed,
			ss_plural(f->suppressed, "finding", "findings"));
	if (f->not_read)
		fprintf(out, LINE "NOT READ: %zu damaged %s\n", f->not_read,
			ss_plural(f->not_read, "line or finding", "lines or findings"));
	fprintf(out, LINE "ERROR SUMMARY: %" PRIu64 " %s", f->errors,
		ss_plural(f->errors, "error", "errors"));
	if (f->different != f->errors)
		fprintf(out, ", %" PRIu64 " of them different", f->different);
	fputc('\n', out);
}

bool ss_found_json(const struct ss_check_report *f, FILE *out)
{
	json_t *root = json_pack("{s:O, s:O, s:I, s:I, s:I, s:I, s:I}", "findings", f->findings,
				 "processes", f->processes, "errors", (json_int_t)f->errors,
				 "different", (json_int_t)f->different, "leaked_bytes",
				 (json_int_t)f->leaked_bytes, "suppressed",
				 (json_int_t)f->suppressed, "not_read", (json_int_t)f->not_read);
	bool good = root && json_dumpf(root, out, JSON_INDENT(1)) == 0 && putc('\n', out) != EOF;

	json_decref(root);
	return good;
}
