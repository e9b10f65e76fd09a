/* SPDX-License-Identifier: MIT */
/* Launches of kernels: each pointer among the arguments is an access of unknown size. */
#include <stdatomic.h>

#include "shim/check/checker.h"
#include "shim/check/host_memory.h"
#include "shim/check/inside.h"
#include "shim/check/kernel_args.h"
#include "shim/check/skips.h"

struct launch {
	struct ss_timeline *tl;
	bool talks; /* it has memory through which it can talk to the host */
};

static void each(enum ss_kernel_word word, const void *value, void *arg)
{
	struct launch *l = arg;
	struct ss_found found;

	if (!value)
		return;
	/* Memory that is not ours may be the host's, whoever made it visible. A word of a structure
	 * need be no pointer. */
	if (ss_find(ss_core, value, &found) != SS_ERR_FOREIGN)
		ss_check_pointer(l->tl, value);
	else if (word == SS_WORD_POINTER || ss_check_is_host_memory(value))
		l->talks = true;
}

void ss_check_kernel(struct ss_timeline *tl, const void *function, bool host, void **args,
		     void **extra)
{
	struct launch l = {.tl = tl};

	if (!tl || ss_timeline_capturing(tl))
		return;
	if (!ss_kernel_args(function, host, args, extra, each, &l)) {
		ss_check_skip_kernel();
		l.talks = ss_check_any_host_memory();
	}
	/* It may tell the host how far it is, and wait for what the host does then. */
	if (l.talks)
		ss_check_stream_opaque(tl, true, true);
}
