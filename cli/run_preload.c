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
#include "cli/run_program.h"
#include "cli/run_static_tls.h"

#define PRELOAD "libsomashim.so"
#define AUDITOR "libsomashim-audit.so"
#define PATH_BYTES (PATH_MAX + 256)

/* Relative to this program: first a build tree, then an installation, which may have been
 * moved since it was configured. */
static const char *const places[] = {
	"%s/../shim/%s",
	"%s/../" SOMASHIM_LIBDIR "/%s",
	"%s/../lib/%s",
	"%s/../lib64/%s",
};

static char library[PATH_BYTES];

/* If it is not found, `out` is the place that was tried last: the configured one. */
static bool find_library(const char *name, char *out, size_t size)
{
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

static bool set(const char *variable, const char *value, char *err, size_t err_size)
{
	if (setenv(variable, value, 1) != 0) {
		snprintf(err, err_size, "out of memory");
		return false;
	}
	return true;
}

/* Is the file of this path called `name`? */
static bool is_called(const char *path, size_t length, const char *name)
{
	size_t tail = strlen(name);

	return length >= tail && strncmp(path + length - tail, name, tail) == 0 &&
	       (length == tail || path[length - tail - 1] == '/');
}

/* The list with `path` in the place of the first file of that name, or in front if there is none,
 * and without the others. path NULL: without any. To be freed; NULL: host memory is out. */
static char *replace(const char *list, const char *name, const char *path)
{
	size_t length = path ? strlen(path) : 0;
	char *out = malloc(strlen(list) + length + 3), *end = out;
	bool here = !path;

	if (!out)
		return NULL;
	for (size_t n; *list; list += n) {
		list += strspn(list, ": ");
		n = strcspn(list, ": ");
		if (!is_called(list, n, name)) {
			end += sprintf(end, "%s%.*s", n && end > out ? ":" : "", (int)n, list);
		} else if (!here) {
			end += sprintf(end, "%s%s", end > out ? ":" : "", path);
			here = true;
		}
	}
	*end = '\0';
	if (!here) {
		memmove(out + length + 1, out, (size_t)(end - out) + 1);
		memcpy(out, path, length);
		out[length] = end > out ? ':' : '\0';
	}
	return out;
}

/* Puts `path`, a file of that name, into the variable's list. */
static bool enter(const char *variable, const char *name, const char *path, char *err,
		  size_t err_size)
{
	const char *old = getenv(variable);

	if (strpbrk(path, ": ")) {
		snprintf(err, err_size, "%s cannot hold '%s': the path has a space or a colon",
			 variable, path);
		return false;
	}
	char *list = replace(old ? old : "", name, path);
	if (!list) {
		snprintf(err, err_size, "out of memory");
		return false;
	}
	bool ok = set(variable, list, err, err_size);
	free(list);
	return ok;
}

/* Takes all files of that name out of the variable's list. */
static bool leave_out(const char *variable, const char *name, char *err, size_t err_size)
{
	const char *old = getenv(variable);
	char *list = old ? replace(old, name, NULL) : NULL;

	if (old && !list) {
		snprintf(err, err_size, "out of memory");
		return false;
	}
	bool ok = !list || (*list ? set(variable, list, err, err_size) : unsetenv(variable) == 0);
	free(list);
	return ok;
}

/* Sets ASAN_OPTIONS for a program whose own options for AddressSanitizer override ours
 * (shim/process/sanitizers.c). */
static bool allow_sanitizer(char *err, size_t err_size)
{
	const char *old = getenv("ASAN_OPTIONS");
	char value[4096];

	if (old && (strstr(old, "verify_asan_link_order") || strlen(old) > sizeof(value) / 2))
		return true;
	snprintf(value, sizeof(value), "%s%sverify_asan_link_order=0", old ? old : "",
		 old && *old ? ":" : "");
	return set("ASAN_OPTIONS", value, err, err_size);
}

bool ss_preload_enter(const char *program, bool audit, bool quiet, char *err, size_t err_size)
{
	char path[PATH_BYTES];

	if (program && ss_program_other_libc(program))
		return leave_out("LD_PRELOAD", PRELOAD, err, err_size) &&
		       leave_out("LD_AUDIT", AUDITOR, err, err_size);

	if (!find_library(PRELOAD, library, sizeof(library))) {
		snprintf(err, err_size, PRELOAD " was not found, last tried %s", library);
		return false;
	}
	if (!enter("LD_PRELOAD", PRELOAD, library, err, err_size) ||
	    !allow_sanitizer(err, err_size))
		return false;
	if (!audit || !ss_loader_audits(NULL, quiet))
		return true;
	if (!find_library(AUDITOR, path, sizeof(path))) {
		snprintf(err, err_size, AUDITOR " was not found, last tried %s", path);
		return false;
	}
	ss_static_tls_make_room(program);
	return enter("LD_AUDIT", AUDITOR, path, err, err_size);
}

const char *ss_preload_library(void)
{
	return library;
}
