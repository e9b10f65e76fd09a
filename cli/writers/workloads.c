/* SPDX-License-Identifier: MIT */
/* The workloads: what each allocates, for how long, and on which stream. */
#include <stdlib.h>
#include <string.h>

#include "cli/writers/workloads.h"

#define S0 0x0ull
#define S1 0x100000ull
#define S2 0x200000ull

/* A training loop. Activations live from the forward to the backward pass; gradients are
 * collected in buckets and reduced on a stream of their own. The sequence length varies, so
 * every step has other sizes. */
static void training(struct ss_gen *g)
{
	enum { LAYERS = 24, KEEP = 7 };
	struct ss_gen_block weight[LAYERS], state[LAYERS][2], kept[LAYERS][KEEP], bucket = {0};
	memset(state, 0, sizeof(state));

	for (int l = 0; l < LAYERS; l++)
		weight[l] = ss_gen_alloc(g, 1, S0, 50 * MIB);
	for (unsigned step = 0; step < g->rounds; step++) {
		uint64_t tokens = 4096 * (4 + ss_gen_random(g, 5)) / 8;
		for (int l = 0; l < LAYERS; l++) {
			for (int k = 0; k < KEEP; k++) {
				static const uint64_t width[KEEP] = {1, 3, 1, 4, 4, 1, 1};
				struct ss_gen_block tmp = ss_gen_alloc(g, 1, S0, 2 * KIB * tokens);
				kept[l][k] = ss_gen_alloc(g, 1, S0, width[k] * 2 * KIB * tokens);
				ss_gen_free(g, 1, S0, &tmp);
			}
			struct ss_gen_block scores = ss_gen_alloc(g, 1, S0, tokens * tokens * 4);
			ss_gen_advance(g, 300);
			ss_gen_free(g, 1, S0, &scores);
		}
		for (int l = LAYERS - 1; l >= 0; l--) {
			struct ss_gen_block grad = ss_gen_alloc(g, 1, S0, 2 * KIB * tokens);
			for (int k = KEEP - 1; k >= 0; k--)
				ss_gen_free(g, 1, S0, &kept[l][k]);
			struct ss_gen_block next = ss_gen_alloc(g, 1, S0, 50 * MIB);
			/* The bucket of the previous layer has been reduced. */
			ss_gen_free(g, 2, S1, &bucket);
			bucket = ss_gen_alloc(g, 2, S1, 50 * MIB);
			ss_gen_free(g, 1, S0, &next);
			ss_gen_free(g, 1, S0, &grad);
			ss_gen_advance(g, 600);
		}
		ss_gen_free(g, 2, S1, &bucket);
		for (int l = 0; l < LAYERS; l++) {
			if (step == 0) {
				state[l][0] = ss_gen_alloc(g, 1, S0, 100 * MIB);
				state[l][1] = ss_gen_alloc(g, 1, S0, 100 * MIB);
			}
			struct ss_gen_block tmp = ss_gen_alloc(g, 1, S0, 100 * MIB);
			ss_gen_free(g, 1, S0, &tmp);
		}
	}
	for (int l = 0; l < LAYERS; l++) {
		ss_gen_free(g, 1, S0, &weight[l]);
		ss_gen_free(g, 1, S0, &state[l][0]);
		ss_gen_free(g, 1, S0, &state[l][1]);
	}
}

/* Language model serving. Requests arrive at random; each has a prompt, and a cache that is
 * copied into a larger one as the answer grows. */
static void serving(struct ss_gen *g)
{
	enum { SLOTS = 32 };
	struct {
		struct ss_gen_block cache;
		uint64_t tokens, left, room;
	} req[SLOTS] = {0};
	unsigned arrived = 0, live = 0;
	double next = 0, now = 0;

	while (arrived < g->rounds || live) {
		for (; arrived < g->rounds && next <= now && live < SLOTS; arrived++, live++) {
			int i = 0;
			while (req[i].left)
				i++;
			req[i].tokens = ss_gen_log_uniform(g, 16, 4096);
			req[i].left = ss_gen_log_uniform(g, 8, 512);
			req[i].room = (req[i].tokens + 255) / 256 * 256;
			struct ss_gen_block in = ss_gen_alloc(g, 1, S1, 24 * KIB * req[i].tokens);
			struct ss_gen_block mid = ss_gen_alloc(g, 1, S1, 40 * KIB * req[i].tokens);
			req[i].cache = ss_gen_alloc(g, 1, S1, 128 * KIB * req[i].room);
			ss_gen_free(g, 1, S1, &mid);
			ss_gen_free(g, 1, S1, &in);
			next += ss_gen_exponential(g, 60);
		}
		if (!live) {
			now = next;
			continue;
		}
		struct ss_gen_block logits = ss_gen_alloc(g, 1, S1, live * 256 * KIB);
		struct ss_gen_block hidden = ss_gen_alloc(g, 1, S1, live * 16 * KIB);
		for (int i = 0; i < SLOTS; i++) {
			if (!req[i].left)
				continue;
			if (++req[i].tokens > req[i].room) {
				req[i].room += 256;
				struct ss_gen_block more = ss_gen_alloc(g, 1, S1,
									128 * KIB * req[i].room);
				ss_gen_free(g, 1, S1, &req[i].cache);
				req[i].cache = more;
			}
			if (--req[i].left == 0) {
				ss_gen_free(g, 1, S1, &req[i].cache);
				live--;
			}
		}
		ss_gen_free(g, 1, S1, &hidden);
		ss_gen_free(g, 1, S1, &logits);
		ss_gen_advance(g, 20000);
		now += 20;
	}
}

/* Columns of a query engine. Each call uses ten thousand small buffers and a few large ones,
 * freed in random order; some results are kept until the next call. */
static void dataframe(struct ss_gen *g)
{
	enum { SMALL = 10000, LARGE = 12 };
	struct ss_gen_block *small = calloc(SMALL, sizeof(*small)), large[LARGE], result[4];
	memset(result, 0, sizeof(result));

	for (unsigned call = 0; small && call < g->rounds; call++) {
		for (int i = 0; i < LARGE; i++)
			large[i] = ss_gen_alloc(g, 1, S0, ss_gen_log_uniform(g, MIB, 64 * MIB));
		for (int i = 0; i < SMALL; i++)
			small[i] = ss_gen_alloc(g, 1, S0, ss_gen_log_uniform(g, 8, 64 * KIB));
		ss_gen_free(g, 1, S0, &result[call % 4]);
		result[call % 4] = ss_gen_alloc(g, 1, S0, ss_gen_log_uniform(g, MIB, 32 * MIB));
		for (int i = SMALL - 1; i > 0; i--) {
			int k = (int)ss_gen_random(g, (uint64_t)i + 1);
			struct ss_gen_block swap = small[i];
			small[i] = small[k];
			small[k] = swap;
		}
		for (int i = 0; i < SMALL; i++)
			ss_gen_free(g, 1, S0, &small[i]);
		for (int i = 0; i < LARGE; i++)
			ss_gen_free(g, 1, S0, &large[i]);
		ss_gen_advance(g, 5000);
	}
	for (int i = 0; i < 4; i++)
		ss_gen_free(g, 1, S0, &result[i]);
	free(small);
}

/* One thread allocates and another frees, each on its own stream. */
static void handoff(struct ss_gen *g)
{
	enum { DEPTH = 8 };
	struct ss_gen_block queue[DEPTH] = {0};

	for (unsigned i = 0; i < g->rounds + DEPTH; i++) {
		ss_gen_free(g, 2, S2, &queue[i % DEPTH]);
		if (i < g->rounds) {
			queue[i % DEPTH] = ss_gen_alloc(g, 1, S1,
							ss_gen_log_uniform(g, 256 * KIB, 64 * MIB));
		}
		ss_gen_advance(g, 100);
	}
}

/* Adaptive mesh refinement: boxes of cells on several levels. Regridding allocates the new
 * boxes of a level, copies, and frees the old ones. Between regrids, every box allocates and
 * frees temporary fluxes. */
static void amr(struct ss_gen *g)
{
	enum { LEVELS = 4, BOXES = 64 };
	static struct ss_gen_block level[LEVELS][BOXES];
	memset(level, 0, sizeof(level));

	for (unsigned step = 0; step < g->rounds; step++) {
		for (int l = 0; l < LEVELS; l++) {
			struct ss_gen_block old[BOXES];
			if (step % (4u >> (l / 2)) == 0 && (l > 0 || step == 0)) {
				memcpy(old, level[l], sizeof(old));
				memset(level[l], 0, sizeof(level[l]));
				int n = 8 + (int)ss_gen_random(g, BOXES - 8);
				for (int b = 0; b < n; b++) {
					uint64_t x = 8 + 8 * ss_gen_random(g, 8);
					uint64_t y = 8 + 8 * ss_gen_random(g, 8);
					uint64_t z = 8 + 8 * ss_gen_random(g, 8);
					level[l][b] = ss_gen_alloc(
						g, 1, S0, (x + 4) * (y + 4) * (z + 4) * 8 * 5);
				}
				for (int b = 0; b < BOXES; b++)
					ss_gen_free(g, 1, S0, &old[b]);
			}
			for (int b = 0; b < BOXES && level[l][b].pointer; b++) {
				struct ss_gen_block flux[3];
				uint64_t stream = S1 + (uint64_t)(b % 4) * 0x1000;
				for (int d = 0; d < 3; d++) {
					flux[d] = ss_gen_alloc(g, 1, stream,
							       (uint64_t)((double)level[l][b].size /
									  g->scale * 1.05));
				}
				for (int d = 0; d < 3; d++)
					ss_gen_free(g, 1, stream, &flux[d]);
			}
			ss_gen_advance(g, 1000);
		}
	}
	for (int l = 0; l < LEVELS; l++)
		for (int b = 0; b < BOXES; b++)
			ss_gen_free(g, 1, S0, &level[l][b]);
}

/* Each job creates a stream and uses it once. */
static void oneshot(struct ss_gen *g)
{
	struct ss_gen_block base[16];

	for (int i = 0; i < 16; i++)
		base[i] = ss_gen_alloc(g, 1, S0, 32 * MIB);
	for (unsigned job = 0; job < g->rounds; job++) {
		uint64_t stream = S2 + 0x1000ull * job;
		struct ss_gen_block b[12];
		int n = 3 + (int)ss_gen_random(g, 10);
		for (int i = 0; i < n; i++) {
			b[i] = ss_gen_alloc(g, 1, stream,
					    ss_gen_log_uniform(g, 64 * KIB, 128 * MIB));
		}
		for (int i = n - 1; i >= 0; i--)
			ss_gen_free(g, 1, stream, &b[i]);
		ss_gen_advance(g, 2000);
	}
	for (int i = 0; i < 16; i++)
		ss_gen_free(g, 1, S0, &base[i]);
}

/* Reinforcement learning. Inference with a large cache alternates with collecting the new
 * weights, bucket by bucket, on another stream. */
static void weightsync(struct ss_gen *g)
{
	enum { BUCKETS = 16, LAYERS = 32 };
	struct ss_gen_block weight[LAYERS], bucket[BUCKETS];

	for (int l = 0; l < LAYERS; l++)
		weight[l] = ss_gen_alloc(g, 1, S0, 64 * MIB);
	for (unsigned round = 0; round < g->rounds; round++) {
		struct ss_gen_block cache[8];
		for (int i = 0; i < 8; i++)
			cache[i] = ss_gen_alloc(g, 1, S0, 256 * MIB);
		for (int t = 0; t < 200; t++) {
			struct ss_gen_block tmp = ss_gen_alloc(
				g, 1, S0, ss_gen_log_uniform(g, 64 * KIB, 48 * MIB));
			struct ss_gen_block out = ss_gen_alloc(g, 1, S0, 2 * MIB);
			ss_gen_free(g, 1, S0, &tmp);
			ss_gen_free(g, 1, S0, &out);
			ss_gen_advance(g, 500);
		}
		for (int i = 0; i < 8; i++)
			ss_gen_free(g, 1, S0, &cache[i]);
		uint64_t stream = round % 2 ? S1 : S2;
		for (int i = 0; i < BUCKETS; i++) {
			bucket[i] = ss_gen_alloc(g, 2, stream, 128 * MIB);
			struct ss_gen_block flat = ss_gen_alloc(
				g, 2, stream, ss_gen_log_uniform(g, 100 * MIB, 128 * MIB));
			ss_gen_free(g, 2, stream, &flat);
		}
		for (int i = 0; i < BUCKETS; i++)
			ss_gen_free(g, 2, stream, &bucket[i]);
		ss_gen_advance(g, 200000);
	}
	for (int l = 0; l < LAYERS; l++)
		ss_gen_free(g, 1, S0, &weight[l]);
}

/* Sizes around powers of two with random lifetimes, the worst case for rounding up. */
static void powers(struct ss_gen *g)
{
	enum { LIVE = 400 };
	static struct ss_gen_block b[LIVE];
	memset(b, 0, sizeof(b));

	for (unsigned i = 0; i < g->rounds; i++) {
		struct ss_gen_block *at = &b[ss_gen_random(g, LIVE)];
		ss_gen_free(g, 1, S0, at);
		uint64_t size = (uint64_t)1 << (9 + ss_gen_random(g, 17));
		*at = ss_gen_alloc(g, 1, S0, size + ss_gen_random(g, 3) - 1);
	}
	for (int i = 0; i < LIVE; i++)
		ss_gen_free(g, 1, S0, &b[i]);
}

const struct ss_workload ss_workloads[] = {
	{"training", training, 12, "a model is trained, gradients on a communication stream"},
	{"serving", serving, 400, "requests arrive, their caches grow"},
	{"dataframe", dataframe, 5, "10,000 small allocations per call"},
	{"handoff", handoff, 10000, "one thread allocates, another frees"},
	{"amr", amr, 40, "adaptive meshes are regridded"},
	{"oneshot", oneshot, 1000, "each stream is used once"},
	{"weightsync", weightsync, 20, "inference, then new weights on another stream"},
	{"powers", powers, 20000, "sizes 2^k - 1, 2^k, 2^k + 1"},
};

const size_t ss_workload_count = sizeof(ss_workloads) / sizeof(ss_workloads[0]);
