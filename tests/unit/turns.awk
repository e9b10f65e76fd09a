# SPDX-License-Identifier: MIT
# Buffers of ever other sizes, from 256 KiB to 64 MiB, that go in turn: seed, allocations, how many
# are live at a time; `late` of a hundred go one turn later; `kept` blocks stay from the start, and
# every `keeps`th of the rest (0: none).
BEGIN {
	begin()
	for (i = 0; i < kept; i++) {
		size[i] = 2 ^ 20 * (1 + random(16))
		say("allocate", i, size[i])
	}
	for (; i < kept + allocations; i++) {
		if (n == live) {
			k = random(100) < late
			say("free", line[k], size[line[k]])
			if (k)
				line[1] = line[0]
			n--
			for (j = 0; j < n; j++)
				line[j] = line[j + 1]
		}
		size[i] = int(2 ^ 18 * exp(log(256) * random(100000) / 100000))
		say("allocate", i, size[i])
		if (!keeps || i % keeps)
			line[n++] = i
	}
}
