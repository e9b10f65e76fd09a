# SPDX-License-Identifier: MIT
# Layers that are all alike: small blocks of a few sizes, most of them soon gone, some kept until
# the large ones at the layer's end are gone, or one layer longer; all that so many times: seed,
# layers, steps, unit, passes (0: one).
function take(bytes, life,   i) {
	say("allocate", ++n, bytes)
	size[n] = bytes
	until[n] = n + life
	for (i = oldest; i <= n; i++)
		if (until[i] == n) say("free", i, size[i])
	while (oldest < n && until[oldest] <= n) oldest++
}
BEGIN {
	begin()
	oldest = 1
	for (s = 0; s < steps; s++) {
		kind[s] = int(2 ^ random(4)) * unit
		keep[s] = random(8) ? 0 : random(3) ? 1 : 2
		for_[s] = 1 + random(4)
	}
	do {
		for (layer = 0; layer < layers; layer++) {
			for (s = 0; s < steps; s++)
				take(kind[s], keep[s] ? keep[s] * (steps + 8) - s : for_[s])
			take(16 * unit, 2); take(16 * unit, 3)
			take(16 * unit, 6); take(16 * unit, 3)
			take(32 * unit, 2); take(32 * unit, 3)
			take(32 * unit, 2); take(unit, 1)
		}
		for (i = oldest; i <= n; i++)
			if (until[i] > n) say("free", i, size[i])
		oldest = n + 1
	} while (--passes > 0)
}
