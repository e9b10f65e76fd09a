/* SPDX-License-Identifier: MIT */
/* Lists of the operands of one command. */
#include <stdlib.h>
#include <string.h>

#include "shim/check/operand.h"

void ss_operand_add(struct ss_operands *o, struct ss_operand operand)
{
	if (o->count == o->room) {
		uint32_t room = o->room ? o->room * 2 : 16;
		struct ss_operand *more = realloc(o->at, room * sizeof(*more));

		if (!more) {
			o->lost = true;
			return;
		}
		o->at = more;
		o->room = room;
	}
	o->at[o->count++] = operand;
}

void ss_operands_copy(struct ss_operands *to, const struct ss_operands *from)
{
	ss_operands_drop(to);
	to->lost = from->lost;
	if (!from->count)
		return;
	to->at = malloc(from->count * sizeof(*to->at));
	if (!to->at) {
		to->lost = true;
		return;
	}
	memcpy(to->at, from->at, from->count * sizeof(*to->at));
	to->count = to->room = from->count;
}

void ss_operands_drop(struct ss_operands *o)
{
	free(o->at);
	*o = (struct ss_operands){0};
}
