/* SPDX-License-Identifier: MIT */
/* Call stacks: equal ones are one array, which many findings share. Streams that are told once. */
#include "cli/check/fields.h"
#include "cli/check/found.h"

/* The place of the array in the list, where it is put if there is no equal one. -1: out of
 * memory. */
static json_int_t place_of(struct ss_check_report *f, json_t *frames)
{
	char *text = json_dumps(frames, JSON_COMPACT | JSON_SORT_KEYS);
	json_t *known = text ? json_object_get(f->stack_known, text) : NULL;
	json_int_t place = known ? json_integer_value(known) : -1;

	if (text && !known && json_array_append(f->stacks, frames) == 0) {
		place = (json_int_t)json_array_size(f->stacks) - 1;
		json_object_set_new(f->stack_known, text, json_integer(place));
	}
	free(text);
	return place;
}

/* A stream that is only a number is the one that had it with all that is known of it. */
static void stream_keep(json_t *site, json_t *numbers)
{
	json_t *stream = json_object_get(site, "stream");
	char key[32];

	if (!stream)
		return;
	snprintf(key, sizeof(key), "stream %" JSON_INTEGER_FORMAT,
		 json_integer_value(json_object_get(stream, "number")));
	if (json_object_get(stream, "kind"))
		json_object_set(numbers, key, stream);
	else if (json_object_get(numbers, key))
		json_object_set(site, "stream", json_object_get(numbers, key));
}

void ss_stack_keep(struct ss_check_report *f, json_t *site, json_t *numbers)
{
	json_t *number = json_object_get(site, "stack"), *frames = json_object_get(site, "frames");
	char key[24];

	stream_keep(site, numbers);
	json_object_del(site, "place");
	snprintf(key, sizeof(key), "%" JSON_INTEGER_FORMAT, json_integer_value(number));
	if (json_is_array(frames)) {
		json_t *place = json_integer(place_of(f, frames));
		if (json_is_integer(number))
			json_object_set(numbers, key, place);
		json_object_set_new(site, "place", place);
	} else if (json_is_integer(number) && json_object_get(numbers, key)) {
		json_object_set(site, "place", json_object_get(numbers, key));
	}
	json_object_del(site, "stack");
	json_object_del(site, "frames");
}

json_int_t ss_stack_attach(const struct ss_check_report *f, json_t *site)
{
	const json_t *number = json_object_get(site, "place");
	json_int_t place = json_is_integer(number) ? json_integer_value(number) : -1;
	json_t *frames = place >= 0 ? json_array_get(f->stacks, (size_t)place) : NULL;

	json_object_del(site, "place");
	if (frames)
		json_object_set(site, "frames", frames);
	return place;
}
