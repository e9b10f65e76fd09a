/* SPDX-License-Identifier: MIT */
/* Commands that copy memory and fill it, in up to three dimensions. */
#include <string.h>

#include "device/command.h"
#include "device/transfer.h"

static void run_copy(struct sim_command *c)
{
	for (size_t z = 0; z < c->copy.depth; z++)
		for (size_t y = 0; y < c->copy.height; y++)
			memmove(c->copy.dst + z * c->copy.dslice + y * c->copy.dpitch,
				c->copy.src + z * c->copy.sslice + y * c->copy.spitch,
				c->copy.width);
}

struct sim_command *sim_copy_command(void)
{
	return sim_command_new(SIM_CMD_COPY, run_copy);
}

static void fill_row(const struct sim_command *c, char *row)
{
	uint16_t v16 = (uint16_t)c->fill.value;

	if (c->fill.elem == 1) {
		memset(row, (int)c->fill.value, c->fill.width);
		return;
	}
	for (size_t i = 0; i < c->fill.width; i++)
		if (c->fill.elem == 2)
			memcpy(row + i * 2, &v16, 2);
		else
			memcpy(row + i * 4, &c->fill.value, 4);
}

static void run_fill(struct sim_command *c)
{
	for (size_t z = 0; z < c->fill.depth; z++)
		for (size_t y = 0; y < c->fill.height; y++)
			fill_row(c, c->fill.dst + z * c->fill.slice + y * c->fill.pitch);
}

struct sim_command *sim_fill_command(void)
{
	return sim_command_new(SIM_CMD_FILL, run_fill);
}
