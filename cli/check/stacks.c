/* SPDX-License-Identifier: MIT */
/* Sites, call stacks and streams that a file tells once. Equal call stacks are one array, which
 * many findings share. */
#include "cli/check/fields.h"
#include "cli/check/found.h"

/* The array that is equal, of those that were read before; NULL: there is none, and now it is this
 * one. */
static json_t *equal_of(struct ss_check_report *f, json_t *frames)
{
	char *text = json_dumps(frames, JSON_COMPACT | JSON_SORT_KEYS);
	json_t *known = text ? json_object_get(f->stacks, text) : NULL;

	if (text && !known)
		json_object_set(f->stacks, text, frames);
	free(text);
	return known;
}

/* A stream that is only a number is the one that had it with all that is known of it. */
static void stream_keep(json_t *site, json_t *told)
{
	json_t *stream = json_object_get(site, "stream");
	char key[32];

	if (!stream)
		return;
	snprintf(key, sizeof(key), "stream %" JSON_INTEGER_FORMAT,
		 json_integer_value(json_object_get(stream, "number")));
	if (json_object_get(stream, "kind"))
		json_object_set(told, key, stream);
	else if (json_object_get(told, key))
		json_object_set(site, "stream", json_object_get(told, key));
}

/* The frames of a site become those of the equal call stack. */
static void stack_keep(struct ss_check_report *f, json_t *site, json_t *told)
{
	json_t *number = json_object_get(site, "stack"), *frames = json_object_get(site, "frames");
	json_t *known;
	char key[32];

	snprintf(key, sizeof(key), "stack %" JSON_INTEGER_FORMAT, json_integer_value(number));
	if (json_is_array(frames)) {
		known = equal_of(f, frames);
		if (known)
			json_object_set(site, "frames", known);
		if (json_is_integer(number))
			json_object_set(told, key, json_object_get(site, "frames"));
	} else if (json_is_integer(number) && json_object_get(told, key)) {
		json_object_set(site, "frames", json_object_get(told, key));
	} else {
		json_object_del(site, "frames");
	}
	json_object_del(site, "stack");
}

void ss_site_keep(struct ss_check_report *f, json_t *site, json_t *told)
{
	json_t *number = json_object_get(site, "site");
	char key[32];

	stream_keep(site, told);
	stack_keep(f, site, told);
	snprintf(key, sizeof(key), "site %" JSON_INTEGER_FORMAT, json_integer_value(number));
	if (json_is_integer(number))
		json_object_set(told, key, site);
	json_object_del(site, "site");
}

json_t *ss_site_of(json_t *number, json_t *told)
{
	char key[32];

	snprintf(key, sizeof(key), "site %" JSON_INTEGER_FORMAT, json_integer_value(number));
	return json_object_get(told, key);
}
