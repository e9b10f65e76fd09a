# SPDX-License-Identifier: MIT
# Blocks of a size that seems to stay come where others went for good: seed, more.
BEGIN {
	begin()
	for (i = 0; i < 40; i++) say("allocate", 1000 + i, 1400000)
	for (i = 0; i < 40; i++) {
		say("allocate", i, 900000)
		for (j = 0; j < 4; j++) { say("allocate", 5000, 500000); say("free", 5000, 500000) }
	}
	for (i = 1; i < 40; i += 2) say("free", 1000 + i, 1400000)
	for (i = 40; i < 40 + more; i++) say("allocate", i, 900000)
}
