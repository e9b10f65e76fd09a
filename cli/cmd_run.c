/* SPDX-License-Identifier: MIT */
/*
 * `somashim run PROGRAM`: runs the program with the preload and the auditor in place, and
 * says at the end whether they were used. With --quiet nothing is said, so it becomes
 * the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/cli.h"
#include "shim/report.h"

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

/* ---- what is said at the end -------------------------------------------- */

/* In TMPDIR, or in /tmp where that is not to be written to. */
static int report_create(char *path, size_t size) {
	const char *dirs[] = { getenv("TMPDIR"), "/tmp" };
	int fd = -1;

	for (size_t i = 0; i < 2 && fd < 0; i++) {
		if (dirs[i] && *dirs[i]) {
			snprintf(path, size, "%s/somashim-run.XXXXXX", dirs[i]);
			fd = mkostemp(path, O_CLOEXEC);
		}
	}
	return fd;
}

/* A file that every process of the program can map, as SOMASHIM_REPORT. */
static struct ss_report *report_open(char *path, size_t size) {
	int fd = report_create(path, size);
	if (fd < 0) {
		ss_cli_error("run: %s: %s: how it is used will not be said", path, strerror(errno));
		return NULL;
	}
	struct ss_report *r = ftruncate(fd, SS_REPORT_BYTES) == 0 ?
		mmap(NULL, SS_REPORT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	int error = errno;
	close(fd);
	if (r == MAP_FAILED || setenv("SOMASHIM_REPORT", path, 1) != 0) {
		ss_cli_error("run: %s: %s: how it is used will not be said", path,
			strerror(r == MAP_FAILED ? error : errno));
		unlink(path);
		return NULL;
	}
	r->magic = SS_REPORT_MAGIC;
	return r;
}

static void report_print(const struct ss_report *r, const char *program, const char *library) {
	static const char *const routes[SS_ROUTES] = {
		[SS_ROUTE_LINK] = "bound by name",
		[SS_ROUTE_PAST] = "bound past the preload, turned round by the auditor",
		[SS_ROUTE_DLSYM] = "by dlsym()",
		[SS_ROUTE_PROC] = "by hipGetProcAddress()",
		[SS_ROUTE_TABLE] = "by the runtime's API table",
	};
	const char *separator = "; references: ";
	char reason[1024];

	fprintf(stderr, "somashim: ");
	if (r->used) {
		fprintf(stderr, "used in %u process%s", r->used, r->used == 1 ? "" : "es");
		for (int i = 0; i < SS_ROUTES; i++) {
			if (r->route[i]) {
				fprintf(stderr, "%s%u %s", separator, r->route[i], routes[i]);
				separator = ", ";
			}
		}
		if (r->bypassed) {
			fprintf(stderr, "; in %u, calls went past it", r->bypassed);
		}
	} else if (r->off) {
		fprintf(stderr, "not used: no device was found, or SOMASHIM_DISABLE is set");
	} else if (r->unused) {
		fprintf(stderr, "NOT USED, although %s has HIP: no call of it came by (linked "
			"statically, in another link namespace, or none was made)", program);
	} else if (r->loaded) {
		fprintf(stderr, "not used: no call into HIP of %s reached the library (none was "
			"made, or in another link namespace: dlmopen)", program);
	} else if (ss_loader_refusal(library, reason, sizeof(reason))) {
		fprintf(stderr, "NOT LOADED: the dynamic loader refuses the library: %s", reason);
	} else {
		fprintf(stderr, "NOT LOADED: %s is linked statically, has more rights than its "
			"caller, or is for another machine", program);
	}
	fprintf(stderr, "\n");
}

static int usage(FILE *out) {
	fputs("usage: somashim run [--quiet] [--] PROGRAM [ARGS]\n"
		"  runs PROGRAM with libsomashim.so in LD_PRELOAD and says at the end how it was used\n"
		"  --quiet, -q  become the program and say nothing\n", out);
	return out == stderr ? 2 : 0;
}

int ss_cmd_run(int argc, char **argv) {
	char path[PATH_MAX + 256], library[PATH_MAX + 256];
	bool quiet = false;
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (ss_cli_help(argv[i])) {
			return usage(stdout);
		}
		if (strcmp(argv[i], "--quiet") != 0 && strcmp(argv[i], "-q") != 0) {
			return ss_cli_error("run: unknown option %s", argv[i]);
		}
		quiet = true;
	}
	if (i >= argc) {
		return usage(stderr);
	}
	const char *preload = getenv("LD_PRELOAD");
	if (preload && strstr(preload, "libsomashim.so")) {
		return ss_cli_error("run: LD_PRELOAD holds libsomashim.so already (%s)", preload);
	}
	if (!find_library("libsomashim.so", library, sizeof(library))) {
		return ss_cli_error("run: libsomashim.so was not found, last tried %s", library);
	}
	if (!prepend("LD_PRELOAD", library)) {
		return 2;
	}
	/* The auditor sees what a preload cannot: dlsym on a handle, DEEPBIND. */
	const char *audit = getenv("LD_AUDIT");
	if (ss_loader_audits(NULL, quiet) &&
			find_library("libsomashim-audit.so", path, sizeof(path)) &&
			!(audit && strstr(audit, "libsomashim-audit.so")) &&
			!prepend("LD_AUDIT", path)) {
		return 2;
	}
	if (!quiet) {
		setenv("SOMASHIM_STATS", "1", 0);
	}
	struct ss_report *report = quiet ? NULL : report_open(path, sizeof(path));
	if (!report) {
		execvp(argv[i], argv + i);
		/* As a shell says it. */
		int failed = errno == ENOENT ? 127 : 126;
		ss_cli_error("run: %s: %s", argv[i], strerror(errno));
		return failed;
	}
	bool started;
	int status = ss_attend(argv + i, &started);
	unlink(path);
	if (started) {
		report_print(report, argv[i], library);
	}
	return ss_end_as(status);
}
