/* SPDX-License-Identifier: MIT */
/* Recordings, as report and convert read them. The last byte chooses what is made of them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/analysis/analysis.h"
#include "cli/convert/convert.h"
#include "cli/report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void report(const char *path, unsigned choice, FILE *null)
{
	const struct ss_analysis_config config = {
		.by = choice % SS_BYS, .charts = choice >> 4 & 1, .samples = 64, .lives = 200};
	char err[1024];
	struct ss_analysis *a = ss_analysis_run(path, &config, err, sizeof(err));

	if (!a)
		return;
	ss_report_text(null, a, 10);
	json_t *json = ss_report_json(&a, 1, NULL, config.charts);
	char *text = json ? json_dumps(json, 0) : NULL;
	if (!text)
		abort();
	free(text);
	json_decref(json);
	ss_analysis_free(a);
}

static void convert(const char *path, unsigned choice)
{
	struct ss_convert_config config = {.path = path, .device = -1, .value = choice / 16 % 3};
	unsigned formats = 0;
	char err[1024];

	while (ss_formats[formats].name)
		formats++;
	(void)ss_convert(&ss_formats[choice % formats], &config, "/dev/null", err, sizeof(err));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *null;
	static int fd = -1;
	char path[64];

	if (size < 2)
		return 0;
	if (fd < 0) {
		fd = memfd_create("recording", MFD_CLOEXEC);
		null = fopen("/dev/null", "w");
	}
	if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size - 1, 0) != (ssize_t)size - 1)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (data[size - 1] % 2)
		report(path, data[size - 1] / 2, null);
	else
		convert(path, data[size - 1] / 2);
	return 0;
}
