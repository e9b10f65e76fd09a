/* SPDX-License-Identifier: MIT */
/*
 * `--framework NAME`: one table of the frameworks whose pool can be switched off.
 * docs/frameworks.md has the sources of each row, and the frameworks that need no switch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/framework.h"

static const struct framework {
	const char *name;
	const char *variable, *value; /* NULL: the switch is no variable */
	const char *does;             /* beside the variable, or in its place */
	const char *loses;
	const char *module; /* part of the path of the library that has its pool; NULL: not known */
} frameworks[] = {
	{"pytorch", "PYTORCH_ALLOC_CONF", "backend:hipMallocAsync",
	 "PyTorch 2.9 or later then calls hipMallocAsync for each tensor",
	 "memory snapshots and history, sharing of tensors between processes, CUDA graph trees of "
	 "torch.compile",
	 "/libc10_hip.so"},
	{"pytorch-uncached", "PYTORCH_NO_HIP_MEMORY_CACHING", "1",
	 "PyTorch then calls hipMalloc and hipFree for each tensor, in any version",
	 "capturing of graphs", "/libc10_hip.so"},
	{"vllm", "PYTORCH_ALLOC_CONF", "backend:hipMallocAsync",
	 "activations then come from somashim; the KV cache is one block as before", "sleep mode",
	 NULL},
	{"jax", "XLA_PYTHON_CLIENT_ALLOCATOR", "platform",
	 "JAX of 2026 or later then calls hipMalloc and hipFree for each buffer",
	 "the memory that JAX takes at its start", "/xla_rocm_plugin.so"},
	{"rocblas", "ROCBLAS_STREAM_ORDER_ALLOC", "1",
	 "rocBLAS then takes its workspace by hipMallocAsync for each call",
	 "nothing; the end of a handle trims the default pool", NULL},
	{"amrex", NULL, NULL, "add the argument amrex.the_arena_init_size=0 to the program", NULL,
	 "/libamrex"},
	{"cupy", NULL, NULL, "call cupy.cuda.set_allocator(None) in the program", NULL,
	 "/cupy/cuda/memory."},
	{"rmm", NULL, NULL,
	 "call rmm.mr.set_current_device_resource(rmm.mr.CudaAsyncMemoryResource()) in the program",
	 NULL, "/librmm.so"},
	{"petsc", NULL, NULL,
	 "add the argument -root_device_context_stream_type default_blocking to the program", NULL,
	 NULL},
	{"ginkgo", NULL, NULL,
	 "give a gko::HipAsyncAllocator to HipExecutor::create in the program", NULL, NULL},
};

#define FRAMEWORKS (sizeof(frameworks) / sizeof(frameworks[0]))

static void list(void)
{
	for (size_t i = 0; i < FRAMEWORKS; i++) {
		const struct framework *f = &frameworks[i];

		printf("%s\n", f->name);
		if (f->variable)
			printf("    sets %s=%s\n", f->variable, f->value);
		printf("    %s\n", f->does);
		if (f->loses)
			printf("    lost: %s\n", f->loses);
	}
}

const char *ss_framework_argument(const char *name)
{
	if (strcmp(name, "list") != 0)
		return name;
	list();
	exit(0);
}

static const struct framework *find(const char *name)
{
	for (size_t i = 0; i < FRAMEWORKS; i++)
		if (strcmp(frameworks[i].name, name) == 0)
			return &frameworks[i];
	return NULL;
}

bool ss_framework_set(const char *name, bool quiet, char *err, size_t size)
{
	const struct framework *f = find(name);
	const char *old;

	if (!f) {
		snprintf(err, size, "--framework: there is no '%s'; --framework list shows all",
			 name);
		return false;
	}
	if (!f->variable) {
		snprintf(err, size, "--framework: %s has no variable: %s", f->name, f->does);
		return false;
	}
	/* The user's own choice wins, for it may have a reason. */
	old = getenv(f->variable);
	if (old && strcmp(old, f->value) != 0) {
		snprintf(err, size,
			 "--framework: %s is '%s' already, and %s needs %s; unset it, or join both",
			 f->variable, old, f->name, f->value);
		return false;
	}
	if (setenv(f->variable, f->value, 1) != 0) {
		snprintf(err, size, "--framework: out of memory");
		return false;
	}
	if (!quiet)
		fprintf(stderr, "somashim: %s=%s: %s; lost: %s\n", f->variable, f->value, f->does,
			f->loses);
	return true;
}

/* ---- after a recording ------------------------------------------------------- */

#define LOOKED_AT (64u << 20) /* bytes of a recording; its modules are in its beginning */
#define PIECE (1u << 20)

/* Which modules does the recording name? found[i]: that of frameworks[i]. */
static void find_modules(const char *recording, bool found[FRAMEWORKS])
{
	FILE *in = fopen(recording, "re");
	char *piece = malloc(PIECE);
	size_t kept = 0, size;

	for (size_t at = 0; in && piece && at < LOOKED_AT; at += PIECE) {
		size = kept + fread(piece + kept, 1, PIECE - kept, in);
		if (size == kept)
			break;
		for (size_t i = 0; i < FRAMEWORKS; i++) {
			const char *module = frameworks[i].module;
			found[i] |= module && memmem(piece, size, module, strlen(module));
		}
		kept = size < 64 ? size : 64; /* longer than a module's part */
		memmove(piece, piece + size - kept, kept);
	}
	free(piece);
	if (in)
		fclose(in);
}

static bool is_switched(const struct framework *f)
{
	const char *value = f->variable ? getenv(f->variable) : NULL;

	return value && strstr(value, f->value);
}

void ss_framework_say_hidden(const char *recording)
{
	bool found[FRAMEWORKS] = {0};

	find_modules(recording, found);
	for (size_t i = 0; i < FRAMEWORKS; i++) {
		const struct framework *f = &frameworks[i];
		bool seen = !found[i] || is_switched(f);

		/* If a pool has two switches, only the first is named, and none if one of them is
		 * set. */
		for (size_t k = 0; k < FRAMEWORKS; k++)
			if (k != i && found[i] && found[k] &&
			    strcmp(f->module, frameworks[k].module) == 0)
				seen |= k < i || is_switched(&frameworks[k]);
		if (seen)
			continue;
		fprintf(stderr,
			"somashim: %s is among the modules: if its own memory pool is in use, that "
			"is the "
			"owner that is recorded, and who uses what is inside is hidden; ",
			f->name);
		if (f->variable)
			fprintf(stderr, "`somashim record --framework %s' shows it\n", f->name);
		else
			fprintf(stderr, "to see it, %s\n", f->does);
	}
}
