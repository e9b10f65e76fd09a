/* SPDX-License-Identifier: MIT */
/* Finds somashim's libraries and puts them into LD_PRELOAD and LD_AUDIT. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/run_loader.h"
#include "cli/run_preload.h"

#define PRELOAD "libsomashim.so"
#define AUDITOR "libsomashim-audit.so"
#define PATH_BYTES (PATH_MAX + 256)

/* Relative to this program: first a build tree, then an installation, which may have been
 * moved since it was configured. */
static const char *const places[] = {
	"%s/../shim/%s", "%s/../" SOMASHIM_LIBDIR "/%s", "%s/../lib/%s", "%s/../lib64/%s",
};

static char library[PATH_BYTES];

/* If it is not found, `out` is the place that was tried last: the configured one. */
static bool find_library(const char *name, char *out, size_t size) {
	char self[PATH_MAX], path[PATH_BYTES];

	if (ss_child_self(self, sizeof(self))) {
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

static bool prepend(const char *variable, const char *path, char *err, size_t err_size) {
	const char *old = getenv(variable);
	char *value;

	if (strpbrk(path, ": ")) {
		snprintf(err, err_size, "%s cannot hold '%s': the path has a space or a colon",
			variable, path);
		return false;
	}
	if (asprintf(&value, "%s%s%s", path, old && *old ? ":" : "", old ? old : "") < 0) {
		snprintf(err, err_size, "out of memory");
		return false;
	}
	bool ok = setenv(variable, value, 1) == 0;
	free(value);
	if (!ok) {
		snprintf(err, err_size, "out of memory");
	}
	return ok;
}

bool ss_preload_enter(bool quiet, char *err, size_t err_size) {
	char path[PATH_BYTES];
	const char *old = getenv("LD_PRELOAD");

	if (old && strstr(old, PRELOAD)) {
		snprintf(err, err_size, "LD_PRELOAD holds " PRELOAD " already (%s)", old);
		return false;
	}
	if (!find_library(PRELOAD, library, sizeof(library))) {
		snprintf(err, err_size, PRELOAD " was not found, last tried %s", library);
		return false;
	}
	if (!prepend("LD_PRELOAD", library, err, err_size)) {
		return false;
	}
	/* The auditor sees what a preload cannot: dlsym on a handle, and RTLD_DEEPBIND. */
	old = getenv("LD_AUDIT");
	if (!ss_loader_audits(NULL, quiet) || (old && strstr(old, AUDITOR)) ||
			!find_library(AUDITOR, path, sizeof(path))) {
		return true;
	}
	return prepend("LD_AUDIT", path, err, err_size);
}

const char *ss_preload_library(void) {
	return library;
}

void ss_preload_remove(void) {
	char *list = getenv("LD_PRELOAD"), *rest = list ? calloc(1, strlen(list) + 1) : NULL;

	if (!rest) {
		return;
	}
	for (char *one = strtok(list, ": "); one; one = strtok(NULL, ": ")) {
		if (!strstr(one, PRELOAD)) {
			strcat(strcat(rest, *rest ? ":" : ""), one);
		}
	}
	setenv("LD_PRELOAD", rest, 1);
	free(rest);
}
