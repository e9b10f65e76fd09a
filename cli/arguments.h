/* SPDX-License-Identifier: MIT */
/* Reads the arguments of the subcommands, and reports errors. */
#ifndef SS_CLI_ARGUMENTS_H
#define SS_CLI_ARGUMENTS_H

#include <argp.h>
#include <stdint.h>

#define SS_EXIT_USAGE 2 /* the exit status after a wrong call */

/* Adds -h, as another name of --help: the `children` of every subcommand's argp. */
extern const struct argp_child ss_arguments_common[];

/* Runs argp. --help, --usage, --version and errors end the process. */
void ss_arguments_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
			void *input);
/* Reads a number or a size (64M) that is at most `max`; anything else is reported as an
 * error of the option `name` and ends the process. */
uint64_t ss_arguments_number(const struct argp_state *state, const char *name, const char *text,
			     uint64_t max);
/* Reads a time in seconds (1.5; 20ms), as nanoseconds; anything else is an error of the option. */
uint64_t ss_arguments_time(const struct argp_state *state, const char *name, const char *text);
/* Reads a process id, or ends the process with an error. */
uint32_t ss_arguments_pid(const struct argp_state *state, const char *text);

/* The program that the subcommand is to start, with its arguments, as for exec. Call it at the
 * first argument that is no option (ARGP_IN_ORDER): the rest belongs to the program. */
char **ss_arguments_program(struct argp_state *state);

/* Prints "somashim: ..." on stderr. Returns SS_EXIT_USAGE. */
int ss_cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints a line if this build cannot find the names of functions. */
void ss_cli_say_nameless(const char *command);

#endif
