/* SPDX-License-Identifier: MIT */
/* Replaces module_names.c and module_file.c in a build without elfutils. */
#include <unistd.h>

#include "trace/module_file.h"
#include "trace/module_names.h"

bool ss_module_names_can(void)
{
	return false;
}

int ss_module_file_open(const struct ss_trace_module_def *def, char *const *dirs, size_t count,
			char *path, size_t size, bool *rebuilt)
{
	return -1;
}

struct ss_module_names *ss_module_names_open(const char *path, int fd, char *search)
{
	close(fd);
	return NULL;
}

void ss_module_names_close(struct ss_module_names *m)
{
}

uint64_t ss_module_names_start(struct ss_module_names *m)
{
	return 0;
}

uint32_t ss_module_names_find(struct ss_module_names *m, uint64_t address, struct ss_symbol *symbol)
{
	return 1;
}
