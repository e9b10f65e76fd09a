# SPDX-License-Identifier: MIT
# Blocks of a few sizes that live for random times: seed, live blocks, allocations.
BEGIN {
	begin()
	for (i = 0; i < allocations; i++) {
		size[i] = 2 ^ (9 + random(16))
		say("allocate", i, size[i])
		at[n++] = i
		if (n > live) {
			k = random(n)
			say("free", at[k], size[at[k]])
			at[k] = at[--n]
		}
	}
	while (n) { n--; say("free", at[n], size[at[n]]) }
}
