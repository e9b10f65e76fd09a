/* SPDX-License-Identifier: MIT */
/*
 * `somashim doctor`: is there a runtime, is there a device, which backings work,
 * and which known defects apply. The tests themselves run in the preloaded
 * library (SOMASHIM_SELFTEST=1), in a child that does one HIP call, because that
 * is how it will run in a program; a child that hangs or dies is a verdict too.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/driver.h"
#include "driver/rocm/quirks.h"

#define PATIENCE_S 120
#define NO_DEVICE 100 /* hipErrorNoDevice */
#define COUNT_FAILED "hipGetDeviceCount failed: "

static void tell_error(int err) {
	const char *(*get_name)(int);

	*(void **)&get_name = dlsym(RTLD_DEFAULT, "hipGetErrorName");
	fprintf(stderr, "somashim: " COUNT_FAILED "%s (%d)\n", get_name ? get_name(err) : "error",
		err);
}

/* In the child: any runtime will do, the newest first. */
static int probe(void) {
	static const char *const names[] = {
		"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so",
	};
	int (*get_count)(int *) = NULL;
	int (*hip_free)(void *) = NULL;
	int count = 0, err;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !hip_free; i++) {
		void *lib = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);

		if (!lib) {
			continue;
		}
		*(void **)&get_count = dlsym(lib, "hipGetDeviceCount");
		/* Through the preload, which wakes up here. */
		*(void **)&hip_free = dlsym(RTLD_DEFAULT, "hipFree");
	}
	if (!hip_free || !get_count) {
		fprintf(stderr, "somashim: no libamdhip64 was found\n");
		return 3;
	}
	err = get_count(&count);
	if (err && err != NO_DEVICE) {
		tell_error(err);
		return 1;
	}
	if (err || count == 0) {
		fprintf(stderr, "somashim: no device (error %d)\n", err);
		return 77;
	}
	return hip_free(NULL) ? 1 : 0;
}

/* What the child said, line by line. */
struct report {
	char *line[256];
	size_t count;
	int major, minor;
	char arch[64];
	char best[SS_MAX_DEVICES][8]; /* backing of each device */
	int devices;
	bool failed; /* a backing that is offered does not work */
	char wrong[128]; /* what stood in the way of all tests */
};

static void keep(struct report *r, char *line) {
	char *at;

	if ((at = strstr(line, ", version ")) && (at = strchr(at, '('))) {
		sscanf(at, "(%d.%d)", &r->major, &r->minor);
	}
	if ((at = strstr(line, " gfx"))) {
		sscanf(at, " %63[a-z0-9]", r->arch);
	}
	if ((at = strstr(line, COUNT_FAILED))) {
		snprintf(r->wrong, sizeof(r->wrong), "the runtime fails: %s", at);
	}
	int dev;
	char best[8];
	if ((at = strstr(line, "selftest device ")) &&
			sscanf(at, "selftest device %d: best: %7[a-z]", &dev, best) == 2 &&
			dev >= 0 && dev < SS_MAX_DEVICES) {
		strcpy(r->best[dev], best);
		r->devices = dev >= r->devices ? dev + 1 : r->devices;
	}
	r->failed |= strstr(line, "selftest") && strstr(line, ": failed");
	if (r->count < sizeof(r->line) / sizeof(r->line[0])) {
		r->line[r->count++] = strdup(line);
	}
}

/* Takes our library out of LD_PRELOAD, which `run` puts in again, and what would keep it
 * from being tested or have it write where the user's programs do. */
static void clean_environment(void) {
	static const char *const names[] = {
		"SOMASHIM_DISABLE", "SOMASHIM_LOG", "SOMASHIM_JOURNAL", "SOMASHIM_REPORT",
	};
	char *list = getenv("LD_PRELOAD"), *rest = list ? calloc(1, strlen(list) + 1) : NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		unsetenv(names[i]);
	}
	if (!rest) {
		return;
	}
	for (char *one = strtok(list, ": "); one; one = strtok(NULL, ": ")) {
		if (!strstr(one, "libsomashim.so")) {
			strcat(strcat(rest, *rest ? ":" : ""), one);
		}
	}
	setenv("LD_PRELOAD", rest, 1);
	free(rest);
}

/* Runs the probe in a child with the preload and reads what it says. Its status
 * as waitpid has it, or -1. */
static int examine(struct report *r) {
	int pipes[2], status = -1;
	char line[1024];

	if (pipe(pipes) != 0) {
		return -1;
	}
	pid_t pid = fork();
	if (pid == 0) {
		dup2(pipes[1], 2);
		close(pipes[0]);
		close(pipes[1]);
		setenv("SOMASHIM_SELFTEST", "1", 1);
		setenv("SOMASHIM_VERBOSE", "1", 1);
		clean_environment();
		alarm(PATIENCE_S);
		char self[] = "/proc/self/exe", *args[] = {
			"somashim", "--quiet", "--", self, "doctor", "--probe", NULL };
		_exit(ss_cmd_run(6, args));
	}
	close(pipes[1]);
	FILE *f = pid > 0 ? fdopen(pipes[0], "r") : NULL;
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		keep(r, line);
	}
	if (f) {
		fclose(f);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		return -1;
	}
	return status;
}

/* Every device was tried, and one of its backings does. */
static bool tested(const struct report *r) {
	for (int i = 0; i < r->devices; i++) {
		if (!r->best[i][0]) {
			return false;
		}
	}
	return r->devices > 0;
}

static const char *verdict(const struct report *r, int status) {
	if (status == -1) {
		return "cannot run the probe";
	}
	if (WIFSIGNALED(status)) {
		return WTERMSIG(status) == SIGALRM ? "a backing hangs" : "the probe died";
	}
	switch (WEXITSTATUS(status)) {
	case 0:
		if (!tested(r)) {
			return "nothing was tested";
		}
		return r->failed ? "usable, but a backing that is offered fails" : "good";
	case 77: return "no device";
	case 3: return "no runtime";
	default: return r->wrong[0] ? r->wrong : "the runtime fails";
	}
}

/* How many bytes at `s` are a character of UTF-8; 0: it is none. */
static int utf8(const unsigned char *s) {
	unsigned c = s[0];
	int n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 :
		c >= 0xf0 && c < 0xf5 ? 4 : 0;

	for (int i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80) {
			return 0;
		}
	}
	/* Longer than need be, halves of pairs, past the last one. */
	if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f) ||
			(c == 0xf0 && s[1] < 0x90) || (c == 0xf4 && s[1] > 0x8f)) {
		return 0;
	}
	return n;
}

/* A path is any bytes; JSON is UTF-8. */
static void json_string(const char *s) {
	putchar('"');
	for (int n; *s; s += n ? n : 1) {
		n = utf8((const unsigned char *)s);
		if (*s == '"' || *s == '\\') {
			putchar('\\');
		}
		if (n == 0) {
			fputs("\xef\xbf\xbd", stdout); /* U+FFFD */
		} else if ((unsigned char)*s >= ' ') {
			printf("%.*s", n, s);
		}
	}
	putchar('"');
}

int ss_cmd_doctor(int argc, char **argv) {
	struct report r = { 0 };
	bool json = false;
	size_t count;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--probe") == 0) {
			return probe();
		}
		if (ss_cli_help(argv[i])) {
			puts("usage: somashim doctor [--json]\n"
				"  tries the runtime, the devices and every backing, and lists known "
				"defects\n"
				"  --json  one object");
			return 0;
		}
		if (strcmp(argv[i], "--json") != 0) {
			return ss_cli_error("doctor: unknown option %s", argv[i]);
		}
		json = true;
	}
	int status = examine(&r);
	const char *v = verdict(&r, status);
	const struct ss_quirk *q = ss_quirks(&count);

	printf(json ? "{\"verdict\": " : "verdict: ");
	json ? json_string(v) : (void)puts(v);
	if (json) {
		printf(", \"runtime\": \"%d.%d\", \"arch\": ", r.major, r.minor);
		json_string(r.arch);
		printf(", \"best\": [");
		for (int i = 0; i < r.devices; i++) {
			printf("%s\"%s\"", i ? ", " : "", r.best[i]);
		}
		printf("], \"lines\": [");
	}
	for (size_t i = 0; i < r.count; i++) {
		if (json) {
			printf(i ? ", " : "");
			json_string(r.line[i]);
		} else {
			printf("  %s\n", r.line[i]);
		}
		free(r.line[i]);
	}
	printf(json ? "], \"quirks\": [" : "known defects that apply (docs/known-problems.md):\n");
	bool first = true;
	for (size_t i = 0; i < count && r.major; i++) {
		if (!ss_quirk_applies(&q[i], r.major, r.minor, r.arch[0] ? r.arch : NULL)) {
			continue;
		}
		if (json) {
			printf("%s{\"id\": \"%s\", \"ref\": \"%s\", \"wrong\": ", first ? "" : ", ",
				q[i].id, q[i].ref);
			json_string(q[i].wrong);
			printf(", \"does\": ");
			json_string(q[i].does);
			putchar('}');
		} else {
			printf("  %-4s %s (%s): %s\n", q[i].id, q[i].wrong, q[i].ref, q[i].does);
		}
		first = false;
	}
	if (json) {
		puts("]}");
	}
	if (status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		return 77;
	}
	return strcmp(v, "good") == 0 ? 0 : 1;
}
