/* SPDX-License-Identifier: MIT */
/*
 * Two programs take turns by `sleep --hold' and `wake' on a device that is too small for both
 * (SOMASIM_SHARED, SOMASIM_VRAM=18M). Neither is ever out of memory, and every byte of both is
 * looked at in each turn.
 *
 *   shim_sleep_turns SOMASHIM            makes no call of HIP itself
 *   shim_sleep_turns SOMASHIM INDEX FD   one of the two
 */
#include "sleep.h"

#define TURNS 2  /* of each */
#define ROUNDS 2 /* in a turn, at least */
#define BLOCKS 10
#define SIZE (1 * MIB) /* of a block: one program has room, with a few more, and two have not */

struct shared {
	atomic_uint rounds[2];
	atomic_bool over;
};

static struct shared *shared_of(int fd)
{
	struct shared *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(s != MAP_FAILED);
	return s;
}

/* ---- one of the two ------------------------------------------------------------------------ */

static uint32_t seed_of(int index, int n)
{
	return (uint32_t)(index * 1000 + n) * 2654435761u;
}

static void work(int index, struct shared *s)
{
	void *p[BLOCKS], *more;
	int n = 0, first;

	for (int i = 0; i < BLOCKS; i++)
		p[i] = block(SIZE, seed_of(index, i));
	while (!atomic_load(&s->over)) {
		for (int i = 0; i < BLOCKS; i++)
			CHECK(whole(p[i], SIZE, seed_of(index, n + i)));
		/* Memory that has to be mapped, and a block with other contents. */
		OK(hipMallocAsync(&more, 3 * MIB + (size_t)n % 3 * MIB, stream));
		OK(hipMemsetAsync(more, n, 3 * MIB, stream));
		OK(hipFreeAsync(more, stream));
		first = n++;
		OK(hipFreeAsync(p[0], stream));
		memmove(p, p + 1, (BLOCKS - 1) * sizeof(p[0]));
		p[BLOCKS - 1] = block(SIZE, seed_of(index, first + BLOCKS));
		atomic_fetch_add(&s->rounds[index], 1);
	}
	for (int i = 0; i < BLOCKS; i++)
		CHECK(whole(p[i], SIZE, seed_of(index, n + i)));
}

/* ---- who gives the turns ------------------------------------------------------------------- */

static pid_t pid[2];
static char pid_text[2][16];
static int shared_fd;

static void begin_program(const char *self, int index)
{
	char at[16], fd[16],
		*argv[] = {(char *)(uintptr_t)self, (char *)(uintptr_t)somashim, at, fd, NULL};

	snprintf(at, sizeof(at), "%d", index);
	snprintf(fd, sizeof(fd), "%d", shared_fd);
	CHECK(!posix_spawn(&pid[index], self, NULL, NULL, argv, environ));
	snprintf(pid_text[index], sizeof(pid_text[index]), "%d", (int)pid[index]);
}

static void end_program(int index)
{
	int status;

	CHECK(waitpid(pid[index], &status, 0) == pid[index]);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The one works, and the other is held. */
static void turn(struct shared *s, int index)
{
	unsigned mine = atomic_load(&s->rounds[index]) + ROUNDS,
		 other = atomic_load(&s->rounds[!index]);

	while (atomic_load(&s->rounds[index]) < mine) {
		CHECK(waitpid(pid[index], NULL, WNOHANG) == 0);
		usleep(500);
	}
	CHECK(atomic_load(&s->rounds[!index]) == other);
}

static void give_turns(const char *self)
{
	char path[128];
	struct shared *s;

	CHECK(mkdtemp(live));
	test_pid = getpid();
	atexit(sleep_test_clean);
	snprintf(path, sizeof(path), "%s/shared", live);
	CHECK(!setenv("SOMASHIM_LIVE", live, 1) && !setenv("SOMASIM_SHARED", path, 1));
	shared_fd = memfd_create("turns", 0);
	CHECK(shared_fd >= 0 && !ftruncate(shared_fd, 4096));
	s = shared_of(shared_fd);
	begin_program(self, 0);
	turn(s, 0);
	COMMAND(0, "sleep", "--hold", pid_text[0]);
	begin_program(self, 1);
	turn(s, 1);
	for (int i = 0; i < 2 * TURNS; i++) {
		COMMAND(0, "sleep", "--hold", pid_text[!(i % 2)]);
		COMMAND(0, "wake", pid_text[i % 2]);
		turn(s, i % 2);
	}
	/* A turn ends with the program, too. */
	atomic_store(&s->over, true);
	end_program(1);
	COMMAND(0, "wake", pid_text[0]);
	end_program(0);
}

int main(int argc, char **argv)
{
	if (argc < 2 || !sim_call("somasim_register_kernel_args"))
		return SKIP;
	if (argc == 2) {
		somashim = argv[1];
		give_turns(argv[0]);
		return 0;
	}
	sleep_test_begin(argc, argv);
	work(atoi(argv[2]), shared_of(atoi(argv[3])));
	return 0;
}
