/* SPDX-License-Identifier: MIT */
/*
 * Real processes: copies of the test's own program, with and without the shim. A child
 * reads from descriptor 3 and writes to 4. Both are sockets, so that descriptors can be
 * passed.
 */
#ifndef TEST_PROCS_H
#define TEST_PROCS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

struct child {
	pid_t pid;
	int to, from;
};

/* `shim`: as this process has it. */
static inline struct child start(const char *role, bool shim)
{
	int down[2], up[2];
	struct child c;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, down) &&
	      !socketpair(AF_UNIX, SOCK_STREAM, 0, up));
	c.pid = fork();
	if (!c.pid) {
		/* The target of one may be the number of another. */
		int in = fcntl(down[0], F_DUPFD, 64), out = fcntl(up[1], F_DUPFD, 64);

		dup2(in, 3);
		dup2(out, 4);
		for (int fd = 5; fd < 256; fd++)
			close(fd);
		if (!shim)
			unsetenv("LD_PRELOAD");
		execl("/proc/self/exe", "child", role, NULL);
		_exit(9);
	}
	close(down[0]);
	close(up[1]);
	c.to = down[1];
	c.from = up[0];
	return c;
}

/* want: 0, or the signal that is to end it. */
static inline void finish(struct child *c, int want)
{
	int status;

	close(c->to);
	close(c->from);
	CHECK(waitpid(c->pid, &status, 0) == c->pid);
	if (want)
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == want);
	else
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static inline void tell(int fd, const void *data, size_t size)
{
	CHECK(write(fd, data, size) == (ssize_t)size);
}

static inline void hear(int fd, void *data, size_t size)
{
	for (size_t got = 0; got < size;) {
		ssize_t n = read(fd, (char *)data + got, size - got);

		CHECK(n > 0);
		got += (size_t)n;
	}
}

/* Of a child that has opened all there is: true if the exporter dies before it says
 * to go on. */
static inline bool orphaned(void)
{
	char go = 1;

	tell(4, &go, 1);
	return read(3, &go, 1) <= 0;
}

union fd_message {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static inline void send_fd(int socket, int fd)
{
	char byte = 'f';
	struct iovec part = {&byte, 1};
	union fd_message u = {.bytes = {0}};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = u.bytes,
			   .msg_controllen = sizeof(u.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	CHECK(sendmsg(socket, &m, 0) == 1);
}

static inline int receive_fd(int socket)
{
	char byte;
	struct iovec part = {&byte, 1};
	union fd_message u;
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = u.bytes,
			   .msg_controllen = sizeof(u.bytes)};
	struct cmsghdr *c;
	int fd;

	CHECK(recvmsg(socket, &m, MSG_CMSG_CLOEXEC) == 1);
	c = CMSG_FIRSTHDR(&m);
	CHECK(c && c->cmsg_type == SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static inline int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

#endif
