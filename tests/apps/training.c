/* SPDX-License-Identifier: MIT */
/*
 * Memory as a training loop uses it: weights and the state of the optimizer stay, activations grow
 * in the forward pass and shrink in the backward pass, and a history is never freed. The page of
 * its recording is docs/report.png (scripts/report-picture.sh). `training [STEPS]`
 */
#include <stdio.h>
#include <stdlib.h>

#include <hip/hip_runtime_api.h>

#define HIP(call) do { \
	hipError_t err_ = (call); \
	if (err_ != hipSuccess) { \
		fprintf(stderr, "training: %s: %s\n", #call, hipGetErrorString(err_)); \
		exit(2); \
	} \
} while (0)

#define LAYERS 24
#define WEIGHT (12ul << 20) /* bytes of a layer's weights, and of its gradient */
#define ACTIVATION (20ul << 20)
#define HISTORY (6ul << 20)

static hipStream_t stream;
static void *activation[LAYERS], *gradient[LAYERS];

static void *get(size_t bytes)
{
	void *block;

	HIP(hipMallocAsync(&block, bytes, stream));
	HIP(hipMemsetAsync(block, 1, bytes / 64, stream)); /* some work */
	return block;
}

static void load_weights(void)
{
	for (int i = 0; i < LAYERS; i++)
		get(WEIGHT);
}

static void init_optimizer(void)
{
	for (int i = 0; i < 2 * LAYERS; i++) /* two moments of each weight, in half the precision */
		get(WEIGHT / 2);
}

static void forward(void)
{
	for (int i = 0; i < LAYERS; i++) {
		activation[i] = get(ACTIVATION);
		HIP(hipStreamSynchronize(stream));
	}
}

static void backward(void)
{
	for (int i = LAYERS - 1; i >= 0; i--) {
		gradient[i] = get(WEIGHT);
		HIP(hipFreeAsync(activation[i], stream));
		HIP(hipStreamSynchronize(stream));
	}
}

static void update(void)
{
	for (int i = 0; i < LAYERS; i++)
		HIP(hipFreeAsync(gradient[i], stream));
	HIP(hipStreamSynchronize(stream));
}

static void keep_history(void)
{
	get(HISTORY);
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 6;

	HIP(hipStreamCreate(&stream));
	load_weights();
	init_optimizer();
	for (int i = 0; i < steps; i++) {
		forward();
		backward();
		update();
		keep_history();
	}
	HIP(hipStreamSynchronize(stream));
	printf("steps=%d\n", steps);
	return 0;
}
