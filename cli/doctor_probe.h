/* SPDX-License-Identifier: MIT */
/* Runs the self-test of the preload in a child process, for `somashim doctor`. */
#ifndef SS_CLI_DOCTOR_PROBE_H
#define SS_CLI_DOCTOR_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/driver.h"

#define SS_PROBE_LINES 256
#define SS_EXIT_NO_DEVICE 77 /* the exit status of a skipped test in most test harnesses */
#define SS_EXIT_NO_RUNTIME 3 /* of the child only */
#define SS_PROBE_TAKEN "somashim: runtime taken: " /* the child: which file it loaded */

enum ss_probe_what {
	SS_PROBE_LOOK,    /* all backings, and nothing is remembered */
	SS_PROBE_SAVE,    /* all backings */
	SS_PROBE_UNTRIED, /* vmm, where nothing is remembered of it */
};

struct ss_probe {
	char *line[SS_PROBE_LINES]; /* what the child printed */
	size_t count;
	char library[512]; /* the file of the runtime; "" if none could be loaded */
	int major, minor;  /* of the runtime, by HIP's own number; 0.0 if none answered */
	char arch[64];     /* of the last device, such as "gfx90a"; "" if unknown */
	char best[SS_MAX_DEVICES][8];   /* the best backing of each device */
	bool can_sleep[SS_MAX_DEVICES]; /* unmapped memory comes back, and its addresses stay */
	int devices;
	bool failed;       /* a backing that is offered does not work */
	char verdict[640]; /* one line that names what was seen */
	int status;        /* exit status of doctor: 0 good, 1 a failure, 77 no device */
	bool save, unsaved;
	char saved[320]; /* what was remembered, or why nothing was; "": not asked to */
	/* Called with each line as it comes, and with the step that has begun where it takes longer
	 * than a moment. NULL: nobody listens. */
	void (*say)(const char *line);
};

/* Runs the self-test in a child with the preload, and reads what it says. `say` gets the lines
 * meanwhile; it may be NULL. `runtime` names the file or the directory of the runtime; NULL: it is
 * searched for. The child is killed after `timeout_s` seconds in which no step of the test made
 * progress. */
void ss_probe_run(struct ss_probe *p, void (*say)(const char *), const char *runtime,
		  enum ss_probe_what what, unsigned timeout_s);
void ss_probe_finish(struct ss_probe *p);
/* The child's part (doctor_probe_child.c): makes the first HIP call, which starts the self-test.
 * Returns the exit status of the child. */
int ss_probe_child(const char *runtime);

#endif
