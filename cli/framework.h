/* SPDX-License-Identifier: MIT */
/* Frameworks with a memory pool of their own, and the switch that hands their memory to
 * somashim. */
#ifndef SS_CLI_FRAMEWORK_H
#define SS_CLI_FRAMEWORK_H

#include <stdbool.h>
#include <stddef.h>

#define SS_FRAMEWORK_KEY 'F'
#define SS_FRAMEWORK { "framework", SS_FRAMEWORK_KEY, "NAME", 0, \
	"Set the switch of a framework that has a memory pool of its own, so that its memory comes " \
	"from somashim; `--framework list' shows them", 0}

/* The argument of --framework. "list" prints all frameworks on stdout and ends the process. */
const char *ss_framework_argument(const char *name);

/* Sets the environment for the program that is started next, and says on stderr what was set and
 * what is lost, unless `quiet`. False: there is no such framework, it has no variable, or the
 * variable has another value already; `err` says which. */
bool ss_framework_set(const char *name, bool quiet, char *err, size_t size);

/* Says on stderr which frameworks are among the modules of a recording whose pool may hide the
 * owners of memory, and how to see them; not of one whose switch is in the environment. */
void ss_framework_say_hidden(const char *recording);

#endif
