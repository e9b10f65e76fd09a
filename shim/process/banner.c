/* SPDX-License-Identifier: MIT */
/* The banner: version, runtime, devices with their backings, and the options that are set. */
#include <stdio.h>
#include <stdlib.h>

#include "driver/rocm/releases.h"
#include "driver/rocm/rocm.h"
#include "shim/process/banner.h"
#include "shim/process/log.h"
#include "shim/process/service.h"

static void print_backing(FILE *f, int dev)
{
	enum ss_backing is = (enum ss_backing)ss_options.backing;
	enum ss_backing classic = ss_classic_backing(&ss_options);
	const char *why = NULL, *how = "auto: ";

	if (!ss_rocm_usable(dev, classic, &why))
		classic = SS_BACKING_HIP;
	why = NULL;
	if (is == SS_BACKING_AUTO) {
		is = ss_rocm_best(dev, &why);
	} else if (!ss_rocm_usable(dev, is, &why)) {
		how = is == SS_BACKING_VMM ? "not vmm: " : "not hsa: ";
		is = SS_BACKING_HIP;
	}
	fprintf(f, "  backing: %s", ss_backing_name(is));
	if (classic != is)
		fprintf(f, " for hipMallocAsync, %s for hipMalloc", ss_backing_name(classic));
	if (why)
		fprintf(f, " (%s%s)", how, why);
	fputc('\n', f);
}

/* The banner is composed in memory first, so that other threads' lines do not mix with it. */
void ss_banner(int devices)
{
	const struct ss_runtime *rt = ss_runtime();
	struct ss_driver driver = ss_rocm_driver();
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return;
	fprintf(f, "somashim %s\n", SOMASHIM_VERSION);
	if (rt->version)
		fprintf(f, "  runtime: %s, %s, HIP version %d (%d.%d)\n", rt->path,
			ss_release_name(rt->major, rt->minor).s, rt->version, rt->major, rt->minor);
	else
		fprintf(f, "  runtime: %s\n", rt->path);
	if (ss_options.disable)
		fprintf(f, "  disabled: every call goes to the real runtime\n");
	else if (devices <= 0)
		fprintf(f, "  no device: every call goes to the real runtime\n");
	for (int i = 0; i < devices; i++) {
		struct ss_device_info info;

		if (driver.device_info(driver.ctx, i, &info) != SS_OK)
			continue;
		fprintf(f, "  device %d: %s%s%s, %.1f GiB%s\n", i, info.name,
			ss_rocm_arch(i) ? ", " : "", ss_rocm_arch(i) ? ss_rocm_arch(i) : "",
			(double)info.total_bytes / (1ull << 30),
			info.integrated ? ", integrated" : "");
		print_backing(f, i);
	}
	if (devices > 0)
		fprintf(f, "  fences: %s\n",
			ss_rocm_fence_kind() == SS_FENCE_SIGNAL ? "signal" : "event");
	ss_options_print_changed(&ss_options, f);
	fclose(f);
	fputs(text, ss_shim_log_file());
	fflush(ss_shim_log_file());
	free(text);
}
