/* SPDX-License-Identifier: MIT */
/* Reads MessagePack that may be broken: a value that does not fit into the input is an error. */
#ifndef SS_CHECK_MSGPACK_H
#define SS_CHECK_MSGPACK_H

#include <stdbool.h>
#include <stdint.h>

struct msgpack {
	const uint8_t *at, *end;
};

enum msgpack_type { MSGPACK_OTHER, MSGPACK_NUMBER, MSGPACK_TEXT, MSGPACK_LIST, MSGPACK_MAP };

struct msgpack_value {
	enum msgpack_type type;
	/* NUMBER: 0 for negative numbers. LIST and MAP: number of values or pairs that follow.
	 * OTHER: 1 is true */
	uint64_t number;
	const char *text;
	uint32_t length;
};

/* Reads the next value; the values inside a list or a map follow. False: the input ends. */
bool msgpack_next(struct msgpack *m, struct msgpack_value *out);
/* Skips the next value with all its contents. */
bool msgpack_skip(struct msgpack *m);

#endif
