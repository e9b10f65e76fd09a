/* SPDX-License-Identifier: MIT */
/*
 * The exports of AMD's builds. Each jumps through a table, which the first call fills and
 * registers with rocprofiler-register, so that a tool can put its own functions there.
 * The positions in the table are those of hip_api_trace.hpp, for the calls that somashim
 * needs (scripts/rocm-check.py compares them). The other positions stay empty, and their
 * exports call the function directly.
 */
#include <pthread.h>

#include "shim/route/api_table.h"

int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void),
					   uint32_t version, void **tables, uint64_t count,
					   uint64_t *id);

#define TABLE_ENTRIES 547 /* after 7.17; 506 in 7.2.4 */

static struct {
	size_t size;
	void *entry[TABLE_ENTRIES];
} table = {.size = sizeof table};

/* One per export. The section sim_slots holds pointers to all of them. */
struct slot {
	const char *name;
	void *own;
	int at; /* position in the table plus 1; 0: not in the table */
};
extern struct slot *const __start_sim_slots[], *const __stop_sim_slots[];

__attribute__((visibility("default"))) uint32_t rocprofiler_register_import_hip(void);
uint32_t rocprofiler_register_import_hip(void)
{
	return 60400;
}

static void table_start(void)
{
	static const struct {
		const char *name;
		int at;
	} listed[] = {
#define T(name, at) { #name, at },
		SS_TABLE(T)
#undef T
	};
	void *tables[] = {&table};
	uint64_t id;

	for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++)
		for (struct slot *const *s = __start_sim_slots; s < __stop_sim_slots; s++)
			if (!strcmp((*s)->name, listed[i].name)) {
				table.entry[listed[i].at] = (*s)->own;
				(*s)->at = listed[i].at + 1;
			}
	rocprofiler_register_library_api_table("hip", rocprofiler_register_import_hip, 60400,
					       tables, 1, &id);
}

static void *slot_function(const struct slot *s)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, table_start);
	return s->at ? table.entry[s->at - 1] : s->own;
}

#define EXPORT(name, params, args, body) \
	static hipError_t b_##name params body \
	static struct slot slot_##name = { #name, (void *)b_##name, 0 }; \
	static struct slot *const at_##name __attribute__((section("sim_slots"), used)) = \
		&slot_##name; \
	hipError_t name params \
	{ \
		return ((hipError_t (*) params)slot_function(&slot_##name)) args; \
	}
