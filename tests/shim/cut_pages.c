/* SPDX-License-Identifier: MIT */
/*
 * A program whose live page, and whose page of counts, somebody cuts while they are mapped: here it
 * does so itself. It goes on as before.
 */
#include <dirent.h>
#include <unistd.h>

#include "test.h"

static void cut_live(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int cut = 0;

	CHECK(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.') {
			char path[1024];
			snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
			CHECK(truncate(path, 0) == 0);
			cut++;
		}
	closedir(d);
	CHECK(cut == 1);
}

int main(void)
{
	const char *live = getenv("SOMASHIM_LIVE"), *report = getenv("SOMASHIM_REPORT");
	void *p[32];

	CHECK(preloaded() && live);
	OK(hipMalloc(&p[0], 4096));
	cut_live(live);
	if (report)
		CHECK(truncate(report, 0) == 0);
	for (int i = 1; i < 32; i++) /* each of them shows that the pool has grown */
		OK(hipMalloc(&p[i], 32 << 20));
	for (int i = 0; i < 32; i++)
		OK(hipFree(p[i]));
	return 0;
}
