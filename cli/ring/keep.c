/* SPDX-License-Identifier: MIT */
/* The process that keeps rings within their size. See fold.h. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/ring/fold.h"
#include "cli/ring/file.h"
#include "trace/file_name.h"
#include "trace/reader_file.h"

#define LEAST_MS 5
#define MOST_MS 200 /* between two looks */

/* Does the process that writes this file run? On a filesystem without locks it may, so the answer
 * is yes. For another user's file the answer is no, because anybody could put one here and keep it
 * locked for ever. A file without a header has nothing to fold yet, so the answer is no, too. */
static bool is_written(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	char magic[8] = "";
	struct stat st;
	bool written = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		       st.st_uid == geteuid() && ss_trace_writer_of(fd) != SS_TRACE_WRITER_GONE;

	if (written &&
	    (ss_trace_read_at(fd, magic, sizeof(magic), 0) != sizeof(magic) || !magic[0]))
		written = false;

	if (fd >= 0)
		close(fd);
	return written;
}

/* Folds what has to be folded. Returns the number of rings whose process runs. */
static size_t look(const char *wild, uint64_t keep_ns, bool *folded, bool *failed)
{
	char err[512];
	size_t running = 0;
	glob_t found = {0};

	if (glob(wild, 0, NULL, &found) != 0)
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		if (!is_written(found.gl_pathv[i]))
			continue;
		running++;
		switch (ss_ring_fold(found.gl_pathv[i], keep_ns, err, sizeof(err))) {
		case SS_RING_IDLE: break;
		case SS_RING_FOLDED: *folded = true; break;
		case SS_RING_FAILED: /* reported once: the terminal is not ours */
			if (!*failed) {
				dprintf(STDERR_FILENO, "somashim: record: %s\n", err);
				*failed = true;
			}
			break;
		}
	}
	globfree(&found);
	return running;
}

/* The caller's ends of two pipes: it closes the first one, and reads from the second one. -1:
 * none. */
static int caller_alive = -1, caller_done = -1;

/* `alive` is the reading end of a pipe that ends when the caller ends, because the caller holds its
 * other end. `done` is closed after the first look after that. */
static void keep(const char *wild, uint64_t keep_ns, int alive, int done)
{
	struct pollfd caller = {.fd = alive, .events = POLLIN};
	bool failed = false;

	for (int wait_ms = LEAST_MS;;) {
		bool folded = false;
		size_t running = look(wild, keep_ns, &folded, &failed);
		if (caller.fd < 0 && running == 0)
			return;
		if (caller.fd < 0 && done >= 0) {
			close(done);
			done = -1;
		}
		wait_ms = folded ? LEAST_MS : wait_ms * 2 < MOST_MS ? wait_ms * 2 : MOST_MS;
		if (poll(&caller, 1, wait_ms) > 0)
			caller.fd = -1; /* the caller has ended; its programs may run on */
	}
}

/* Closes all descriptors of the caller but stderr, and leaves its session, so that no signal for
 * its terminal or job ends this process. */
static void detach(int alive, int done)
{
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (none >= 0) {
		dup2(none, STDIN_FILENO);
		dup2(none, STDOUT_FILENO);
	}
	for (int fd = STDERR_FILENO + 1; fd < 256; fd++)
		if (fd != alive && fd != done)
			close(fd);
	(void)!chdir("/");
}

bool ss_ring_keep(const char *pattern, uint64_t keep_ns)
{
	char wild[4096];
	int alive[2], done[2];

	if (!ss_file_glob(pattern, wild, sizeof(wild)) || pipe2(alive, O_CLOEXEC) != 0)
		return false;
	pid_t child = pipe2(done, O_CLOEXEC) == 0 ? fork() : -1;
	if (child < 0) {
		close(alive[0]);
		close(alive[1]);
		return false;
	}
	if (child == 0) { /* a grandchild is none of the processes that the caller waits for */
		if (fork() == 0) {
			detach(alive[0], done[1]);
			keep(wild, keep_ns, alive[0], done[1]);
		}
		_exit(0);
	}
	close(alive[0]);
	close(done[1]);
	waitpid(child, NULL, 0);
	caller_alive = alive[1];
	caller_done = done[0];
	return true;
}

void ss_ring_keep_end(void)
{
	char none;

	if (caller_alive < 0)
		return;
	close(caller_alive);
	while (read(caller_done, &none, 1) < 0 && errno == EINTR) {}
	close(caller_done);
	caller_alive = caller_done = -1;
}
