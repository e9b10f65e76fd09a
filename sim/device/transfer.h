/* SPDX-License-Identifier: MIT */
/* Commands that copy memory and fill it. The caller sets the members of the union. */
#ifndef SIM_TRANSFER_H
#define SIM_TRANSFER_H

struct sim_command *sim_copy_command(void);
struct sim_command *sim_fill_command(void);

#endif
