# SPDX-License-Identifier: MIT
# A program of random allocations and frees, run over and over: seed, sizes, steps, rounds.
BEGIN {
	begin()
	for (i = 0; i < sizes; i++)
		size[i] = 512 * int(1 + exp(random(10000) / 10000 * log(262144)))
	for (i = 0; i < steps; i++) {
		if (live && random(2)) {
			at = random(2) ? live - 1 : random(live)
			what[i] = "free"; which[i] = stack[at]
			for (live--; at < live; at++) stack[at] = stack[at + 1]
		} else {
			what[i] = "allocate"; which[i] = i; bytes[i] = size[random(sizes)]
			stack[live++] = i
		}
	}
	while (live) { what[i] = "free"; which[i++] = stack[--live] }
	for (round = 0; round < rounds; round++)
		for (k = 0; k < i; k++) say(what[k], which[k], bytes[which[k]])
}
