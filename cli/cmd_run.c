/* SPDX-License-Identifier: MIT */
/*
 * `somashim run PROGRAM`: becomes the program, with the preload in place. It
 * execs instead of forking, so that signals, exit status, job control and the
 * process id are the program's own.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* Beside this binary in a build tree and in an installation that was moved; the
 * configured place is the last resort. */
static const char *const places[] = {
	"%s/../shim/%s", "%s/../" SOMASHIM_LIBDIR "/%s", "%s/../lib/%s", "%s/../lib64/%s",
};

static bool find_library(const char *name, char *out, size_t size) {
	char self[PATH_MAX], path[PATH_MAX + 256];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n > 0) {
		self[n] = '\0';
		*strrchr(self, '/') = '\0';
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			char *real;
			snprintf(path, sizeof(path), places[i], self, name);
			if (access(path, R_OK) == 0 && (real = realpath(path, NULL))) {
				snprintf(out, size, "%s", real);
				free(real);
				return true;
			}
		}
	}
	snprintf(out, size, "%s/%s/%s", SOMASHIM_PREFIX, SOMASHIM_LIBDIR, name);
	return access(out, R_OK) == 0;
}

/* Ours first, then whatever was there. */
static bool prepend(const char *variable, const char *path) {
	const char *old = getenv(variable);
	char *value;

	if (strpbrk(path, ": ")) {
		ss_cli_error("%s cannot hold '%s': the path has a space or a colon", variable,
			path);
		return false;
	}
	if (asprintf(&value, "%s%s%s", path, old && *old ? ":" : "", old ? old : "") < 0) {
		return false;
	}
	bool ok = setenv(variable, value, 1) == 0;
	free(value);
	return ok;
}

int ss_cmd_run(int argc, char **argv) {
	char path[PATH_MAX + 256];
	bool quiet = false;
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (strcmp(argv[i], "--quiet") != 0 && strcmp(argv[i], "-q") != 0) {
			return ss_cli_error("run: unknown option %s", argv[i]);
		}
		quiet = true;
	}
	if (i >= argc) {
		return ss_cli_error("usage: somashim run [--quiet] [--] PROGRAM [ARGS]");
	}
	const char *preload = getenv("LD_PRELOAD");
	if (preload && strstr(preload, "libsomashim.so")) {
		return ss_cli_error("run: LD_PRELOAD holds libsomashim.so already (%s)", preload);
	}
	if (!find_library("libsomashim.so", path, sizeof(path))) {
		return ss_cli_error("run: libsomashim.so was not found, last tried %s", path);
	}
	if (!prepend("LD_PRELOAD", path)) {
		return 2;
	}
	/* The auditor sees what a preload cannot: dlsym on a handle, DEEPBIND. */
	const char *audit = getenv("LD_AUDIT");
	if (find_library("libsomashim-audit.so", path, sizeof(path)) &&
			!(audit && strstr(audit, "libsomashim-audit.so")) &&
			!prepend("LD_AUDIT", path)) {
		return 2;
	}
	if (!quiet) {
		setenv("SOMASHIM_STATS", "1", 0);
	}
	execvp(argv[i], argv + i);
	/* As a shell says it. */
	int status = errno == ENOENT ? 127 : 126;
	ss_cli_error("run: %s: %s", argv[i], strerror(errno));
	return status;
}
