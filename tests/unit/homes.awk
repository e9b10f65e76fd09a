# SPDX-License-Identifier: MIT
# Layers that each work with large blocks and leave a small one, which the next layer needs: it
# is still there when the large ones come again. rounds, large (bytes).
BEGIN {
	begin()
	small = large / 16
	for (i = 0; i < 40; i++) {
		say("allocate", 0, small)
		say("free", 0, small)
	}
	for (r = 0; r < rounds; r++) {
		for (i = 0; i < 4; i++) say("allocate", i, small * (1 + i % 2))
		for (i = 0; i < 4; i++) say("allocate", 4 + i, large)
		for (i = 0; i < 4; i++) say("free", 4 + i, large)
		say("allocate", 8 + r, small)
		if (r) say("free", 7 + r, small)
		for (i = 0; i < 4; i++) say("free", i, small * (1 + i % 2))
	}
	say("free", 7 + rounds, small)
}
