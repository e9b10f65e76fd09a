# SPDX-License-Identifier: MIT
# Steps of a training loop: blocks that all live until the end of their step, of the same sizes each time.
function random(n) { state = (state * 16807) % 2147483647; return state % n }
function say(what, i) {
	t++
	printf "1,00:00:%02d.%06d,%s,0x%x,%d,0x0\n", t / 1000000, t % 1000000, what, 512 * (i + 1), size[i]
}
BEGIN {
	state = seed
	for (i = 0; i < blocks; i++)
		size[i] = 1048576 * (1 + random(16))
	print "Thread,Time,Action,Pointer,Size,Stream"
	for (step = 0; step < steps; step++) {
		for (i = 0; i < blocks; i++) say("allocate", i)
		for (i = blocks; i-- > 0;) say("free", i)
	}
}
