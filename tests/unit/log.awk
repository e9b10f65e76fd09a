# SPDX-License-Identifier: MIT
# A log as RMM writes it, for the scripts beside: begin() first; numbers that repeat for a seed.
function random(n) { state = (state * 16807) % 2147483647; return state % n }
function begin() { state = seed; print "Thread,Time,Action,Pointer,Size,Stream" }
function say(what, block, size) {
	t++
	printf "1,00:00:%02d.%06d,%s,0x%x,%d,0x0\n", t / 1000000, t % 1000000, what, 512 * (block + 1), size
}
