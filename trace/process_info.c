/* SPDX-License-Identifier: MIT */
/* Records the identity of the process: program, arguments, host, job, rank, options. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/process_info.h"

extern char **environ;

void ss_trace_info_text(struct ss_trace_context *c, enum ss_trace_info_key key, const char *text,
			size_t length)
{
	size_t kept = length < SS_TRACE_TEXT_MAX ? length : SS_TRACE_TEXT_MAX;
	uint32_t size = (uint32_t)(sizeof(struct ss_trace_info) + kept + 7) & ~7u;
	struct ss_trace_info *r = ss_trace_begin(c, size);

	if (r) {
		r->key = (uint16_t)key;
		r->length = (uint16_t)kept;
		r->cut = kept < length;
		memcpy(r->text, text, kept);
		ss_trace_commit(c, r, SS_TRACE_INFO, size, 0);
	}
}

static void write_value(struct ss_trace_context *c, enum ss_trace_info_key key, const char *value)
{
	if (value)
		ss_trace_info_text(c, key, value, strlen(value));
}

/* One record per argument. */
static void write_arguments(struct ss_trace_context *c)
{
	static char buffer[SS_TRACE_TEXT_MAX + 1];
	size_t length = 0; /* of the argument so far; only the first bytes are in the buffer */
	char piece[512];
	ssize_t n;
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	while ((n = read(fd, piece, sizeof(piece))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (piece[i] == '\0') {
				ss_trace_info_text(c, SS_TRACE_INFO_ARG, buffer, length);
				length = 0;
			} else {
				if (length < sizeof(buffer))
					buffer[length] = piece[i];
				length++;
			}
		}
	}
	close(fd);
}

void ss_trace_process_info(struct ss_trace_context *c)
{
	/* Static, because the stack of a thread may be small */
	static char text[SS_TRACE_TEXT_MAX + 1];
	struct ss_process_job job;
	ssize_t n = readlink("/proc/self/exe", text, sizeof(text));

	if (n > 0)
		ss_trace_info_text(c, SS_TRACE_INFO_EXE, text, (size_t)n);
	write_arguments(c);
	if (getcwd(text, sizeof(text)))
		ss_trace_info_text(c, SS_TRACE_INFO_CWD, text, strlen(text));
	if (gethostname(text, sizeof(text)) == 0) {
		text[sizeof(text) - 1] = '\0';
		ss_trace_info_text(c, SS_TRACE_INFO_HOST, text, strlen(text));
	}
	ss_trace_info_text(c, SS_TRACE_INFO_VERSION, SOMASHIM_VERSION, strlen(SOMASHIM_VERSION));
	if (ss_process_job(&job)) {
		write_value(c, SS_TRACE_INFO_LAUNCHER, job.launcher);
		write_value(c, SS_TRACE_INFO_RANK, job.rank);
		write_value(c, SS_TRACE_INFO_RANKS, job.ranks);
		write_value(c, SS_TRACE_INFO_LOCAL_RANK, job.local_rank);
		write_value(c, SS_TRACE_INFO_JOB, job.job);
	}
	for (char **e = environ; e && *e; e++)
		if (strncmp(*e, "SOMASHIM_", 9) == 0)
			ss_trace_info_text(c, SS_TRACE_INFO_OPTION, *e, strlen(*e));
}
