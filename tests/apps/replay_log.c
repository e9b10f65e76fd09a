/* SPDX-License-Identifier: MIT */
/* Reads an RMM CSV log: pointers become block numbers, streams become dense. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay_log.h"

struct map { /* open addressing; a removed key leaves its slot taken */
	uint64_t *keys;
	uint32_t *values; /* UINT32_MAX = no value now */
	size_t space, used;
};

static uint32_t *map_slot(struct map *m, uint64_t key) {
	if (2 * m->used >= m->space) {
		struct map bigger = { .space = m->space ? 2 * m->space : 1024 };
		bigger.keys = calloc(bigger.space, sizeof(*bigger.keys));
		bigger.values = malloc(bigger.space * sizeof(*bigger.values));
		if (!bigger.keys || !bigger.values) {
			abort();
		}
		memset(bigger.values, 0xff, bigger.space * sizeof(*bigger.values));
		for (size_t i = 0; i < m->space; i++) {
			if (m->keys[i] && m->values[i] != UINT32_MAX) {
				*map_slot(&bigger, m->keys[i] - 1) = m->values[i];
			}
		}
		free(m->keys);
		free(m->values);
		*m = bigger;
	}
	size_t i = (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & (m->space - 1);
	while (m->keys[i] && m->keys[i] != key + 1) {
		i = (i + 1) & (m->space - 1);
	}
	if (!m->keys[i]) {
		m->keys[i] = key + 1; /* 0 is "empty" */
		m->used++;
	}
	return &m->values[i];
}

static void *grow(void *array, size_t count, size_t item) {
	if (count & (count - 1)) {
		return array; /* doubled at powers of two */
	}
	array = realloc(array, (count ? 2 * count : 1) * item);
	if (!array) {
		abort();
	}
	return array;
}

static FILE *open_log(const char *path, bool *pipe) {
	size_t len = strlen(path);
	char command[5000];

	*pipe = len > 3 && strcmp(path + len - 3, ".xz") == 0;
	if (!*pipe) {
		return fopen(path, "r");
	}
	if (strchr(path, '\'') || len > 4096) {
		return NULL; /* not a path for a shell */
	}
	/* The tool is not part of the program under test. */
	snprintf(command, sizeof(command), "env -u LD_PRELOAD -u LD_AUDIT xz -dc '%s'", path);
	return popen(command, "r");
}

bool replay_log_read(struct replay_log *log, const char *path, char *err, size_t err_size) {
	struct map pointers = { 0 }, streams = { 0 };
	char line[512], action[32];
	unsigned long long thread, pointer, size, stream;
	uint64_t in_use = 0;
	size_t n = 1;
	bool is_pipe;
	FILE *file = open_log(path, &is_pipe);

	memset(log, 0, sizeof(*log));
	if (!file || !fgets(line, sizeof(line), file)) {
		snprintf(err, err_size, "cannot be read");
		goto out;
	}
	err[0] = '\0';
	while (fgets(line, sizeof(line), file)) {
		n++;
		/* Thread,Time,Action,Pointer,Size,Stream */
		if (sscanf(line, "%llu,%*[0-9:.],%31[^,],%llx,%llu,%llx", &thread, action,
				&pointer, &size, &stream) != 5) {
			if (strstr(line, ",allocate failure,") || line[0] == '\n') {
				continue;
			}
			snprintf(err, err_size, "line %zu is malformed", n);
			break;
		}
		uint32_t *dense = map_slot(&streams, stream);
		if (*dense == UINT32_MAX) {
			*dense = log->streams++;
		}
		uint32_t *block = map_slot(&pointers, pointer);
		bool is_free = strcmp(action, "free") == 0;
		if (is_free && *block == UINT32_MAX) {
			log->unknown_frees++;
			continue;
		}
		if (!is_free && (strcmp(action, "allocate") != 0 || *block != UINT32_MAX)) {
			snprintf(err, err_size, "line %zu: %s", n, *block != UINT32_MAX ?
				"the block is allocated already" : "unknown action");
			break;
		}
		if (!is_free) {
			log->sizes = grow(log->sizes, log->blocks, sizeof(*log->sizes));
			log->sizes[log->blocks] = size;
			*block = log->blocks++;
		}
		log->ops = grow(log->ops, log->count, sizeof(*log->ops));
		log->ops[log->count++] = (struct replay_op){ *block, *dense, is_free };
		in_use += is_free ? -log->sizes[*block] : size;
		if (in_use > log->peak) {
			log->peak = in_use;
		}
		if (is_free) {
			*block = UINT32_MAX;
		}
	}
	if (!err[0] && !log->count) {
		snprintf(err, err_size, "holds no allocation");
	}
out:
	if (file && (is_pipe ? pclose(file) : fclose(file)) != 0 && !err[0]) {
		snprintf(err, err_size, "cannot be read to the end");
	}
	free(pointers.keys);
	free(pointers.values);
	free(streams.keys);
	free(streams.values);
	return !err[0];
}

void replay_log_finish(struct replay_log *log) {
	free(log->ops);
	free(log->sizes);
}
