/* SPDX-License-Identifier: MIT */
/* Creates the shared page that SOMASHIM_REPORT names. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/readers/temporary_file.h"
#include "cli/run_report.h"

static char path[PATH_MAX];

struct ss_report *ss_run_report_open(char *err, size_t err_size) {
	int fd = ss_temporary_file("somashim-run", path);

	if (fd < 0) {
		snprintf(err, err_size, "%s: %s", path, strerror(errno));
		return NULL;
	}
	struct ss_report *r = ftruncate(fd, SS_REPORT_BYTES) == 0 ?
		mmap(NULL, SS_REPORT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	int error = errno;
	close(fd);
	if (r == MAP_FAILED || setenv("SOMASHIM_REPORT", path, 1) != 0) {
		snprintf(err, err_size, "%s: %s", path,
			strerror(r == MAP_FAILED ? error : errno));
		unlink(path);
		return NULL;
	}
	r->magic = SS_REPORT_MAGIC;
	return r;
}

void ss_run_report_unlink(void) {
	unlink(path);
}
