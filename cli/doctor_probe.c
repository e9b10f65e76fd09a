/* SPDX-License-Identifier: MIT */
/*
 * Runs the self-test of the preload in a child process, because that is how it runs in a
 * program, and because a child that stops or dies is an answer too. The child reports
 * through its stderr and through the shared page of shim/process/report.h.
 */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/run_preload.h"
#include "cli/doctor_probe.h"
#include "cli/no_device.h"
#include "cli/run_report.h"
#include "core/base/deadline.h"

#define TICK_MS 100
#define CALL_FAILED " failed: " /* in a line of the child: which call, and its error */

/* ---- what the child says ------------------------------------------------ */

/* Reads from a line what --save did. The last device with which something went wrong counts, or
 * else the last device. */
static void read_saved(struct ss_probe *p, const char *line)
{
	static const char remembered[] = "the verdict is not remembered: ";
	static const char prefix[] = "somashim: selftest ";
	const char *name = line + sizeof(prefix) - 1, *vmm = strstr(line, " vmm: "), *at;
	int length = (int)(vmm ? vmm - name : 0);

	if (!p->save || !vmm || strncmp(line, prefix, sizeof(prefix) - 1) != 0)
		return;
	if ((at = strstr(line, remembered)) && strlen(at) < 200) {
		snprintf(p->saved, sizeof(p->saved),
			 "nothing was saved of %.*s: %s (the place is somashim in XDG_STATE_HOME, "
			 "else in ~/.local/state)",
			 length, name, at + sizeof(remembered) - 1);
		p->unsaved = true;
	} else if (strstr(vmm, ": not offered")) {
		snprintf(p->saved, sizeof(p->saved),
			 "nothing was saved of %.*s: vmm is not offered there", length, name);
		p->unsaved = true;
	} else if (strstr(vmm, ": failed") && !p->unsaved) {
		snprintf(p->saved, sizeof(p->saved), "saved: vmm failed on %.*s", length, name);
		p->unsaved = true;
	} else if (strstr(vmm, ": passed") && !p->unsaved) {
		snprintf(p->saved, sizeof(p->saved), "saved: vmm passed on %.*s", length, name);
	}
}

static void read_line(struct ss_probe *p, const char *line)
{
	char *at, best[8];
	int dev;

	if ((at = strstr(line, ", HIP version ")) && (at = strchr(at, '(')))
		sscanf(at, "(%d.%d)", &p->major, &p->minor);
	if (strncmp(line, SS_PROBE_TAKEN, strlen(SS_PROBE_TAKEN)) == 0) {
		at = strrchr(line, '('); /* of "(from .." */
		snprintf(p->library, sizeof(p->library), "%.*s",
			 (int)(at ? at - line - strlen(SS_PROBE_TAKEN) - 1 : 0),
			 line + strlen(SS_PROBE_TAKEN));
	}
	if ((at = strstr(line, " gfx")))
		sscanf(at, " %63[a-z0-9]", p->arch);
	if (strncmp(line, "somashim: hip", 13) == 0 && strstr(line, CALL_FAILED))
		snprintf(p->verdict, sizeof(p->verdict), "the runtime fails: %s", line + 10);
	if ((at = strstr(line, "selftest device ")) &&
	    sscanf(at, "selftest device %d: best: %7[a-z]", &dev, best) == 2 && dev >= 0 &&
	    dev < SS_MAX_DEVICES) {
		strcpy(p->best[dev], best);
		p->devices = dev >= p->devices ? dev + 1 : p->devices;
	}
	if (at && sscanf(at, "selftest device %d: can sleep: %7[a-z]", &dev, best) == 2 &&
	    dev >= 0 && dev < SS_MAX_DEVICES)
		p->can_sleep[dev] = !strcmp(best, "yes");
	p->failed |= strstr(line, "selftest") && strstr(line, ": failed");
	read_saved(p, line);
	if (p->say)
		p->say(line);
	if (p->count < SS_PROBE_LINES && (p->line[p->count] = strdup(line)))
		p->count++;
}

struct output {
	int fd;
	char text[1024]; /* the line that is not complete yet */
	size_t length;
};

static void end_line(struct ss_probe *p, struct output *o)
{
	o->text[o->length] = '\0';
	o->length = 0;
	read_line(p, o->text);
}

/* Reads what is there. False at the end of the output. */
static bool read_some(struct ss_probe *p, struct output *o)
{
	char data[4096];
	ssize_t n = read(o->fd, data, sizeof(data));

	for (ssize_t i = 0; i < n; i++) {
		if (data[i] != '\n')
			o->text[o->length++] = data[i];
		if (data[i] == '\n' || o->length == sizeof(o->text) - 1)
			end_line(p, o);
	}
	if (n <= 0 && o->length)
		end_line(p, o);
	return n > 0;
}

/* ---- the parent --------------------------------------------------------- */

static struct ss_deadline in_seconds(unsigned s)
{
	uint64_t ms = s * 1000ull;

	return ss_deadline_in(ss_monotonic_ns(), ms * 1000000, ms / TICK_MS);
}

/* Steps that the child was seen in. */
struct steps {
	char said[sizeof(((struct ss_report *)0)->step)],
		seen[sizeof(((struct ss_report *)0)->step)];
};

#define START "the start of the runtime"

/* Says which step runs, once it has run for two ticks: the text may be torn while it changes, and a
 * step that takes no time is of no interest. */
static void say_step(struct ss_probe *p, const struct ss_report *report, struct steps *s)
{
	char now[sizeof(s->seen)], line[sizeof(now) + 32];

	snprintf(now, sizeof(now), "%.*s", (int)sizeof(now) - 1, report->step);
	if (!now[0])
		strcpy(now, START);
	if (p->say && strcmp(now, s->seen) == 0 && strcmp(now, s->said) != 0) {
		snprintf(line, sizeof(line), "trying: %s", now);
		p->say(line);
		strcpy(s->said, now);
	}
	strcpy(s->seen, now);
}

/* Reads until the child closes its stderr. Kills the child and returns false if neither a
 * call of the self-test returned nor anything was printed for the given time. */
static bool watch(struct ss_probe *p, pid_t pid, int fd, const struct ss_report *report,
		  unsigned timeout_s)
{
	struct output o = {.fd = fd};
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	struct ss_deadline silent = in_seconds(timeout_s);
	unsigned progress = report->progress;
	struct steps steps = {.said = ""};

	for (;;) {
		int n = poll(&ready, 1, TICK_MS);
		if (n > 0 && !read_some(p, &o))
			return true;
		if (n > 0 || report->progress != progress) {
			progress = report->progress;
			silent = in_seconds(timeout_s);
		} else if (!ss_deadline_take(&silent, 1) ||
			   ss_deadline_over(&silent, ss_monotonic_ns())) {
			kill(pid, SIGKILL);
			return false;
		}
		if (n == 0)
			say_step(p, report, &steps);
	}
}

/* No option that the user has set may keep us from testing, or name a file that the test writes. */
static bool prepare_environment(enum ss_probe_what what, char *err, size_t err_size)
{
	static const char *const names[] = {
		"SOMASHIM_DISABLE", "SOMASHIM_LOG",     "SOMASHIM_JOURNAL",
		"SOMASHIM_TRACE",   "SOMASHIM_METRICS",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	setenv("SOMASHIM_SELFTEST", what == SS_PROBE_UNTRIED ? "new" : "1", 1);
	setenv("SOMASHIM_VERBOSE", "1", 1);
	setenv("SOMASHIM_REMEMBER", what == SS_PROBE_LOOK ? "0" : "1", 1);
	return ss_preload_enter(NULL, false, true, err, err_size);
}

static pid_t start(const char *runtime, int *fd)
{
	char self[PATH_MAX];
	int pipes[2];

	if (!ss_child_self(self, sizeof(self)) || pipe(pipes) != 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* it may stand in a call that does not return */
		dup2(pipes[1], STDERR_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		execl(self, "somashim", "doctor", "--probe", runtime ? "--runtime" : NULL, runtime,
		      (char *)NULL);
		_exit(127);
	}
	close(pipes[1]);
	*fd = pipes[0];
	if (pid < 0)
		close(pipes[0]);
	return pid;
}

/* Every device was tried, and one of its backings works. */
static bool tested(const struct ss_probe *p)
{
	for (int i = 0; i < p->devices; i++)
		if (!p->best[i][0])
			return false;
	return p->devices > 0;
}

#define NO_EXEC 127

static int judge(struct ss_probe *p, int status, const struct ss_report *report)
{
	const char *step = report->step[0] ? report->step : START;

	if (WIFSIGNALED(status)) {
		snprintf(p->verdict, sizeof(p->verdict),
			 "the probe died of signal %d (%s) in: %.90s", WTERMSIG(status),
			 strsignal(WTERMSIG(status)), step);
		return 1;
	}
	const char *verdict = "the probe failed and did not say why";
	char why[SS_NO_DEVICE_BYTES];
	int result = 1;
	switch (WEXITSTATUS(status)) {
	case 0:
		if (!report->loaded) {
			verdict = "libsomashim.so was found, but the loader did not load it";
		} else if (!tested(p)) {
			verdict = "nothing was tested";
		} else if (p->failed) {
			verdict = "usable, but a backing that is offered fails";
		} else {
			verdict = "good";
			result = 0;
		}
		break;
	case SS_EXIT_NO_DEVICE:
		strcpy(p->verdict, "no device: ");
		ss_no_device_reason("", p->library, why);
		strncat(p->verdict, why, sizeof(p->verdict) - strlen(p->verdict) - 1);
		result = SS_EXIT_NO_DEVICE;
		break;
	case SS_EXIT_NO_RUNTIME: verdict = "no runtime"; break;
	case NO_EXEC: verdict = "the probe cannot be started"; break;
	default: break;
	}
	if (!p->verdict[0] || result == 0)
		snprintf(p->verdict, sizeof(p->verdict), "%s", verdict);
	return result;
}

static void run(struct ss_probe *p, const char *runtime, enum ss_probe_what what,
		unsigned timeout_s)
{
	int fd, status = 0;

	if (!prepare_environment(what, p->verdict, sizeof(p->verdict)))
		return;
	struct ss_report *report = ss_run_report_open(p->verdict, sizeof(p->verdict));
	if (!report)
		return;
	pid_t pid = start(runtime, &fd);
	if (pid < 0) {
		snprintf(p->verdict, sizeof(p->verdict), "the probe cannot be started");
		(void)ss_run_report_close(report, p->verdict, sizeof(p->verdict));
		return;
	}
	bool ended = watch(p, pid, fd, report, timeout_s);
	close(fd);
	if (waitpid(pid, &status, 0) < 0)
		status = 1 << 8; /* how it ended is unknown */
	if (!ss_run_report_close(report, p->verdict, sizeof(p->verdict))) {
		ended = false;
	} else if (ended) {
		p->status = judge(p, status, report);
	} else {
		snprintf(p->verdict, sizeof(p->verdict), "no progress for %u s in: %.90s",
			 timeout_s, report->step[0] ? report->step : START);
	}
}

void ss_probe_run(struct ss_probe *p, void (*say)(const char *), const char *runtime,
		  enum ss_probe_what what, unsigned timeout_s)
{
	memset(p, 0, sizeof(*p));
	p->status = 1;
	p->say = say;
	p->save = what == SS_PROBE_SAVE;
	run(p, runtime, what, timeout_s);
	if (p->save && !p->saved[0])
		strcpy(p->saved, "nothing was saved: vmm was not tried");
}

void ss_probe_finish(struct ss_probe *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->line[i]);
	p->count = 0;
}
