/* SPDX-License-Identifier: MIT */
/* Launches of kernels: each pointer among the arguments is an access of unknown size. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "shim/check/host_memory.h"
#include "shim/check/init.h"
#include "shim/check/inside.h"
#include "shim/check/kernel_args.h"
#include "shim/check/operand.h"
#include "shim/check/skips.h"

static void add_word(const struct ss_kernel_word *word, void *arg)
{
	if (word->value)
		ss_operand_add(arg,
			       (struct ss_operand){
				       .ptr = word->value,
				       .kind = word->pointer ? SS_OPERAND_POINTER : SS_OPERAND_WORD,
				       .access = !word->pointer || word->reads == word->writes ?
							 SS_MAY_WRITE :
						 word->reads ? SS_READS :
							       SS_WRITES,
				       .sole = word->sole,
				       .kernel = word->kernel,
				       .argument = word->argument,
				       .at = word->at,
			       });
}

void ss_operands_of_kernel(struct ss_operands *o, const void *function, bool host,
			   void *const *args, void *const *extra)
{
	o->count = 0;
	o->lost = false;
	if (!ss_kernel_args(function, host, args, extra, add_word, o))
		o->lost = true;
}

/* Memory that is not ours may be host memory, which any call may have made visible. A word of a
 * structure need not be a pointer. */
static bool talks(const struct ss_operand *o)
{
	if (o->kind == SS_OPERAND_RANGE || o->ours)
		return false;
	return o->kind == SS_OPERAND_POINTER ? !ss_check_is_device_memory(o->ptr) :
					       ss_check_is_host_memory(o->ptr);
}

bool ss_operands_talk(struct ss_operands *o)
{
	bool any = false;

	for (uint32_t i = 0; i < o->count; i++) {
		o->at[i].ours = ss_check_ours(o->at[i].ptr);
		any |= talks(&o->at[i]);
	}
	return any || (o->lost && ss_check_any_host_memory());
}

/* Does SOMASHIM_CHECK_KERNEL select this kernel? */
static bool is_meant(const char *kernel)
{
	const char *pattern = ss_options.check_kernel;

	if (!pattern[0])
		return true;
	if (!strncmp(pattern, "kne=", 4))
		return !strcmp(pattern + 4, kernel);
	return strstr(kernel, !strncmp(pattern, "kns=", 4) ? pattern + 4 : pattern);
}

void ss_operands_use(struct ss_timeline *tl, const struct ss_operands *o)
{
	for (uint32_t i = 0; i < o->count; i++)
		if (o->at[i].kind == SS_OPERAND_RANGE ||
		    (o->at[i].ours && is_meant(o->at[i].kernel)))
			(void)ss_operand_use(tl, &o->at[i]);
}

/* Is this launch one of the first, if only these are to be checked? */
static bool is_launch_meant(const struct ss_operands *o)
{
	static _Atomic uint64_t launches;

	if (!ss_options.check_launches || !o->count || !is_meant(o->at[0].kernel))
		return true;
	return atomic_fetch_add(&launches, 1) < ss_options.check_launches;
}

void ss_check_kernel(struct ss_timeline *tl, const void *function, bool host, void **args,
		     void **extra)
{
	struct ss_operands *uses = ss_operands_of_call(), own = {0};
	bool talk;

	if (!tl || ss_timeline_capturing(tl))
		return;
	ss_init_launched();
	if (!uses)
		uses = &own;
	ss_operands_of_kernel(uses, function, host, args, extra);
	if (uses->lost)
		ss_check_skip_kernel();
	/* The kernel may signal its progress to the host, and wait for the host's next actions,
	 * even before its accesses. */
	talk = ss_operands_talk(uses);
	if (talk)
		ss_check_stream_held(tl);
	if (is_launch_meant(uses))
		ss_operands_use(tl, uses);
	if (talk)
		ss_check_stream_opaque(tl, false, true);
	ss_operands_drop(&own);
}
