/* SPDX-License-Identifier: MIT */
/* Prints the summary of `somashim run` when the program has ended. */
#ifndef SS_CLI_EXIT_SUMMARY_H
#define SS_CLI_EXIT_SUMMARY_H

#include <stdbool.h>

struct ss_report;

/* The rank of this process in a job of mpirun, srun or flux; 0 outside of a job. */
int ss_job_rank(void);
/* Prints what the pools did and how the program's calls reached them, or why they did not.
 * `status`: of waitpid(). In a job, rank 0 speaks for all; another rank prints only if it was not
 * served. */
void ss_exit_summary(const struct ss_report *r, const char *program, int status);
/* Prints only warnings: that no call reached the pools, or that calls went past them. */
void ss_exit_warning(const struct ss_report *r, const char *program, int status);

#endif
