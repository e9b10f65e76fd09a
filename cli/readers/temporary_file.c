/* SPDX-License-Identifier: MIT */
/* Creates temporary files and folders. A TMPDIR that is wrong is no reason to fail. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/readers/temporary_file.h"

static int make_file(char *path)
{
	return mkostemp(path, O_CLOEXEC);
}

static int make_folder(char *path)
{
	return mkdtemp(path) ? 0 : -1;
}

/* What make() returns for the first place where it can be. */
static int make_in_some_place(const char *name, char path[PATH_MAX], int (*make)(char *path))
{
	const char *dirs[] = {getenv("TMPDIR"), "/tmp"};
	int made = -1;

	for (size_t i = 0; i < 2 && made < 0; i++) {
		if (dirs[i] && *dirs[i]) {
			snprintf(path, PATH_MAX, "%s/%s.XXXXXX", dirs[i], name);
			made = make(path);
		}
	}
	return made;
}

int ss_temporary_file(const char *name, char path[PATH_MAX])
{
	return make_in_some_place(name, path, make_file);
}

bool ss_temporary_folder(const char *name, char path[PATH_MAX])
{
	return make_in_some_place(name, path, make_folder) == 0;
}

char **ss_temporary_files(const char *folder)
{
	struct dirent **entry = NULL;
	int n = scandir(folder, &entry, NULL, alphasort), count = 0;
	char **paths = n >= 0 ? calloc((size_t)n + 1, sizeof(*paths)) : NULL;

	for (int i = 0; i < n; i++) {
		char *path = NULL;

		if (paths && entry[i]->d_name[0] != '.' &&
		    asprintf(&path, "%s/%s", folder, entry[i]->d_name) >= 0)
			paths[count++] = path;
		free(entry[i]);
	}
	free(entry);
	return paths;
}

void ss_temporary_files_free(char **paths)
{
	for (char **path = paths; path && *path; path++)
		free(*path);
	free(paths);
}

void ss_temporary_folder_remove(const char *folder)
{
	char **paths = ss_temporary_files(folder);

	for (char **path = paths; path && *path; path++)
		unlink(*path);
	ss_temporary_files_free(paths);
	rmdir(folder);
}
