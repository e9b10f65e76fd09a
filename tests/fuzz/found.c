/* SPDX-License-Identifier: MIT */
/* What the checker found, reports of it, and suppressions. The first two bytes are the length of
 * these. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/check/found.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int put(int fd, const uint8_t *data, size_t size, char *path, size_t path_size)
{
	if (fd < 0)
		fd = memfd_create("found", MFD_CLOEXEC);
	if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	snprintf(path, path_size, "/proc/self/fd/%d", fd);
	return fd;
}

/* A line that the quick reader takes is what the library reads. */
static void compare(const uint8_t *data, size_t size)
{
	for (size_t at = 0, next; at < size; at = next + 1) {
		const char *line = (const char *)data + at;
		bool plain = true;

		for (next = at; next < size && data[next] != '\n'; next++)
			plain &= data[next] >= ' ' && data[next] < 0x7f && data[next] != '\\';
		json_t *quick = plain ? ss_flat_object(line, next - at) : NULL;
		json_t *slow = quick ? json_loadb(line, next - at, 0, NULL) : NULL;
		if (quick && !json_equal(quick, slow))
			abort();
		json_decref(quick);
		json_decref(slow);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int found = -1, suppressions = -1;
	static FILE *null;
	char path[64], known[64], err[8192], *paths[] = {path, path, NULL};
	struct ss_check_report f;

	if (size < 3)
		return 0;
	compare(data, size);
	size_t cut = 2 + (data[0] | data[1] << 8) % (size - 2);
	null = null ? null : fopen("/dev/null", "w");
	suppressions = put(suppressions, data + 2, cut - 2, known, sizeof(known));
	found = put(found, data + cut, size - cut, path, sizeof(path));
	struct ss_suppressions *s = ss_suppressions_read(known, err, sizeof(err));
	(void)ss_is_found(path);
	if (ss_found_read(&f, paths, s, err, sizeof(err))) {
		ss_found_text(&f, 0, null);
		(void)ss_found_json(&f, null);
		(void)ss_found_sarif(&f, null);
		ss_found_finish(&f);
	}
	ss_suppressions_free(s);
	return 0;
}
