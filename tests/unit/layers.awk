# SPDX-License-Identifier: MIT
# A model that keeps some of what each of its layers makes, and frees the rest while it makes
# it; every layer is the same. Then two large blocks. seed, layers, unit (bytes), share (one in so
# many is kept; 9).
BEGIN {
	begin()
	sizes = 6
	if (!share) share = 9
	for (i = 0; i < sizes; i++) size_of[i] = unit * (1 + random(6)) * (1 + random(3))
	for (i = 0; i < 3; i++) kept_size[i] = unit * (1 + random(12)) + 512 * random(100)
	steps = 50 + random(30)
	for (i = 0; i < steps; i++) {
		keeps[i] = random(share) == 0
		size[i] = keeps[i] ? kept_size[random(3)] : size_of[random(sizes)]
		until[i] = i + 1 + random(random(4) == 0 ? 30 : 4)
	}
	for (layer = 0; layer < layers; layer++) {
		for (i = 0; i < steps; i++) {
			say("allocate", layer * steps + i, size[i])
			for (j = 0; j <= i; j++)
				if (!keeps[j] && until[j] == i) say("free", layer * steps + j, size[j])
		}
		for (j = 0; j < steps; j++)
			if (!keeps[j] && until[j] >= steps) say("free", layer * steps + j, size[j])
	}
	say("allocate", layers * steps, 16 * unit)
	say("allocate", layers * steps + 1, 12 * unit)
}
