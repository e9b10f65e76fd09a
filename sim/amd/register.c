/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for librocprofiler-register: a runtime gives it a table of functions, and it
 * passes the table to the tool in the process, if one exports rocprofiler_set_api_table.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdatomic.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

enum { SUCCESS, NO_TOOLS, BAD_LENGTH = 3, UNSUPPORTED, TOOL_FAILED = 6 };

PUBLIC int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void),
						  uint32_t version, void **tables, uint64_t count,
						  uint64_t *id);

int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void),
					   uint32_t version, void **tables, uint64_t count,
					   uint64_t *id)
{
	static _Atomic uint64_t instances;
	int (*tool)(const char *, uint64_t, uint64_t, void **,
		    uint64_t) = (int (*)(const char *, uint64_t, uint64_t, void **,
					 uint64_t))dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table");
	uint64_t instance;

	(void)import;
	if (count < 1)
		return BAD_LENGTH;
	if (strcmp(name, "hip"))
		return UNSUPPORTED;
	instance = instances++;
	*id = 8 + instance;
	if (!tool)
		return NO_TOOLS;
	return tool(name, version, instance, tables, count) ? TOOL_FAILED : SUCCESS;
}
