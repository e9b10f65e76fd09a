/* SPDX-License-Identifier: MIT */
/* Functions of Python in recordings. See python_function.h. */
#include <stdlib.h>
#include <string.h>

#include "trace/python_function.h"

const struct ss_python_function *ss_python_function(struct ss_python_function **table,
						    const struct ss_trace_python_def *def)
{
	size_t name = def ? strlen(def->name) + 1 : 1, file = def ? strlen(def->file) + 1 : 1;
	struct ss_python_function *p = calloc(1, sizeof(*p) + name + file), *there;

	if (!p)
		return NULL;
	p->key_size = name + file;
	memcpy(p->key, def ? def->name : "", name);
	memcpy(p->key + name, def ? def->file : "", file);
	HASH_FIND(hh, *table, p->key, p->key_size, there);
	if (there) {
		free(p);
		return there;
	}
	p->name = name > 1 ? p->key : NULL;
	p->file = file > 1 ? p->key + name : NULL;
	HASH_ADD_KEYPTR(hh, *table, p->key, p->key_size, p);
	return p;
}

void ss_python_functions_finish(struct ss_python_function **table)
{
	struct ss_python_function *p, *next;

	HASH_ITER(hh, *table, p, next) {
		HASH_DEL(*table, p);
		free(p);
	}
}
