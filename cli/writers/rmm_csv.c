/* SPDX-License-Identifier: MIT */
/* Writes allocation logs in RMM's CSV format. */
#include "cli/writers/rmm_csv.h"
#include "trace/rmm.h"

void ss_rmm_write_header(FILE *out)
{
	fputs(SS_RMM_HEADER "\n", out);
}

void ss_rmm_write_row(FILE *out, unsigned thread, uint64_t time_us, const char *action,
		      uint64_t pointer, uint64_t size, uint64_t stream)
{
	unsigned s = (unsigned)(time_us / 1000000 % 86400);

	fprintf(out, "%u,%02u:%02u:%02u.%06u,%s,0x%llx,%llu,0x%llx\n", thread, s / 3600,
		s / 60 % 60, s % 60, (unsigned)(time_us % 1000000), action,
		(unsigned long long)pointer, (unsigned long long)size, (unsigned long long)stream);
}
