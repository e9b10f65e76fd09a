/* SPDX-License-Identifier: MIT */
/* The subcommands of `somashim`, each in cmd_NAME.c. */
#ifndef SS_CLI_H
#define SS_CLI_H

/* argv[0] is "somashim NAME", for messages. They return the exit status. */
int ss_cmd_check(int argc, char **argv);
int ss_cmd_convert(int argc, char **argv);
int ss_cmd_doctor(int argc, char **argv);
int ss_cmd_dump(int argc, char **argv);
int ss_cmd_generate(int argc, char **argv);
int ss_cmd_options(int argc, char **argv);
int ss_cmd_record(int argc, char **argv);
int ss_cmd_replay(int argc, char **argv);
int ss_cmd_report(int argc, char **argv);
int ss_cmd_run(int argc, char **argv);
int ss_cmd_sleep(int argc, char **argv);
int ss_cmd_top(int argc, char **argv);
int ss_cmd_wake(int argc, char **argv);

#endif
