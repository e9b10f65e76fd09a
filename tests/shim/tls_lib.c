/* SPDX-License-Identifier: MIT */
/* A library with 1,024 bytes of static TLS, as malloc libraries and OpenMP runtimes have it. */
static _Thread_local char room[1024] __attribute__((tls_model("initial-exec")));

__attribute__((visibility("default"))) char *tls_room(void);

char *tls_room(void)
{
	return room;
}
