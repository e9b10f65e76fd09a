/* SPDX-License-Identifier: MIT */
/* Asks the suppressions whether a call site may keep its blocks. */
#include <jansson.h>

#include "cli/check/found.h"
#include "cli/report_suppressions.h"
#include "cli/writers/json.h"

bool ss_report_suppressed(void *suppressions, const struct ss_sites *s, const struct ss_site *site)
{
	json_t *frames = json_array();

	for (uint32_t i = 0; i < site->frames; i++) {
		const struct ss_frame *f = ss_site_frame(s, site, i);
		json_array_append_new(frames,
				      json_pack("{s:o, s:o}", "function", ss_json_text(f->function),
						"module", ss_json_text(f->module)));
	}
	json_t *finding = json_pack("{s:s, s:{s:o}}", "fault", "leak", "alloc", "frames", frames);
	bool fits = finding && ss_suppressed(suppressions, finding);
	json_decref(finding);
	return fits;
}
