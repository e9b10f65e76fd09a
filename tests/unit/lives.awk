# SPDX-License-Identifier: MIT
# Blocks of a few sizes that live for random times: seed, live blocks, allocations.
function random(n) { state = (state * 16807) % 2147483647; return state % n }
function say(what, i) {
	t++
	printf "1,00:00:%02d.%06d,%s,0x%x,%d,0x0\n", t / 1000000, t % 1000000, what, 512 * (i + 1), size[i]
}
BEGIN {
	state = seed
	print "Thread,Time,Action,Pointer,Size,Stream"
	for (i = 0; i < allocations; i++) {
		size[i] = 2 ^ (9 + random(16))
		say("allocate", i)
		at[n++] = i
		if (n > live) {
			k = random(n)
			say("free", at[k])
			at[k] = at[--n]
		}
	}
	while (n) say("free", at[--n])
}
