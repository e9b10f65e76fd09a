/* SPDX-License-Identifier: MIT */
/* Creates temporary files. A TMPDIR that is wrong is no reason to fail. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/readers/temporary_file.h"

int ss_temporary_file(const char *name, char path[PATH_MAX])
{
	const char *dirs[] = {getenv("TMPDIR"), "/tmp"};
	int fd = -1;

	for (size_t i = 0; i < 2 && fd < 0; i++) {
		if (dirs[i] && *dirs[i]) {
			snprintf(path, PATH_MAX, "%s/%s.XXXXXX", dirs[i], name);
			fd = mkostemp(path, O_CLOEXEC);
		}
	}
	return fd;
}
