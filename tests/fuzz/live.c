/* SPDX-License-Identifier: MIT */
/* Live pages as hostile input: whatever the bytes are, what was read can be shown. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "live/directory.h"
#include "live/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	if (n == size)
		abort();
	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] > '~')
			abort();
}

#define TEXT(text) check_text(text, sizeof(text))

static void check_page(const struct ss_live_page *page)
{
	const struct ss_live_identity *who = &page->who;
	const struct ss_live_figures *f = &page->figures;

	if (f->device_count > SS_LIVE_DEVICES || f->pool_count > SS_LIVE_POOLS)
		abort();
	TEXT(who->command);
	TEXT(who->launcher);
	TEXT(who->job);
	TEXT(who->pod);
	TEXT(who->host);
	TEXT(who->version);
	TEXT(who->executable);
	for (uint32_t i = 0; i < f->device_count; i++) {
		TEXT(f->device[i].pci);
		TEXT(f->device[i].name);
	}
	for (uint32_t i = 0; i < f->pool_count; i++) {
		TEXT(f->pool[i].name);
		TEXT(f->pool[i].backing);
	}
}

/* The input as a page, as it is and with a good beginning; then as the name of one. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ss_live_page page;
	struct ss_live_name name;
	char text[300], path[SS_LIVE_PATH];

	for (int good = 0; good < 2; good++) {
		memset((void *)&page, 0, sizeof(page));
		memcpy((void *)&page, data, size < sizeof(page) ? size : sizeof(page));
		if (good) {
			page.magic = SS_LIVE_MAGIC;
			page.version = SS_LIVE_VERSION;
			page.size = SS_LIVE_SIZE;
		}
		if (ss_live_check(&page, good ? sizeof(page) : size) == SS_LIVE_OK)
			check_page(&page);
		else if (good)
			abort();
	}
	size_t length = size < sizeof(text) - 1 ? size : sizeof(text) - 1;
	memcpy(text, data, length);
	text[length] = '\0';
	if (ss_live_parse_name(text, &name) &&
	    (!ss_live_path(".", &name, path) || strcmp(path + 2, text) != 0))
		abort();
	return 0;
}
