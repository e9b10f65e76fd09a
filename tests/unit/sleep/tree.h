/* SPDX-License-Identifier: MIT */
/* A folder whose proc and sys stand for the kernel's. It lies in memory where there is such a file
 * system, because a disk takes its time. */
#ifndef TREE_H
#define TREE_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char tree[64];

static inline int tree_remove(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

static inline void tree_end(void)
{
	if (tree[0])
		assert_int_equal(nftw(tree, tree_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
	tree[0] = '\0';
}

static inline void tree_begin(void)
{
	snprintf(tree, sizeof(tree), "%s/somashim-tree-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	assert_non_null(mkdtemp(tree));
}

/* Writes a file, with the folders above it. */
static inline void tree_file(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", tree, name);
	for (char *p = path + strlen(tree) + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		mkdir(path, 0700);
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

#endif
