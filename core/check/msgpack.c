/* SPDX-License-Identifier: MIT */
/* MessagePack, as far as the metadata of code objects uses it; the rest is skipped. */
#include <string.h>

#include "core/check/msgpack.h"

static bool take(struct msgpack *m, unsigned bytes, uint64_t *out)
{
	uint64_t n = 0;

	if ((uint64_t)(m->end - m->at) < bytes)
		return false;
	for (unsigned i = 0; i < bytes; i++)
		n = n << 8 | *m->at++;
	*out = n;
	return true;
}

static bool take_bytes(struct msgpack *m, uint64_t length, struct msgpack_value *out)
{
	if ((uint64_t)(m->end - m->at) < length)
		return false;
	out->text = (const char *)m->at;
	out->length = (uint32_t)length;
	m->at += length;
	return true;
}

/* Takes a length of `bytes` bytes, and data of that length. */
static bool take_data(struct msgpack *m, unsigned bytes, unsigned more, struct msgpack_value *out)
{
	uint64_t length;

	return take(m, bytes, &length) && take_bytes(m, length + more, out);
}

bool msgpack_next(struct msgpack *m, struct msgpack_value *out)
{
	uint64_t tag;

	memset(out, 0, sizeof(*out));
	if (!take(m, 1, &tag))
		return false;
	if (tag <= 0x7f || tag >= 0xe0) {
		out->type = MSGPACK_NUMBER;
		out->number = tag <= 0x7f ? tag : 0;
		return true;
	}
	if (tag <= 0x8f || tag == 0xde || tag == 0xdf) {
		out->type = MSGPACK_MAP;
		out->number = tag & 0xf;
		return tag <= 0x8f || take(m, tag == 0xde ? 2 : 4, &out->number);
	}
	if (tag <= 0x9f || tag == 0xdc || tag == 0xdd) {
		out->type = MSGPACK_LIST;
		out->number = tag & 0xf;
		return tag <= 0x9f || take(m, tag == 0xdc ? 2 : 4, &out->number);
	}
	if (tag <= 0xbf || (tag >= 0xd9 && tag <= 0xdb)) {
		out->type = MSGPACK_TEXT;
		return tag <= 0xbf ? take_bytes(m, tag & 0x1f, out) :
				     take_data(m, 1u << (tag - 0xd9), 0, out);
	}
	if (tag >= 0xcc && tag <= 0xd3) {
		out->type = MSGPACK_NUMBER;
		if (!take(m, 1u << ((tag - 0xcc) & 3), &out->number))
			return false;
		if (tag >= 0xd0) /* signed, and never negative in the values that are used */
			out->number = out->number >> 31 & 1 ? 0 : out->number;
		return true;
	}
	if (tag >= 0xc4 && tag <= 0xc6)
		return take_data(m, 1u << (tag - 0xc4), 0, out);
	if (tag >= 0xc7 && tag <= 0xc9)
		return take_data(m, 1u << (tag - 0xc7), 1, out);
	if (tag == 0xca || tag == 0xcb)
		return take_bytes(m, tag == 0xca ? 4 : 8, out);
	if (tag >= 0xd4 && tag <= 0xd8)
		return take_bytes(m, (1u << (tag - 0xd4)) + 1, out);
	out->number = tag == 0xc3;
	return tag == 0xc0 || tag == 0xc2 || tag == 0xc3; /* nil, false, true */
}

bool msgpack_skip(struct msgpack *m)
{
	struct msgpack_value v;
	uint64_t left = 1;

	/* Each value takes a byte at least, so this ends with the input. */
	for (; left; left--) {
		if (!msgpack_next(m, &v))
			return false;
		if (v.type == MSGPACK_LIST || v.type == MSGPACK_MAP)
			left += v.number * (v.type == MSGPACK_MAP ? 2 : 1);
	}
	return true;
}
