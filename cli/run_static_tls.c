/* SPDX-License-Identifier: MIT */
/*
 * With an auditor glibc fixes the room for static TLS before it knows the program's libraries, and
 * has 512 bytes beside its own. A library that needs more stops the program with "cannot allocate
 * memory in static TLS block". So what these libraries have is added up. A fixed amount would not
 * do: each thread has it on its stack, and 16 KiB are all of the smallest stack.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run_program.h"
#include "cli/run_static_tls.h"

/* For what the program and its children load later; glibc's own default is 512 */
#define SPARE 1024
#define TUNABLE "glibc.rtld.optional_static_tls"

/* Bytes of the thread-local variables of one library. */
static size_t tls_of(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t bytes = 0;
	Elf64_Ehdr head;
	Elf64_Phdr p;

	if (fd < 0)
		return 0;
	if (pread(fd, &head, sizeof(head), 0) == sizeof(head) &&
	    memcmp(head.e_ident, ELFMAG, SELFMAG) == 0) {
		for (int i = 0; i < head.e_phnum; i++) {
			off_t at = (off_t)(head.e_phoff + (size_t)i * sizeof(p));
			if (pread(fd, &p, sizeof(p), at) == sizeof(p) && p.p_type == PT_TLS)
				bytes += p.p_memsz + p.p_align;
		}
	}
	close(fd);
	return bytes;
}

/* Asks the program's own loader, which does not start the program then. */
static FILE *list_libraries(const char *program, pid_t *pid)
{
	char path[PATH_MAX], loader[PATH_MAX];
	int fd[2];

	if (!ss_program_loader(program, path, loader) || pipe(fd) != 0)
		return NULL;
	*pid = fork();
	if (*pid == 0) {
		dup2(fd[1], STDOUT_FILENO);
		close(fd[0]);
		close(fd[1]);
		unsetenv("LD_AUDIT");
		execl(loader, loader, "--list", path, (char *)NULL);
		_exit(127);
	}
	close(fd[1]);
	FILE *list = *pid > 0 ? fdopen(fd[0], "r") : NULL;
	if (!list)
		close(fd[0]);
	return list;
}

void ss_static_tls_make_room(const char *program)
{
	const char *old = getenv("GLIBC_TUNABLES");
	char *line = NULL, *value;
	size_t size = 0, bytes = SPARE;
	pid_t pid = -1;

	if (old && strstr(old, TUNABLE))
		return;
	FILE *list = list_libraries(program, &pid);
	while (list && getline(&line, &size, list) > 0) {
		/* "name => /path (0x...)", or "/path (0x...)" */
		char *at = strchr(line, '/'), *end = at ? strstr(at, " (0x") : NULL;
		if (strstr(line, " => ")) {
			at = strstr(line, " => ") + 4;
			end = strstr(at, " (0x");
		}
		if (end) {
			*end = '\0';
			bytes += tls_of(at);
		}
	}
	free(line);
	if (list)
		fclose(list);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (asprintf(&value, "%s%s" TUNABLE "=%zu", old ? old : "", old && *old ? ":" : "",
		     bytes) >= 0) {
		setenv("GLIBC_TUNABLES", value, 1);
		free(value);
	}
}
