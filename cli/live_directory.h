/* SPDX-License-Identifier: MIT */
/* The directory in which the commands look for live pages. */
#ifndef SS_CLI_LIVE_DIRECTORY_H
#define SS_CLI_LIVE_DIRECTORY_H

/* The directory of SOMASHIM_LIVE, or the default one if that is not set or says that there are to
 * be no pages. */
const char *ss_live_directory(void);

#endif
