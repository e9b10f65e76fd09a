# SPDX-License-Identifier: MIT
# A training loop: blocks that all live until the end of their step, of the same sizes each
# time: seed, blocks, steps.
BEGIN {
	begin()
	for (i = 0; i < blocks; i++) size[i] = 1048576 * (1 + random(16))
	for (step = 0; step < steps; step++) {
		for (i = 0; i < blocks; i++) say("allocate", i, size[i])
		for (i = blocks; i-- > 0;) say("free", i, size[i])
	}
}
