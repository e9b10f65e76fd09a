/* SPDX-License-Identifier: MIT */
/* Starts the recording of SOMASHIM_TRACE and the journal, and describes the runtime and the devices
 * in the recording. No lock. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "driver/rocm/releases.h"
#include "driver/rocm/resolve.h"
#include "driver/rocm/rocm.h"
#include "shim/process/journal.h"
#include "shim/process/log.h"
#include "shim/process/real.h"
#include "shim/process/recording.h"
#include "trace/writer.h"

static void say(const char *line)
{
	ss_shim_log("SOMASHIM_TRACE: %s", line);
}

void ss_recording_start(const struct ss_options *options)
{
	ss_trace_set_ring(options->trace_ring);
	if (options->trace[0] && !ss_trace_open(options->trace, say))
		ss_shim_log("cannot open SOMASHIM_TRACE %s: %s", options->trace,
			    errno == ENODEV ? "it is no regular file" : strerror(errno));
}

static struct ss_journal *journal;

static void end_of_journal(const char *line)
{
	ss_shim_log("%s", line);
}

static void put(bool allocated, const void *ptr, size_t size, const void *stream)
{
	ss_journal_line(journal, allocated, ptr, size, stream);
}

ss_journal_put *ss_recording_journal(const struct ss_options *options)
{
	if (!options->journal[0])
		return NULL;
	journal = ss_journal_open(options->journal, end_of_journal);
	if (!journal) {
		ss_shim_log("cannot open SOMASHIM_JOURNAL %s: %s", options->journal,
			    strerror(errno));
		return NULL;
	}
	if (ss_journal_other_name(journal))
		ss_shim_log("SOMASHIM_JOURNAL: its name is taken, so this journal is %s",
			    ss_journal_other_name(journal));
	return put;
}

/* The address is "0000:c1:00.0"; not every runtime writes the function. */
static void describe_device(int dev)
{
	struct ss_driver driver = ss_rocm_driver();
	unsigned domain = 0, bus = 0, device = 0, function = 0;
	struct ss_device_info info = {0};
	hipUUID uuid = {{0}};
	char id[64] = "";

	if (driver.device_info(driver.ctx, dev, &info) != SS_OK)
		return;
	if (REAL(hipDeviceGetPCIBusId, id, (int)sizeof(id), dev) == hipSuccess)
		(void)sscanf(id, "%x:%x:%x.%x", &domain, &bus, &device, &function);
	(void)REAL(hipDeviceGetUuid, &uuid, dev);
	ss_trace_device(dev, domain, bus, device, function, (const uint8_t *)uuid.bytes,
			info.total_bytes, info.name);
}

void ss_recording_describe(int devices)
{
	const struct ss_runtime *rt = ss_runtime();
	char text[96];

	if (!ss_trace_on())
		return;
	snprintf(text, sizeof(text), "%d.%d (%d), %s", rt->major, rt->minor, rt->version,
		 ss_release_name(rt->major, rt->minor).s);
	ss_trace_write_info(SS_TRACE_INFO_RUNTIME, text);
	for (int dev = 0; dev < devices; dev++)
		describe_device(dev);
}
