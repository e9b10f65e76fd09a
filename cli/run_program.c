/* SPDX-License-Identifier: MIT */
/* Looks into the file of a program that did not load the preload. */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/run_program.h"
#include "core/base/regular_file.h"

#define SCRIPTS 6 /* the kernel follows a script's interpreter that is a script itself so often */

/* The file that execvp() would take. */
static bool find(const char *program, char path[PATH_MAX])
{
	const char *list = getenv("PATH");

	if (strchr(program, '/'))
		return snprintf(path, PATH_MAX, "%s", program) < PATH_MAX;
	for (size_t n; list && *list; list += n + (list[n] == ':')) {
		n = strcspn(list, ":");
		if (snprintf(path, PATH_MAX, "%.*s/%s", (int)n, list, program) < PATH_MAX &&
		    access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static bool more_rights(int fd)
{
	struct stat st;

	return fgetxattr(fd, "security.capability", NULL, 0) > 0 ||
	       (fstat(fd, &st) == 0 && (((st.st_mode & S_ISUID) && st.st_uid != getuid()) ||
					((st.st_mode & S_ISGID) && st.st_gid != getgid())));
}

/* The name of the program's dynamic loader: "" if it has none. False: the file is broken. */
static bool read_loader(int fd, const Elf64_Ehdr *head, char loader[PATH_MAX])
{
	Elf64_Phdr p;

	loader[0] = '\0';
	for (int i = 0; i < head->e_phnum; i++) {
		off_t at = (off_t)(head->e_phoff + (size_t)i * head->e_phentsize);
		if (pread(fd, &p, sizeof(p), at) != sizeof(p))
			return false;
		if (p.p_type == PT_INTERP) {
			size_t n = p.p_filesz < PATH_MAX - 1 ? p.p_filesz : PATH_MAX - 1;
			loader[n] = '\0';
			return pread(fd, loader, n, (off_t)p.p_offset) == (ssize_t)n;
		}
	}
	return true;
}

/* The interpreter of a script is what the loader starts. env(1) starts the program that follows. */
static bool script_interpreter(const char *head, char path[PATH_MAX])
{
	char name[256];
	size_t n;

	if (strncmp(head, "#!", 2) != 0)
		return false;
	head += 2 + strspn(head + 2, " \t");
	n = strcspn(head, " \t\r\n");
	snprintf(path, PATH_MAX, "%.*s", (int)n, head);
	head += n + strspn(head + n, " \t");
	n = strcspn(head, " \t\r\n");
	if (n > 0 && *head != '-' && strrchr(path, '/') &&
	    strcmp(strrchr(path, '/'), "/env") == 0) {
		snprintf(name, sizeof(name), "%.*s", (int)n, head);
		return find(name, path);
	}
	return path[0] == '/';
}

/* Opens what the kernel would load: the program, or the interpreter of a script. `path` becomes its
 * name. -1: it is no ELF file that can be read. */
static int open_program(const char *program, char path[PATH_MAX], Elf64_Ehdr *head)
{
	char text[256];

	if (!find(program, path))
		return -1;
	for (int i = 0; i < SCRIPTS; i++) {
		int fd = ss_regular_open(path);
		if (fd < 0)
			return -1;
		memset(text, 0, sizeof(text));
		if (pread(fd, text, sizeof(text) - 1, 0) >= (ssize_t)sizeof(*head) &&
		    memcmp(text, ELFMAG, SELFMAG) == 0) {
			memcpy(head, text, sizeof(*head));
			return fd;
		}
		close(fd);
		if (!script_interpreter(text, path))
			return -1;
	}
	return -1;
}

bool ss_program_loader(const char *program, char path[PATH_MAX], char loader[PATH_MAX])
{
	Elf64_Ehdr head;
	int fd = open_program(program, path, &head);
	bool has = fd >= 0 && head.e_ident[EI_CLASS] == ELFCLASS64 &&
		   read_loader(fd, &head, loader) && *loader;

	if (fd >= 0)
		close(fd);
	return has;
}

/* Is it a dynamic loader that is not glibc's, by its name or by that of the file that it leads to?
 * Such a loader does not start a program if it cannot load what LD_PRELOAD names. */
static bool is_foreign(const char *loader)
{
	static const char *const names[] = {"ld-musl", "ld-uClibc", "libgcompat", "linker"};
	char *real = realpath(loader, NULL);
	const char *paths[] = {loader, real ? real : loader};
	bool is = false;

	for (int i = 0; i < 2; i++) {
		const char *base = strrchr(paths[i], '/');
		base = base ? base + 1 : paths[i];
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			is |= strncmp(base, names[k], strlen(names[k])) == 0;
	}
	free(real);
	return is;
}

bool ss_program_other_libc(const char *program)
{
	char path[PATH_MAX], loader[PATH_MAX];

	return ss_program_loader(program, path, loader) && is_foreign(loader);
}

bool ss_program_obstacle(const char *program, char *reason, size_t size)
{
	char path[PATH_MAX], own_path[PATH_MAX], loader[PATH_MAX];
	Elf64_Ehdr head, own;
	int fd = open_program(program, path, &head),
	    self = open_program("/proc/self/exe", own_path, &own);
	bool is = fd >= 0;

	if (is && self >= 0 &&
	    (head.e_machine != own.e_machine || head.e_ident[EI_CLASS] != own.e_ident[EI_CLASS]))
		snprintf(reason, size, "%s is for another machine", path);
	else if (is && more_rights(fd))
		snprintf(reason, size, "%s has more rights than its caller", path);
	else if (!is || !read_loader(fd, &head, loader))
		is = false;
	else if (!*loader)
		snprintf(reason, size, "%s is linked statically", path);
	else if (is_foreign(loader))
		snprintf(reason, size,
			 "%s has another C library (its loader is %s), so it was started without "
			 "the preload",
			 path, loader);
	else
		is = false;
	if (fd >= 0)
		close(fd);
	if (self >= 0)
		close(self);
	return is;
}
