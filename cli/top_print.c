/* SPDX-License-Identifier: MIT */
/* `somashim top --once`: one sample as text, or as JSON. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/plural.h"
#include "cli/size_text.h"
#include "cli/top.h"
#include "cli/writers/json.h"

/* ---- text ---------------------------------------------------------------- */

static void print_pool(const struct ss_top_process *p, const struct ss_live_pool *pool)
{
	const struct ss_live_device *d = ss_top_device(&p->page.figures, pool->device);
	char rank[16] = "-", device[20], size[5][16];

	if (p->page.who.rank >= 0)
		snprintf(rank, sizeof(rank), "%d", p->page.who.rank);
	snprintf(device, sizeof(device), "device %u", pool->device);
	printf("%8u %5s %-15s %-12s %-10s %10s %10s %10s %10s %10s %12llu %9.1f\n", p->name.pid,
	       rank, p->page.who.command, d && d->pci[0] ? d->pci : device, pool->name,
	       ss_size_text(pool->used, size[0]), ss_size_text(pool->reserved, size[1]),
	       ss_size_text(pool->in_flight, size[2]), ss_size_text(pool->used_high, size[3]),
	       ss_size_text(pool->reserved_high, size[4]),
	       (unsigned long long)pool->counts.allocations, p->age);
}

/* A row like that of a pool for the part of the pools that sleeps, and for each kind of memory
 * outside of the pools. */
static void print_outside(const struct ss_top_process *p, const struct ss_live_device *d)
{
	const struct {
		const char *name;
		uint64_t bytes;
	} row[] = {
		{"(asleep)", ss_top_asleep(p, d)}, {"(managed)", d->managed}, {"(host)", d->host},
		{"(arrays)", d->arrays},           {"(runtime)", d->runtime}, {"(rest)", d->rest}};
	char device[20], size[16];

	snprintf(device, sizeof(device), "device %u", d->ordinal);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		if (row[i].bytes) {
			printf("%8u %5s %-15s %-12s %-10s %10s\n", p->name.pid, "", "",
			       d->pci[0] ? d->pci : device, row[i].name,
			       ss_size_text(row[i].bytes, size));
		}
	}
}

static void print_none(const struct ss_top_filter *f)
{
	if (f->count == 0) {
		printf("No process of this user is served by somashim.\n");
		return;
	}
	printf(f->count == 1 ? "Process " : "None of the processes ");
	for (size_t i = 0; i < f->count; i++)
		printf("%s%u", i ? ", " : "", f->pid[i]);
	printf(f->count == 1 ? " is not served by somashim.\n" : " is served by somashim.\n");
}

int ss_top_print_text(const struct ss_top_sample *s, const struct ss_top_filter *filter)
{
	struct ss_top_device devices[256];
	char size[4][16];

	if (s->count == 0) {
		print_none(filter);
		return 0;
	}
	size_t count = ss_top_devices(s, devices, sizeof(devices) / sizeof(devices[0]));
	for (size_t i = 0; i < count; i++) {
		printf("%s: %zu %s, used %s, reserved %s, in flight %s of %s", devices[i].pci,
		       devices[i].processes,
		       ss_plural(devices[i].processes, "process", "processes"),
		       ss_size_text(devices[i].used, size[0]),
		       ss_size_text(devices[i].reserved, size[1]),
		       ss_size_text(devices[i].in_flight, size[2]),
		       ss_size_text(devices[i].total, size[3]));
		if (devices[i].kernel) {
			printf("; the kernel counts %s, %s of it outside of the pools",
			       ss_size_text(devices[i].kernel, size[0]),
			       ss_size_text(devices[i].rest, size[1]));
		}
		if (devices[i].asleep)
			printf("; %s asleep", ss_size_text(devices[i].asleep, size[0]));
		printf("\n");
	}
	printf("%8s %5s %-15s %-12s %-10s %10s %10s %10s %10s %10s %12s %9s\n", "PID", "RANK",
	       "COMMAND", "DEVICE", "POOL", "USED", "RESERVED", "IN FLIGHT", "USED HIGH",
	       "RES. HIGH", "ALLOCATIONS", "AGE (s)");
	for (size_t i = 0; i < s->count; i++) {
		const struct ss_top_process *p = s->process[i];
		if (p->result != SS_LIVE_OK) {
			printf("%8u not shown: %s\n", p->name.pid, ss_top_problem(p->result));
			continue;
		}
		for (uint32_t k = 0; k < p->page.figures.pool_count; k++)
			print_pool(p, &p->page.figures.pool[k]);
		for (uint32_t k = 0; k < p->page.figures.device_count; k++)
			print_outside(p, &p->page.figures.device[k]);
		if (p->page.figures.pools_left_out) {
			printf("%8u and %u more %s\n", p->name.pid, p->page.figures.pools_left_out,
			       ss_plural(p->page.figures.pools_left_out, "pool", "pools"));
		}
	}
	return 0;
}

/* ---- JSON ----------------------------------------------------------------- */

/* A number that JSON cannot have is nonsense, so it becomes the largest one. */
static json_int_t integer(uint64_t n)
{
	return n < INT64_MAX ? (json_int_t)n : INT64_MAX;
}

static json_t *optional(int32_t n)
{
	return n < 0 ? json_null() : json_integer(n);
}

static json_t *optional_text(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

static json_t *pack_pool(const struct ss_live_pool *p)
{
	const struct ss_live_counts *c = &p->counts;

	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "name",
			 p->name, "backing", p->backing, "used", integer(p->used), "used_high",
			 integer(p->used_high), "reserved", integer(p->reserved), "reserved_high",
			 integer(p->reserved_high), "in_flight", integer(p->in_flight),
			 "allocations", integer(c->allocations), "frees", integer(c->frees), "hits",
			 integer(c->allocations - c->misses), "misses", integer(c->misses),
			 "out_of_memory", integer(c->out_of_memory));
}

/* Null if the kernel says nothing. */
static json_t *known(uint64_t kernel, uint64_t n)
{
	return kernel ? json_integer(integer(n)) : json_null();
}

static json_t *pack_device(const struct ss_top_process *p, const struct ss_live_device *d)
{
	const struct ss_live_figures *f = &p->page.figures;
	json_t *pools = json_array();

	for (uint32_t i = 0; i < f->pool_count; i++)
		if (f->pool[i].device == d->ordinal)
			json_array_append_new(pools, pack_pool(&f->pool[i]));
	return json_pack(
		"{s:i, s:o, s:s, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:i, "
		"s:I, s:I, s:o}",
		"ordinal", (int)d->ordinal, "pci", optional_text(d->pci), "name", d->name, "total",
		integer(d->total), "limit",
		d->limit ? json_integer(integer(d->limit)) : json_null(), "used", integer(d->used),
		"reserved", integer(d->reserved), "in_flight", integer(d->in_flight), "asleep",
		integer(ss_top_asleep(p, d)), "managed", integer(d->managed), "host",
		integer(d->host), "arrays", integer(d->arrays), "runtime", integer(d->runtime),
		"kernel", known(d->kernel, d->kernel), "rest", known(d->kernel, d->rest),
		"ended_pools", (int)d->ended_pools, "ended_allocations",
		integer(d->ended.allocations), "ended_frees", integer(d->ended.frees), "pools",
		pools);
}

static json_t *pack_process(const struct ss_top_process *p)
{
	const struct ss_live_identity *who = &p->page.who;
	const struct ss_live_figures *f = &p->page.figures;
	json_t *devices;

	if (p->result != SS_LIVE_OK) {
		return json_pack("{s:I, s:s}", "pid", (json_int_t)p->name.pid, "problem",
				 ss_top_problem(p->result));
	}
	devices = json_array();
	for (uint32_t i = 0; i < f->device_count; i++)
		json_array_append_new(devices, pack_device(p, &f->device[i]));
	return json_pack(
		"{s:I, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o,"
		" s:I, s:o, s:I, s:I, s:I, s:o}",
		"pid", (json_int_t)p->name.pid, "command", who->command, "executable",
		who->executable, "host", who->host, "version", who->version, "rank",
		optional(who->rank), "ranks", optional(who->ranks), "local_rank",
		optional(who->local_rank), "launcher", optional_text(who->launcher), "job",
		optional_text(who->job), "pod", optional_text(who->pod), "other_namespace",
		p->state == SS_LIVE_ELSEWHERE, "current", p->current, "age",
		ss_json_rounded(p->age), "started", ss_json_rounded((double)who->started_ns / 1e9),
		"driver_calls", integer(f->driver_calls), "driver_ms",
		ss_json_rounded((double)f->driver_ns / 1e6), "fences", integer(f->fences),
		"host_bytes", integer(f->host_bytes), "pools_left_out",
		(json_int_t)f->pools_left_out, "devices", devices);
}

int ss_top_print_json(const struct ss_top_sample *s, const char *directory)
{
	struct ss_top_device devices[256];
	json_t *processes = json_array(), *sums = json_array();

	for (size_t i = 0; i < s->count; i++)
		json_array_append_new(processes, pack_process(s->process[i]));
	size_t count = ss_top_devices(s, devices, sizeof(devices) / sizeof(devices[0]));
	for (size_t i = 0; i < count; i++) {
		const struct ss_top_device *d = &devices[i];
		json_array_append_new(
			sums,
			json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "device", d->pci,
				  "processes", (json_int_t)d->processes, "total", integer(d->total),
				  "used", integer(d->used), "reserved", integer(d->reserved),
				  "in_flight", integer(d->in_flight), "asleep", integer(d->asleep),
				  "kernel", known(d->kernel, d->kernel), "rest",
				  known(d->kernel, d->rest)));
	}
	return ss_json_print(json_pack("{s:i, s:o, s:o, s:o}", "version", 1, "directory",
				       ss_json_text(directory), "processes", processes, "devices",
				       sums));
}
