/* SPDX-License-Identifier: MIT */
/*
 * Finds HIP runtimes. AMD's packages since ROCm 10.0 install into /opt/rocm/core-X.Y without an
 * entry for the loader, and Python wheels have the library among their own files. Often there is
 * only libamdhip64.so.N, without a link that has no number.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor_runtime.h"

#define NEWEST_NAME 9 /* the loader is asked for libamdhip64.so.9 to .so.5 */
#define OLDEST_NAME 5

struct list {
	struct ss_runtime_file *file;
	size_t count;
};

bool ss_runtime_same(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static void add(struct list *l, const char *path, const char *from)
{
	struct stat st;
	bool is_name = !strchr(path, '/');

	if (l->count == SS_RUNTIMES_MAX || strlen(path) >= PATH_MAX ||
	    (!is_name && (stat(path, &st) != 0 || !S_ISREG(st.st_mode))))
		return;
	for (size_t i = 0; i < l->count && !is_name; i++)
		if (ss_runtime_same(l->file[i].path, path))
			return;
	strcpy(l->file[l->count].path, path);
	l->file[l->count++].from = from;
}

static int newest_first(const void *a, const void *b)
{
	return -strverscmp(*(char *const *)a, *(char *const *)b);
}

/* Adds what matches the pattern, the highest version first. */
static void add_glob(struct list *l, const char *pattern, const char *from)
{
	glob_t g;

	if (glob(pattern, GLOB_NOSORT, NULL, &g) == 0) {
		qsort(g.gl_pathv, g.gl_pathc, sizeof(g.gl_pathv[0]), newest_first);
		for (size_t i = 0; i < g.gl_pathc; i++)
			add(l, g.gl_pathv[i], from);
	}
	globfree(&g);
}

/* Adds the runtimes of the directories that match. A name with one number is the one that programs
 * ask for. */
static void add_directories(struct list *l, const char *directory, const char *from)
{
	static const char *const names[] = {
		"libamdhip64.so.[0-9][0-9]",
		"libamdhip64.so.[0-9]",
		"libamdhip64.so",
		"libamdhip64.so.*",
	};
	char pattern[PATH_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (snprintf(pattern, sizeof(pattern), "%s/%s", directory, names[i]) < PATH_MAX)
			add_glob(l, pattern, from);
}

#define WHEEL "_rocm_sdk_core/lib"

/* The places of a ROCm, of a Python environment and of a wheel below a directory. */
static void add_tree(struct list *l, const char *top, const char *from)
{
	static const char *const below[] = {
		"",
		"/lib",
		"/lib64",
		"/core-*/lib",
		"/" WHEEL,
		"/lib/python3*/site-packages/" WHEEL,
		"/lib/*-linux-gnu", /* Debian's packages, below /usr */
	};
	char directory[PATH_MAX];

	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++)
		if (snprintf(directory, sizeof(directory), "%s%s", top, below[i]) < PATH_MAX)
			add_directories(l, directory, from);
}

static void add_variable(struct list *l, const char *name, const char *suffix)
{
	const char *value = getenv(name);
	char directory[PATH_MAX];

	if (value && value[0] &&
	    snprintf(directory, sizeof(directory), "%s%s", value, suffix) < PATH_MAX)
		add_directories(l, directory, name);
}

/* A separate runtime, such as AMD's HRX, is preloaded: programs get it before any other. */
static void add_preload(struct list *l)
{
	const char *at = getenv("LD_PRELOAD"), *base;
	char path[PATH_MAX];

	while (at && *at) {
		int length = (int)strcspn(at, ": ");

		snprintf(path, sizeof(path), "%.*s", length, at);
		base = strrchr(path, '/');
		if (base && strncmp(base + 1, "libamdhip64.so", strlen("libamdhip64.so")) == 0)
			add(l, path, "LD_PRELOAD");
		at += length + (at[length] != '\0');
	}
}

static void add_library_path(struct list *l)
{
	const char *at = getenv("LD_LIBRARY_PATH");
	char directory[PATH_MAX];

	while (at && *at) {
		int length = (int)strcspn(at, ":;");

		if (length && snprintf(directory, sizeof(directory), "%.*s", length, at) < PATH_MAX)
			add_directories(l, directory, "LD_LIBRARY_PATH");
		at += length + (at[length] != '\0');
	}
}

/* Adds the names that the loader looks for in its cache and its standard directories. */
static void add_names(struct list *l)
{
	char name[32];

	for (int n = NEWEST_NAME; n >= OLDEST_NAME; n--) {
		snprintf(name, sizeof(name), "libamdhip64.so.%d", n);
		add(l, name, "the loader's directories");
	}
	add(l, "libamdhip64.so", "the loader's directories");
}

/* Adds AMD's packages, then packages of distributions in the loader's own directories, then
 * wheels. */
static void add_places(struct list *l, const char *root)
{
	static const struct {
		const char *pattern, *from;
	} places[] = {
		{"/opt/rocm/core-*/lib", "/opt/rocm/core-*/lib"},
		{"/opt/rocm*/lib", "/opt/rocm*/lib"},
		{"/opt/rocm*/core-*/lib", "/opt/rocm*/core-*/lib"},
		{"/usr/lib/*-linux-gnu", "/usr/lib"},
		{"/usr/lib64", "/usr/lib64"},
		{"/usr/local/lib/python3*/*-packages/" WHEEL, "a wheel"},
		{"/usr/lib/python3*/*-packages/" WHEEL, "a wheel"},
	};
	char directory[PATH_MAX];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (snprintf(directory, sizeof(directory), "%s%s", root, places[i].pattern) <
		    PATH_MAX)
			add_directories(l, directory, places[i].from);
}

size_t ss_runtimes_find(const char *root, const char *asked,
			struct ss_runtime_file out[SS_RUNTIMES_MAX])
{
	struct list l = {.file = out};
	char here[PATH_MAX];

	if (asked) {
		/* The loader does not look for names in the working directory. */
		if (!strchr(asked, '/') && access(asked, F_OK) == 0 &&
		    snprintf(here, sizeof(here), "./%s", asked) < PATH_MAX)
			asked = here;
		add(&l, asked, "--runtime");
		if (!l.count)
			add_tree(&l, asked, "--runtime");
		return l.count;
	}
	add_preload(&l);
	add_library_path(&l);
	if (getenv("ROCM_PATH") && getenv("ROCM_PATH")[0])
		add_tree(&l, getenv("ROCM_PATH"), "ROCM_PATH");
	add_names(&l);
	add_variable(&l, "VIRTUAL_ENV", "/lib/python3*/site-packages/" WHEEL);
	add_variable(&l, "CONDA_PREFIX", "/lib/python3*/site-packages/" WHEEL);
	add_places(&l, root);
	add_variable(&l, "HOME", "/.local/lib/python3*/site-packages/" WHEEL);
	return l.count;
}
