/* SPDX-License-Identifier: MIT */
/* Findings in words, which are those of compute-sanitizer if it has the same finding. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/check/check.h"

static const char *const names[SS_FAULTS] = {
	[SS_FAULT_USE_BEFORE_ALLOC] = "use-before-alloc",
	[SS_FAULT_FREE_BEFORE_ALLOC] = "free-before-alloc",
	[SS_FAULT_USE_AFTER_FREE] = "use-after-free",
	[SS_FAULT_USE_FREE_RACE] = "use-after-free-race",
	[SS_FAULT_FREE_USE_RACE] = "free-before-use",
	[SS_FAULT_RACE] = "race",
	[SS_FAULT_DOUBLE_FREE] = "double-free",
	[SS_FAULT_INTERIOR_FREE] = "interior-free",
	[SS_FAULT_FOREIGN_FREE] = "invalid-free",
	[SS_FAULT_WRONG_FREE] = "wrong-family-free",
	[SS_FAULT_DESTROYED_POOL] = "destroyed-pool",
	[SS_FAULT_OUT_OF_BOUNDS] = "out-of-bounds",
	[SS_FAULT_OVERWRITTEN] = "overwritten-padding",
	[SS_FAULT_WRITE_AFTER_FREE] = "write-after-free",
	[SS_FAULT_MEMORY_FAULT] = "memory-fault",
	[SS_FAULT_UNINITIALIZED] = "uninitialized-copy",
	[SS_FAULT_UNUSED] = "never-written",
	[SS_FAULT_API_ERROR] = "api-error",
	[SS_FAULT_LEAK] = "leak",
};

const char *ss_fault_name(enum ss_fault fault)
{
	return fault < SS_FAULTS ? names[fault] : "unknown";
}

const char *ss_fault_did(enum ss_fault fault)
{
	switch (fault) {
	case SS_FAULT_DOUBLE_FREE: return "Freed again";
	case SS_FAULT_INTERIOR_FREE:
	case SS_FAULT_FOREIGN_FREE:
	case SS_FAULT_WRONG_FREE: return "Freed";
	case SS_FAULT_API_ERROR: return "Called";
	default: return "Used";
	}
}

void ss_stream_text(const struct ss_check_stream *s, char *out, size_t size)
{
	static const char *const kinds[] = {"null", "blocking", "non-blocking"};

	if (!s->number)
		snprintf(out, size, "no stream");
	else if (s->kind == SS_CHECK_NULL)
		snprintf(out, size, "the null stream of device %d", s->dev);
	else
		snprintf(out, size, "stream %" PRIu64 " (%p, %s, device %d)", s->number, s->handle,
			 kinds[s->kind], s->dev);
}

/* The short form, for sentences. */
static void name_stream(const struct ss_check_stream *s, char *out, size_t size)
{
	if (s->number && s->kind != SS_CHECK_NULL)
		snprintf(out, size, "stream %" PRIu64, s->number);
	else
		snprintf(out, size, "%s", s->number ? "the null stream" : "the host");
}

static const char *or_call(const struct ss_check_site *site)
{
	return site->what ? site->what : "a call";
}

/* "hipLaunchKernel of k" */
static const char *name_call(const struct ss_check_site *site, char *out, size_t size)
{
	snprintf(out, size, "%s%s%s", or_call(site), site->kernel ? " of " : "",
		 site->kernel ? site->kernel : "");
	return out;
}

bool ss_site_argument(const struct ss_check_site *site, char *out, size_t size)
{
	if (!site->kernel)
		return false;
	if (site->at)
		snprintf(out, size, "At offset %" PRIu32 " of argument %" PRIu32 " of kernel %s",
			 site->at, site->argument, site->kernel);
	else
		snprintf(out, size, "Argument %" PRIu32 " of kernel %s", site->argument,
			 site->kernel);
	return true;
}

static void write_text(const struct ss_finding *f, char *out, size_t size)
{
	char use[64], free_on[64], alloc[64], call[SS_KERNEL_NAME + 64];
	char other[64], other_call[SS_KERNEL_NAME + 64];

	name_stream(&f->use.stream, use, sizeof(use));
	name_stream(&f->free.stream, free_on, sizeof(free_on));
	name_stream(&f->alloc.stream, alloc, sizeof(alloc));
	name_stream(&f->other.stream, other, sizeof(other));
	name_call(&f->use, call, sizeof(call));
	name_call(&f->other, other_call, sizeof(other_call));
	switch (f->fault) {
	case SS_FAULT_USE_BEFORE_ALLOC:
		snprintf(out, size,
			 "Stream-ordered use before allocation: %s on %s is not ordered after %s "
			 "on %s",
			 call, use, or_call(&f->alloc), alloc);
		break;
	case SS_FAULT_FREE_BEFORE_ALLOC:
		snprintf(out, size,
			 "Stream-ordered free before allocation: %s on %s is not ordered after %s "
			 "on %s",
			 or_call(&f->free), free_on, or_call(&f->alloc), alloc);
		break;
	case SS_FAULT_USE_AFTER_FREE:
		snprintf(out, size, "Use after free: %s on %s comes after %s on %s", call, use,
			 or_call(&f->free), free_on);
		break;
	case SS_FAULT_USE_FREE_RACE:
		snprintf(out, size,
			 "Stream-ordered use after free: nothing orders %s on %s and %s on %s",
			 call, use, or_call(&f->free), free_on);
		break;
	case SS_FAULT_FREE_USE_RACE:
		snprintf(out, size,
			 "Stream-ordered use after free: %s on %s is not ordered after %s on %s",
			 or_call(&f->free), free_on, call, use);
		break;
	case SS_FAULT_RACE:
		snprintf(out, size,
			 "Data race: %s on %s %s what %s on %s %s%s, and nothing orders them", call,
			 use, f->use_writes ? "writes" : "reads", other_call, other,
			 f->other_writes ? "writes" : "reads",
			 f->use_writes && f->other_writes ? ", too" : "");
		break;
	case SS_FAULT_DOUBLE_FREE:
		snprintf(out, size, "Double free: %s of a block that %s has freed",
			 or_call(&f->use), or_call(&f->free));
		break;
	case SS_FAULT_INTERIOR_FREE:
		snprintf(out, size,
			 "Invalid free: %s of an address %" PRIu64 " bytes inside a block",
			 or_call(&f->use), f->address - f->base);
		break;
	case SS_FAULT_FOREIGN_FREE:
		snprintf(out, size, "Invalid free: %s of an address that no allocation returned",
			 or_call(&f->use));
		break;
	case SS_FAULT_WRONG_FREE:
		snprintf(out, size, "Invalid free: %s of %s", or_call(&f->use),
			 f->block ? "device memory" : "pinned host memory");
		break;
	case SS_FAULT_DESTROYED_POOL:
		snprintf(out, size, "Use of a destroyed pool: %s after %s", or_call(&f->use),
			 or_call(&f->free));
		break;
	case SS_FAULT_OUT_OF_BOUNDS:
		if (!f->block)
			snprintf(out, size,
				 "Out of bounds: %s of %" PRIu64 " bytes begins where no block is",
				 or_call(&f->use), f->bytes);
		else if (f->address >= f->base && f->address - f->base > f->size)
			snprintf(out, size,
				 "Out of bounds: %s of %" PRIu64 " bytes begins %" PRIu64
				 " bytes past the end of the block",
				 or_call(&f->use), f->bytes, f->address - f->base - f->size);
		else if (f->address < f->base)
			snprintf(out, size,
				 "Out of bounds: %s of %" PRIu64 " bytes begins %" PRIu64
				 " bytes before the block",
				 or_call(&f->use), f->bytes, f->base - f->address);
		else
			snprintf(out, size,
				 "Out of bounds: %s of %" PRIu64 " bytes goes %" PRIu64
				 " bytes past the end of the block",
				 or_call(&f->use), f->bytes,
				 f->address + f->bytes - (f->base + f->size));
		break;
	case SS_FAULT_OVERWRITTEN:
		if (f->address < f->base)
			snprintf(out, size,
				 "Out of bounds: %" PRIu64
				 " bytes were written in front of the block, "
				 "the first %" PRIu64 " bytes before it",
				 f->bytes, f->base - f->address);
		else
			snprintf(out, size,
				 "Out of bounds: %" PRIu64 " bytes were written behind the block, "
				 "the first %" PRIu64 " bytes past its end",
				 f->bytes, f->address - (f->base + f->size));
		break;
	case SS_FAULT_WRITE_AFTER_FREE:
		snprintf(out, size,
			 "Write after free: %" PRIu64 " bytes of the freed block have changed, the "
			 "first at offset %" PRIu64,
			 f->bytes, f->address - f->base);
		break;
	case SS_FAULT_MEMORY_FAULT:
		if (!f->block)
			snprintf(out, size, "Memory access fault by the device: no block is there");
		else if (f->address - f->base < f->size)
			snprintf(out, size, "Memory access fault by the device inside a block%s",
				 f->free.what ? " that was freed" : "");
		else
			snprintf(out, size,
				 "Memory access fault by the device, %" PRIu64
				 " bytes past the end of a block%s",
				 f->address - f->base - f->size,
				 f->free.what ? " that was freed" : "");
		break;
	case SS_FAULT_UNINITIALIZED:
		snprintf(out, size,
			 "Uninitialized memory: %s copies to the host %" PRIu64
			 " bytes that were never written",
			 or_call(&f->use), f->bytes);
		break;
	case SS_FAULT_UNUSED:
		snprintf(out, size, "Unused memory: %s of a block that was never written",
			 or_call(&f->free));
		break;
	case SS_FAULT_API_ERROR:
		snprintf(out, size, "API error: %s returned %s (%d)%s%s", or_call(&f->use),
			 f->error, f->error_number, f->error_text[0] ? ": " : "", f->error_text);
		break;
	case SS_FAULT_LEAK:
		snprintf(out, size, "Leaked %" PRIu64 " bytes in %" PRIu64 " block%s of %s",
			 f->size, f->count, f->count == 1 ? "" : "s", or_call(&f->alloc));
		break;
	default: snprintf(out, size, "Unknown");
	}
}

void ss_fault_text(const struct ss_finding *f, char *out, size_t size)
{
	static const char possible[] = "Possible: ";
	size_t begin = f->possible ? sizeof(possible) - 1 : 0;

	snprintf(out, size, "%s", possible);
	write_text(f, out + begin, size - begin);
}

/* "record an event on A after X, and let B wait for it before Y" */
static void event_between(const struct ss_check_site *from, const struct ss_check_site *to,
			  char *out, size_t size)
{
	char a[64], b[64];

	name_stream(&from->stream, a, sizeof(a));
	name_stream(&to->stream, b, sizeof(b));
	snprintf(out, size, "Record an event on %s after %s, and let %s wait for it before %s.", a,
		 or_call(from), b, or_call(to));
}

void ss_fault_mend(const struct ss_finding *f, char *out, size_t size)
{
	static const char bounds[] = "Compare the bounds of the kernels that are given this block "
				     "with its size.";
	static const char last_kernel[] = "Free the block after the last kernel that has a pointer "
					  "to it.";
	char use[64];

	out[0] = '\0';
	switch (f->fault) {
	case SS_FAULT_USE_BEFORE_ALLOC: event_between(&f->alloc, &f->use, out, size); break;
	case SS_FAULT_FREE_BEFORE_ALLOC: event_between(&f->alloc, &f->free, out, size); break;
	case SS_FAULT_FREE_USE_RACE: event_between(&f->use, &f->free, out, size); break;
	case SS_FAULT_RACE: event_between(&f->other, &f->use, out, size); break;
	case SS_FAULT_USE_FREE_RACE:
		name_stream(&f->use.stream, use, sizeof(use));
		if (f->free.stream.number)
			snprintf(
				out, size,
				"Enqueue %s before %s, record an event on %s after it, and let the "
				"stream of the free wait for that event.",
				or_call(&f->use), or_call(&f->free), use);
		break;
	case SS_FAULT_USE_AFTER_FREE:
		snprintf(out, size, "Free the block after its last use.");
		break;
	case SS_FAULT_DOUBLE_FREE: snprintf(out, size, "Free a block once."); break;
	case SS_FAULT_INTERIOR_FREE:
		snprintf(out, size, "Free the address that the allocation returned.");
		break;
	case SS_FAULT_FOREIGN_FREE:
		snprintf(out, size, "Free only what an allocation returned, and only once.");
		break;
	case SS_FAULT_OUT_OF_BOUNDS:
		/* Includes addresses before the base */
		if (!f->block || f->address - f->base > f->size)
			snprintf(out, size, "Let %s begin inside %s block.", or_call(&f->use),
				 f->block ? "the" : "a");
		else
			snprintf(out, size,
				 "Let %s use at most %" PRIu64
				 " bytes from this address on, or let %s get more.",
				 or_call(&f->use), f->base + f->size - f->address,
				 or_call(&f->alloc));
		break;
	case SS_FAULT_OVERWRITTEN: snprintf(out, size, "%s", bounds); break;
	case SS_FAULT_WRITE_AFTER_FREE: snprintf(out, size, "%s", last_kernel); break;
	case SS_FAULT_MEMORY_FAULT:
		if (!f->block)
			snprintf(out, size,
				 "Look for a kernel whose pointer was never set, or is one of the "
				 "host.");
		else
			snprintf(out, size, "%s", f->free.what ? last_kernel : bounds);
		break;
	case SS_FAULT_WRONG_FREE:
		snprintf(out, size, "Free it with %s.",
			 f->block ? "hipFree or hipFreeAsync" :
				    "hipHostFree, or hipHostUnregister if it was registered");
		break;
	case SS_FAULT_DESTROYED_POOL:
		snprintf(out, size, "Destroy the pool after the last call that names it.");
		break;
	case SS_FAULT_UNINITIALIZED:
		snprintf(out, size, "Write these bytes before %s, or copy less.", or_call(&f->use));
		break;
	case SS_FAULT_UNUSED: snprintf(out, size, "Allocate it where it is used."); break;
	case SS_FAULT_API_ERROR:
		snprintf(out, size, "Look at what %s was given, and at its result.",
			 or_call(&f->use));
		break;
	case SS_FAULT_LEAK:
		snprintf(out, size, "Free the block, or let a library destructor free it.");
		break;
	default: break;
	}
}
