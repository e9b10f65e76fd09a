/* SPDX-License-Identifier: MIT */
/* The table of the SOMASIM_ variables, the table of quirks, and their parser. */
#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device/macros.h"
#include "device/options.h"

struct sim_options sim_opt = {
	.vram = 64ULL << 30,
	.devices = 1,
	.peers = true,
	.delay_us = 50,
	.delay_pct = 20,
	.lifo_handles = true,
	.settle_us = 2000,
	.create_cap = 1ULL << 30,
	.arch = "gfx942",
};

enum kind { K_SIZE, K_INT, K_LONG, K_BOOL, K_SEED, K_STALL, K_VERSION, K_QUIRKS, K_TEXT };

static bool seeded;

static const struct {
	const char *name;
	enum kind kind;
	void *to;
	long min, max;
} table[] = {
	{"SOMASIM_VRAM", K_SIZE, &sim_opt.vram, 0, 0},
	{"SOMASIM_TOTAL", K_SIZE, &sim_opt.total, 0, 0},
	{"SOMASIM_DEVICES", K_INT, &sim_opt.devices, 1, SIM_MAX_DEVICES},
	{"SOMASIM_NO_DEVICE", K_BOOL, &sim_opt.no_device, 0, 0},
	{"SOMASIM_SEED", K_SEED, &sim_opt.seed, 0, 0},
	{"SOMASIM_VERBOSE", K_BOOL, &sim_opt.verbose, 0, 0},
	{"SOMASIM_DELAY_US", K_LONG, &sim_opt.delay_us, 0, 60000000},
	{"SOMASIM_DELAY_PCT", K_LONG, &sim_opt.delay_pct, 0, 100},
	{"SOMASIM_QUEUE", K_LONG, &sim_opt.queue, 0, 1 << 30},
	{"SOMASIM_STALL", K_STALL, NULL, 0, 0},
	{"SOMASIM_HIP_VERSION", K_VERSION, &sim_opt.hip, 0, 0},
	{"SOMASIM_POISON", K_BOOL, &sim_opt.poison, 0, 0},
	{"SOMASIM_HANDLE_LIFO", K_BOOL, &sim_opt.lifo_handles, 0, 0},
	{"SOMASIM_INTEGRATED", K_BOOL, &sim_opt.integrated, 0, 0},
	{"SOMASIM_PEERS", K_BOOL, &sim_opt.peers, 0, 0},
	{"SOMASIM_SETTLE_US", K_LONG, &sim_opt.settle_us, 0, 10000000},
	{"SOMASIM_CREATE_CAP", K_SIZE, &sim_opt.create_cap, 0, 0},
	{"SOMASIM_SHARED", K_TEXT, &sim_opt.shared, 0, 0},
	{"SOMASIM_ARCH", K_TEXT, &sim_opt.arch, 0, 0},
	{"SOMASIM_FAIL", K_TEXT, &sim_opt.fail, 0, 0},
	{"SOMASIM_COST", K_TEXT, &sim_opt.cost, 0, 0},
	{"SOMASIM_QUIRKS", K_QUIRKS, NULL, 0, 0},
};

/* The README says what each quirk plays. */
static const char *const quirks[SIM_Q_COUNT] = {
	[SIM_Q_THRESHOLD_IGNORED] = "threshold-ignored",
	[SIM_Q_SETACCESS_TAIL] = "setaccess-tail",
	[SIM_Q_SETACCESS_SOME] = "setaccess-some",
	[SIM_Q_SETACCESS_WHOLE] = "setaccess-whole",
	[SIM_Q_SETACCESS_LOST] = "setaccess-lost",
	[SIM_Q_SETACCESS_HOST] = "setaccess-host",
	[SIM_Q_HOST_NO_ACCESS] = "host-no-access",
	[SIM_Q_PHYS_KEPT] = "phys-kept",
	[SIM_Q_PHYS_BOUND] = "phys-bound",
	[SIM_Q_RELEASE_LEAKS] = "release-leaks",
	[SIM_Q_UNMAP_PARTIAL] = "unmap-partial",
	[SIM_Q_MAP_SETTLE] = "map-settle",
	[SIM_Q_FD_PER_HANDLE] = "fd-per-handle",
	[SIM_Q_CREATE_CAP] = "create-cap",
	[SIM_Q_CREATE_CHUNK] = "create-chunk",
	[SIM_Q_GRANULARITY_2M] = "granularity-2m",
	[SIM_Q_PEER_SETACCESS] = "peer-setaccess",
	[SIM_Q_IPC_VMM] = "ipc-vmm",
	[SIM_Q_UNMAP_UNOPENED] = "unmap-unopened",
	[SIM_Q_MAP_FAILS] = "map-fails",
	[SIM_Q_NO_VMM] = "no-vmm",
	[SIM_Q_CAPTURE_SPOILS] = "capture-spoils",
	[SIM_Q_IPC_PINNED] = "ipc-pinned",
	[SIM_Q_SECOND_COPY] = "second-copy",
	[SIM_Q_POOL_OOM_LEAKS] = "pool-oom-leaks",
	[SIM_Q_IMPORT_DEVICE0] = "import-device0",
	[SIM_Q_LAZY_QUEUES] = "lazy-queues",
	[SIM_Q_FREE_QUEUE] = "free-queue",
	[SIM_Q_EXIT_MAPPED] = "exit-mapped",
	[SIM_Q_PINNED_WAITS] = "pinned-waits",
	[SIM_Q_QUERY_WAITS] = "query-waits",
	[SIM_Q_MAP_SPOILS_GRAPHS] = "map-spoils-graphs",
};

static bool parse_size(const char *s, uint64_t *out)
{
	char *end;
	double v = strtod(s, &end);
	uint64_t unit = 1;

	if (end == s || v < 0)
		return false;
	switch (toupper((unsigned char)*end)) {
	case 'T': unit <<= 10; /* fall through */
	case 'G': unit <<= 10; /* fall through */
	case 'M': unit <<= 10; /* fall through */
	case 'K':
		unit <<= 10;
		end++;
		break;
	}
	if (*end == 'i')
		end++;
	if (*end == 'B' || *end == 'b')
		end++;
	if (*end)
		return false;
	*out = (uint64_t)(v * (double)unit);
	return true;
}

static bool parse_quirks(const char *s)
{
	bool ok = true;

	while (*s) {
		bool without = *s == '-';
		size_t n;
		int i;

		s += without;
		n = strcspn(s, ",");
		for (i = 0; i < SIM_Q_COUNT; i++)
			if (strlen(quirks[i]) == n && !strncmp(quirks[i], s, n))
				break;
		if (i < SIM_Q_COUNT && without)
			sim_opt.without[i] = true;
		else if (i < SIM_Q_COUNT)
			sim_opt.quirk[i] = true;
		else if (n == 3 && !strncmp(s, "all", 3))
			memset(sim_opt.quirk, 1, sizeof sim_opt.quirk);
		else if (n)
			ok = false;
		s += n + (s[n] == ',');
	}
	return ok;
}

static bool parse_version(const char *s, int *out)
{
	static const struct {
		int from, is;
	} studied[] = {
		{800, 800}, {717, 717}, {716, 716}, {715, 715}, {714, 714},
		{700, 702}, {600, 604}, {505, 507}, {0, 502},
	};
	int major, minor, i = 0;

	if (sscanf(s, "%d.%d", &major, &minor) != 2)
		return false;
	while (major * 100 + minor < studied[i].from)
		i++;
	*out = studied[i].is;
	return true;
}

static bool parse(const char *s, size_t i)
{
	char *end;
	long v;

	switch (table[i].kind) {
	case K_SIZE: return parse_size(s, table[i].to);
	case K_SEED:
		seeded = true;
		sim_opt.seed = strtoull(s, &end, 0);
		return !*end;
	case K_STALL:
		sim_opt.stall_ms = 5;
		return sscanf(s, "%ld:%ld", &sim_opt.stall_pct, &sim_opt.stall_ms) >= 1;
	case K_VERSION: return parse_version(s, table[i].to);
	case K_QUIRKS: return parse_quirks(s);
	case K_TEXT: *(const char **)table[i].to = strdup(s); return true;
	default:
		v = strtol(s, &end, 0);
		if (end == s || *end)
			return false;
		if (table[i].kind == K_BOOL) {
			*(bool *)table[i].to = v != 0;
			return true;
		}
		if (v < table[i].min || v > table[i].max)
			return false;
		if (table[i].kind == K_INT)
			*(int *)table[i].to = (int)v;
		else
			*(long *)table[i].to = v;
		return true;
	}
}

void sim_print_seed(void)
{
	static atomic_int printed;

	if (sim_opt.verbose || (!seeded && sim_opt.delay_us && getenv("SOMASIM_QUIET") == NULL))
		if (!atomic_exchange(&printed, 1))
			fprintf(stderr, "somasim: seed %llu\n", (unsigned long long)sim_opt.seed);
}

__attribute__((constructor(101))) static void options_init(void)
{
	struct timespec ts;

	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const char *s = getenv(table[i].name);

		if (s && *s && !parse(s, i))
			fprintf(stderr, "somasim: %s=%s not understood\n", table[i].name, s);
	}
	if (!seeded) {
		clock_gettime(CLOCK_REALTIME, &ts);
		sim_opt.seed = ((uint64_t)ts.tv_nsec * 2654435761u ^ (uint64_t)getpid()) % 1000000;
	}
	if (sim_opt.vram < (16 << 20))
		sim_opt.vram = 16 << 20;
	sim_opt.vram &= ~(SIM_HUGE_PAGE - 1);
	if (!sim_opt.total)
		sim_opt.total = sim_opt.vram;
}
